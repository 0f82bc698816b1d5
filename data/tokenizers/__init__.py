"""Text to token ids, inside the TensorFlow graph.

To add a tokenizer, write its `Tokenizer` in a file here and name it in `TOKENIZERS`,
and in the `TOKENIZERS` of the datasets that it can read.
"""

import json
from pathlib import Path

from data.rows import DataError
from data.tokenizers.bytes import ByteTokenizer
from data.tokenizers.subwords import SubwordTokenizer
from data.tokenizers.symbols import SymbolTokenizer
from data.tokenizers.tokenizer import Tokenizer
from data.tokenizers.word_pieces import WordPieceTokenizer
from data.tokenizers.words import WordTokenizer

TOKENIZERS: dict[str, type[Tokenizer]] = {
    "bytes": ByteTokenizer,
    "symbols": SymbolTokenizer,
    "wordpiece": WordPieceTokenizer,
    "subwords": SubwordTokenizer,
    "words": WordTokenizer,
}
DESCRIPTION = "tokenizer.json"


def make_tokenizer(config) -> Tokenizer:
    """The tokenizer that the `data` part of a config asks for.

    Raises:
      DataError: if its vocabulary, or the data to learn one from, cannot be had.
    """
    return TOKENIZERS[config.tokenizer].make(config)


def save(tokenizer: Tokenizer, directory: Path) -> None:
    """Writes a tokenizer to a folder from which `load` makes it again."""
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(directory)
    (directory / DESCRIPTION).write_text(json.dumps({"kind": tokenizer.name}) + "\n")


def load(directory: Path) -> Tokenizer:
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
