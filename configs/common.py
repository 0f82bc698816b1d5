"""What the configs share: the variants of the paper and the training settings."""

from ml_collections import ConfigDict, config_dict

# dtype: of activations and products, as Keras names it; weights are float32 either way.
_ENCODER = {"num_heads": 8, "dropout": 0.1, "dtype": "float32"}
_TRANSEVOLVE = {
    "encoder": "transevolve",
    "form": "factored",
    "fidelity": "paper",
    **_ENCODER,
}
# One block of depth 6, or two of depth 3 (section 7.1).
VARIANTS = {
    f"transevolve-{name}-{num_blocks}": {
        **_TRANSEVOLVE,
        "feed_forward": feed_forward,
        "num_blocks": num_blocks,
        "num_depths": 6 // num_blocks,
    }
    for name, feed_forward in (("randomff", "rotation"), ("fullff", "dense"))
    for num_blocks in (1, 2)
}
VARIANTS["transformer"] = {"encoder": "transformer", "num_layers": 6, **_ENCODER}
SIZES = {
    "small": {"hidden_dim": 256, "ffn_dim": 1024},
    "base": {"hidden_dim": 512, "ffn_dim": 2048},
}


def classification_config(
    task: str, variant: str, data: dict, batch_size: int
) -> ConfigDict:
    """The paper's settings for an encoder-only task (section 7.3, appendix C).

    Args:
      task: name of the config file, and of the task in results.
      variant: a key of `VARIANTS`.
      data: the data settings of the task.
      batch_size: of the paper.

    Raises:
      ValueError: if the variant is unknown.
    """
    train = {
        "batch_size": batch_size,
        "epochs": 15,
        # Instead of epochs, when given.
        "steps": config_dict.placeholder(int),
        "learning_rate_max": 0.5,
        "warmup_steps": 8000,
        "adam_beta_1": 0.9,
        "adam_beta_2": 0.999,
        "adam_epsilon": 1e-7,
        # Checkpoints kept beside the best one.
        "keep_checkpoints": 1,
    }
    return ConfigDict(_settings(task, variant, "small", data, train))


def translation_config(
    task: str, variant: str, size: str, data: dict, extra_length: int, **train
) -> ConfigDict:
    """The paper's settings for translation (sections 7.1 and 7.3, appendix C).

    Args:
      task: name of the config file, and of the task in results.
      variant: a key of `VARIANTS`.
      size: a key of `SIZES`.
      data: the data settings of the task.
      extra_length: how many tokens a translation may be longer than its source.
      **train: training settings in which the task departs from the paper's.

    Raises:
      ValueError: if the variant is unknown.
    """
    settings = {
        # Pairs of sentences; or, with the unit "tokens", about so many tokens a side:
        # a batch of length n then has batch_size // n rows, in multiples of 8.
        "batch_size": 512,
        "batch_unit": "sentences",
        "steps": 300_000,
        "learning_rate_max": 1.5,
        "warmup_steps": 16_000,
        "adam_beta_1": 0.9,
        "adam_beta_2": 0.98,
        "adam_epsilon": 1e-9,
        "label_smoothing": 0.1,
        # Steps between checkpoints, and how many of them are kept.
        "checkpoint_every": 2000,
        "keep_checkpoints": 10,
        **train,
    }
    decode = {
        "beam_size": 4,
        # Scores are divided by ((5 + length) / 6) ** length_penalty.
        "length_penalty": 0.6,
        "extra_length": extra_length,
        "batch_size": 64,
    }
    return ConfigDict(
        {**_settings(task, variant, size, data, settings), "decode": decode}
    )


def _settings(task, variant, size, data, train):
    """The settings that every task has."""
    if variant not in VARIANTS:
        raise ValueError(
            f"--config=configs/{task}.py:{variant}: expected a variant out of "
            f"{', '.join(VARIANTS)}"
        )
    return {
        "task": task,
        "variant": variant,
        "seed": 0,
        "model": {**VARIANTS[variant], **SIZES[size]},
        "data": {
            "dir": config_dict.placeholder(str),
            "on_error": "fail",
            "cache_dir": "~/.cache/transevolve",
            **data,
        },
        # lr = learning_rate_max / sqrt(d) * min(step^-0.5, step * warmup^-1.5)
        "train": {
            **train,
            # Steps between returns from the device to Python.
            "steps_per_loop": 10,
            # Steps between lines of metrics.
            "log_every": 100,
        },
    }


def word_piece_data(dataset: str, **data) -> dict:
    """Data settings of a text classification task in BERT's word pieces."""
    return {
        "dataset": dataset,
        "source": "tfds",
        "tokenizer": "wordpiece",
        # The published BERT uncased list ("bert"), or one learned from the training
        # texts ("train") with `vocab_size` pieces. `vocab_file` overrides both.
        "vocab": "bert",
        "vocab_size": 16000,
        "vocab_file": config_dict.placeholder(str),
        "max_length": 512,
        "bucket_lengths": (64, 128, 192, 256, 384, 512),
        **data,
    }


def parallel_text_data(target_language: str, **data) -> dict:
    """Data settings of translation from English, one vocabulary for both sides."""
    return {
        "dataset": "parallel_text",
        "source": "tfds",
        "tfds_name": config_dict.placeholder(str),
        "source_language": "en",
        "target_language": target_language,
        "tokenizer": "subwords",
        # A SentencePiece model; without one, byte-pair subwords are learned from
        # `vocab_sentences` sentences, drawn from the training text.
        "vocab_file": config_dict.placeholder(str),
        "vocab_size": 32_000,
        "vocab_sentences": 2_000_000,
        # In subwords, the end of the sentence among them.
        "max_length": 256,
        "bucket_lengths": (16, 32, 48, 64, 96, 128, 192, 256),
        # Pairs that are shuffled together.
        "shuffle_window": 1_000_000,
        **data,
    }


def wmt14_data(target_language: str) -> dict:
    """Data settings of WMT 2014; the names are those of the files."""
    return parallel_text_data(
        target_language,
        tfds_name=f"wmt14_translate/{target_language}-en",
        train_name="train",
        validation_name="newstest2013",
        test_name="newstest2014",
    )
