"""WikiText-103 as Schlag, Irie and Schmidhuber 2021 have it (section 6.3).

    python train.py --config=configs/wikitext_103.py:VARIANT[,medium] \\
        --workdir=runs/wikitext_103
    python evaluate.py --workdir=runs/wikitext_103

The data is downloaded, or read from a folder of wiki.{train,valid,test}.tokens that
--config.data.dir gives. Segments remember nothing of those before, unless
--config.data.memory=True and --config.model.positions=none. Evaluation goes by a window
that slides, as theirs. It has no memory, so with one give
--config.decode.sliding_window=False, too.

`small`: width 128, 8 heads, segments of 256 words. `medium`: width 256, segments of
384. Both have 16 layers, or depths in all blocks of TransEvolve. A Transformer
normalises after each sum. With it, with linear attention and with the delta rule they
report a perplexity of 34.1, 38.3 and 35.5 on test data (small), and of 29.6, 33.0 and
31.5 (medium).

Their adaptive softmax has a bias for each word and cluster, which ours has not.
"""

from ml_collections import ConfigDict

from configs.shared import SMALL, make_config, segments, training, unset

LAYERS = 16
PRESETS = {
    "small": {},
    "medium": {
        "model.hidden_dim": 256,
        "data.segment_length": 384,
        "train.batch_size": 56,
        "train.accumulate_steps": 7,
        "train.steps": 400_000,
    },
}


def get_config(argument: str = "") -> ConfigDict:
    """The settings of a variant, by default transformer-delta, and of a preset."""
    data = {
        "dataset": "wikitext_103",
        "source": "files",
        **segments(),
        # The 267,735 that are published, and padding.
        "vocab_size": 267_736,
    }
    train = training(
        batch_size=96,
        # The Transformer's attention weights of a whole batch would take 16 GB.
        accumulate_steps=8,
        epochs=unset(int),
        steps=500_000,
        # Validation slides, too: it takes as long as 2,000 updates.
        validate_every=20_000,
        keep_checkpoints=10,
        schedule="cosine",
        learning_rate_max=2.5e-4,
        warmup_steps=2000,
        clip_norm=0.25,
        adam_beta_1=0.9,
        adam_beta_2=0.999,
        adam_epsilon=1e-8,
    )
    model = {
        **SMALL,
        "hidden_dim": 128,
        "ffn_dim": 2048,
        "adaptive_cutoffs": (20_000, 40_000, 200_000),
        "initial_deviation": 0.02,
    }
    decode = {
        "sliding_window": True,
        "segment_length": unset(int),
        "continuation_length": 100,
        "temperature": 1.0,
        "top_k": unset(int),
        "top_p": unset(float),
        "seed": unset(int),
        "beam_size": unset(int),
        "batch_size": 64,
    }
    config = make_config(
        "wikitext_103",
        "language_modelling",
        argument,
        "transformer-delta",
        PRESETS,
        model=model,
        data=data,
        train=train,
        decode=decode,
    )
    if "num_blocks" in config.model:
        config.model.num_depths = LAYERS // config.model.num_blocks
    else:
        config.model.num_layers = LAYERS
        config.model.norm = "post"
    return config
