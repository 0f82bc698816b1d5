"""What a tokenizer is."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import tensorflow as tf

from common.fields import Field


class Tokenizer(ABC):
    """Text to token ids, inside the TensorFlow graph. Id 0 is padding.

    Class attributes:
      name: its key in `data.tokenizers.TOKENIZERS`, which `data.tokenizer` gives.
      FIELDS: its own fields in the `data` part of a config.
      end: the id that closes a line of plain text; None if it reads no such text. One
        that has it has `decode(ids)`, too: texts, string [batch], of ids, int32 ragged
        [batch, (length)].
      modules: what a process must import, TensorFlow apart, before it loads an export.

    Attributes:
      vocabulary_size: ids, padding included.
      identity: a value for JSON that differs between tokenizers that differ.
      resources: tables of TensorFlow that it looks things up in, which an export holds.
    """

    name: str
    FIELDS: Mapping[str, Field] = {}
    end: int | None = None
    modules = ()
    vocabulary_size: int
    identity: object
    resources = ()

    @classmethod
    @abstractmethod
    def make(cls, config) -> "Tokenizer":
        """The one that the `data` part of a config asks for.

        Raises:
          DataError: if the vocabulary, or the data to learn one from, cannot be had.
        """

    @classmethod
    def is_saved(cls, config, directory: Path) -> bool:
        """Whether the config asks for the vocabulary that was saved to the directory;
        a run goes on with no other. What would be learned is not known before."""
        return True

    @abstractmethod
    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Token ids, int32 [batch, (length)], of a string tensor [batch]."""

    @abstractmethod
    def names(self, ids) -> list[str]:
        """What to call ids, padding apart, for people: texts that are visible."""

    @abstractmethod
    def save(self, directory: Path) -> None:
        """Writes files of its own, if it needs any."""

    @classmethod
    @abstractmethod
    def load(cls, directory: Path) -> "Tokenizer":
        """The one that `save` wrote."""


class ListTokenizer(Tokenizer):
    """One whose tokens are listed, in the order of their ids, in a file, one a line.

    Class attributes:
      file_name: of the list that `save` writes.
      first_id: that of the first token listed; 1 where padding is not listed.

    Args:
      vocabulary: the tokens.
    """

    file_name: str
    first_id = 0

    def __init__(self, vocabulary: Sequence[str]):
        self.vocabulary = vocabulary
        self.vocabulary_size = self.first_id + len(vocabulary)
        self.identity = [self.name, *vocabulary]

    def names(self, ids):
        return [self.vocabulary[i - self.first_id] for i in ids]

    def save(self, directory):
        write_list(self.vocabulary, directory / self.file_name)

    @classmethod
    def load(cls, directory):
        return cls(read_list(directory / cls.file_name))


def write_list(names: Iterable[str], path: Path) -> None:
    """Writes the names of all ids, one a line."""
    path.write_text("".join(name + "\n" for name in names), encoding="utf-8")


def read_list(path: Path) -> list[str]:
    """What `write_list` wrote."""
    # As bytes: a carriage return within a name ends no line.
    return path.read_bytes().decode().split("\n")[:-1]
