"""Multi30k, captions of photographs (Elliott et al. 2016): not in the paper.

English to German, and to French with `--config.data.target_language=fr`: 29,000 pairs,
short enough for a laptop. The settings that differ from the paper's fit that size.
"""

from configs.common import parallel_text_data, translation_config


def get_config(variant: str = "transevolve-fullff-2"):
    """See `configs.common.VARIANTS` for the variants."""
    data = parallel_text_data(
        "de",
        source="files",
        train_name="train",
        validation_name="val",
        test_name="test_2016_flickr",
        vocab_size=8000,
        max_length=64,
        bucket_lengths=(12, 16, 20, 24, 32, 64),
    )
    return translation_config(
        "multi30k",
        variant,
        "small",
        data,
        extra_length=50,
        batch_size=64,
        steps=4000,
        learning_rate_max=0.4,
        warmup_steps=400,
        checkpoint_every=200,
    )
