"""The fields that the `data` part of a config has for every dataset."""

from common.fields import changeable, choice, integer, lengths, optional, text

# `dataset` and `tokenizer` are names of registries. What becomes of bad rows may
# change: one of them may have ended the run.
FIELDS = {
    "dir": changeable(optional(text("Where the data lies; of TFDS, its data_dir."))),
    "on_error": changeable(
        choice("Whether a bad row ends the run or is left out.", "fail", "skip")
    ),
    "cache_dir": changeable(
        text("Folder of learned vocabularies, tokenized and generated data.")
    ),
}
# Where texts are batched by their length.
BUCKET_FIELDS = {
    "max_length": integer(
        "The most tokens: a longer text is cut, a longer training pair left out.",
        maximum=1_000_000,
    ),
    "bucket_lengths": lengths(
        "Lengths that batches have, up to max_length; a text goes to the first that "
        "holds it."
    ),
}


def fit_buckets(config) -> None:
    """Makes `bucket_lengths` end at `max_length`, so that one flag sets both.

    Longer buckets are dropped, and one of `max_length` is added where none is.

    Args:
      config: the `data` part of a config; its `bucket_lengths` change.
    """
    limit = config.max_length
    shorter = (length for length in config.bucket_lengths if length < limit)
    config.bucket_lengths = (*shorter, limit)
