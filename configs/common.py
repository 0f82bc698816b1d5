"""What the configs share: the variants of the paper and the training settings."""

from ml_collections import ConfigDict, config_dict

_ENCODER = {"num_heads": 8, "dropout": 0.1}
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
    if variant not in VARIANTS:
        raise ValueError(
            f"--config=configs/{task}.py:{variant}: expected a variant out of "
            f"{', '.join(VARIANTS)}"
        )
    return ConfigDict(
        {
            "task": task,
            "variant": variant,
            "seed": 0,
            "model": {**VARIANTS[variant], **SIZES["small"]},
            "data": {
                "dir": config_dict.placeholder(str),
                "on_error": "fail",
                "cache_dir": "~/.cache/transevolve",
                **data,
            },
            "train": {
                "batch_size": batch_size,
                "epochs": 15,
                # Instead of epochs, when given.
                "steps": config_dict.placeholder(int),
                # lr = learning_rate_max / sqrt(d) * min(step^-0.5, step * warmup^-1.5)
                "learning_rate_max": 0.5,
                "warmup_steps": 8000,
                "adam_beta_1": 0.9,
                "adam_beta_2": 0.999,
                "adam_epsilon": 1e-7,
                # Steps between returns from the device to Python.
                "steps_per_loop": 10,
                # Steps between lines of metrics.
                "log_every": 100,
                # Checkpoints kept beside the best one.
                "keep_checkpoints": 1,
            },
        }
    )


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
