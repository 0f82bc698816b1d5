"""Made data in the layout that `--data_dir` expects."""

import random

from reproduction.experiment import Folder
from tests.classification import WORDS, write_ag_news, write_imdb

SPLITS = {"train": 60, "val": 8, "test_2016_flickr": 8}
LETTERS = {"en": "abcde", "de": "vwxyz", "fr": "klmno"}


def make_data(folder):
    """Writes AG News, IMDB, Multi30k in three languages, and a list of word pieces."""
    (folder / "ag_news_csv").mkdir(parents=True)
    write_ag_news(folder / "ag_news_csv")
    write_imdb(folder)
    (folder / Folder.VOCABULARY).write_text(WORDS)
    (folder / "multi30k").mkdir()
    draw = random.Random(0)
    for split, count in SPLITS.items():
        sentences = [
            [draw.randrange(5) for _ in range(draw.randint(2, 6))] for _ in range(count)
        ]
        for language, letters in LETTERS.items():
            lines = [" ".join(letters[i] * 2 for i in one) for one in sentences]
            path = folder / "multi30k" / f"{split}.{language}"
            path.write_text("".join(line + "\n" for line in lines))
    return folder
