"""Text to token ids, inside the TensorFlow graph. Id 0 is padding everywhere.

To add a tokenizer, write its class in a file here and name it in `TOKENIZERS`, and in
the `TOKENIZERS` of the datasets that it can read. The class has:

- `name`: its key in `TOKENIZERS`, which `data.tokenizer` gives.
- `FIELDS`: {name: `common.fields.Field`} of its own fields in the `data` part of a
  config.
- `make(config)`: of the `data` part of a config. It raises a `DataError` where the
  vocabulary, or the data to learn one from, cannot be had.
- `save(directory)` and `load(directory)`, for files of its own.
- `is_saved(config, directory)`, if it has a field `vocab_file`: whether the config asks
  for the vocabulary that was saved to the directory. A run goes on with no other.

Of these, all but `save` are class methods. An instance has:

- A call from a string tensor [batch] to ids, an int32 ragged tensor [batch, (length)].
- `names(ids)`: what to call these ids, a list of texts, each of them visible.
- `vocabulary_size`: ids, padding included.
- `resources`: tables of TensorFlow that it looks things up in, which an export holds.
- `modules`: what a process must import, TensorFlow apart, before it loads an export.
- `identity`: a value for JSON that differs between tokenizers that differ.
"""

import json
from pathlib import Path

from data.errors import DataError
from data.tokenizers.bytes import ByteTokenizer
from data.tokenizers.subwords import SubwordTokenizer
from data.tokenizers.symbols import SymbolTokenizer
from data.tokenizers.word_pieces import WordPieceTokenizer

TOKENIZERS = {
    "bytes": ByteTokenizer,
    "symbols": SymbolTokenizer,
    "wordpiece": WordPieceTokenizer,
    "subwords": SubwordTokenizer,
}
DESCRIPTION = "tokenizer.json"


def make_tokenizer(config):
    """The tokenizer that the `data` part of a config asks for.

    Raises:
      DataError: if its vocabulary, or the data to learn one from, cannot be had.
    """
    return TOKENIZERS[config.tokenizer].make(config)


def save(tokenizer, directory: Path) -> None:
    """Writes a tokenizer to a folder from which `load` makes it again."""
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(directory)
    (directory / DESCRIPTION).write_text(json.dumps({"kind": tokenizer.name}) + "\n")


def load(directory: Path):
    """The tokenizer that `save` wrote to the folder.

    Raises:
      DataError: if none is there, or one of another version of this project.
    """
    path = directory / DESCRIPTION
    if not path.exists():
        raise DataError(f"{path}: expected a saved tokenizer, found no such file")
    kind = json.loads(path.read_text())["kind"]
    if kind not in TOKENIZERS:
        raise DataError(
            f"{path}: expected a tokenizer out of {', '.join(TOKENIZERS)}, found {kind}"
        )
    return TOKENIZERS[kind].load(directory)
