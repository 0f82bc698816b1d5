"""Datasets as batches of token ids.

`DATASETS` has all of them, by the name that `data.dataset` gives. To add one, write its
module in `data/datasets/` and name it here. The module has:

- `KIND`: "classification", "parallel_text" or "plain_text", what a row is.
- `SPLITS`: out of "train", "validation" and "test". A classification dataset may lack
  "validation", which is then cut from "train".
- `TOKENIZERS`: what `data.tokenizer` may be, the usual first.
- `FIELDS`: {name: `common.fields.Field`} of the `data` part of a config, `source` among
  them. `FIELDS` below are those of every dataset. Each tokenizer, and the class that
  makes batches of a kind, have `FIELDS` of their own. Where a name is declared twice,
  the dataset's declaration holds.
- `read(config, split)`: yields the rows of a split in the order of the source, and a
  `DataError` for a bad row. It raises a `DataError` where the data cannot be had.
- `identify(config, split)`: a value for JSON that changes when the source does.
- `parse(texts)`, if not every text is an input, for classification: a function in the
  TensorFlow graph of a string tensor [batch]. It returns two: the texts that `read`
  gives the tokenizer, and what was expected and found of a text that is no input, empty
  for any other. A trained model reads its texts by it.
- `NUM_EXAMPLES`, if they are known: {split: count}, to notice that data is a part.
- `check(config)`, if fields that are good alone may not fit together: raises a
  `UserError` for them.

Each `config` is the `data` part of a config. Beside these, by its kind or tokenizer:

- Classification: `CLASS_NAMES`, the classes in the order of their labels.
- Parallel text: `test_set(config, split)`, what "validation" or "test" is called; the
  fields `source_language` and `target_language`; `fingerprint(config, split)`, like
  `identify`, but the same wherever the data lies; `packed_fingerprint`, if earlier
  versions kept another.
- Read with subwords or words: `require_files(config, *splits)`, which raises a
  `DataError` for a file that is missing.
- Read with symbols: `SYMBOLS`, all of them.

Importing this package imports no TensorFlow: processes that generate ListOps import it.
"""

from common.fields import changeable, choice, optional, text
from data.datasets import (
    ag_news,
    imdb,
    listops,
    parallel_text,
    plain_text,
    wikitext_103,
)

DATASETS = {
    "ag_news": ag_news,
    "imdb": imdb,
    "listops": listops,
    "parallel_text": parallel_text,
    "plain_text": plain_text,
    "wikitext_103": wikitext_103,
}
# `dataset` and `tokenizer` are names of registries. What becomes of bad rows may
# change: one of them may have ended the run.
FIELDS = {
    "dir": changeable(optional(text("Where the data lies; of TFDS, its data_dir."))),
    "on_error": changeable(
        choice("Whether a bad row ends the run or is left out.", "fail", "skip")
    ),
    "cache_dir": changeable(
        text("Folder of downloads, vocabularies, tokenized and generated data.")
    ),
}
