"""Parallel text: files, archives, and what is said of bad input."""

import gzip

import pytest

from configs import multi30k
from data.buckets import Buckets
from data.datasets import parallel_text
from data.rows import DataError, GoodRows, Pair
from data.stream import StreamedBatches

ENGLISH = b"A dog.\nTwo  men \xe2\x80\xa8 run.\r\nLast"
GERMAN = b"Ein Hund.\nZwei M\xc3\xa4nner.\n\xc2\xa0Ende \n"
PAIRS = [
    Pair(b"A dog.", b"Ein Hund."),
    Pair("Two  men \u2028 run.".encode(), "Zwei M\u00e4nner.".encode()),
    Pair(b"Last", "\u00a0Ende ".encode()),
]


def files_in(directory, **changes):
    data = multi30k.get_config().data
    data.update(dir=str(directory), **changes)
    return data


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.en").write_bytes(ENGLISH)
    (tmp_path / "train.de").write_bytes(GERMAN)
    return tmp_path


def read(folder, split="train", **changes):
    return list(parallel_text.read(files_in(folder, **changes), split))


def test_only_line_feeds_end_a_line(folder):
    assert read(folder) == PAIRS


def test_archives_are_read_alike_and_plain_files_first(folder):
    (folder / "val.en.gz").write_bytes(gzip.compress(ENGLISH))
    (folder / "val.de").write_bytes(GERMAN)
    assert read(folder, "validation") == PAIRS
    (folder / "val.de.gz").write_bytes(gzip.compress(b"other\n"))
    assert read(folder, "validation") == PAIRS


def test_other_languages_are_read(folder):
    (folder / "train.fr").write_bytes(b"a\nb\nc")
    found = read(folder, source_language="fr", target_language="en")
    assert [pair.source for pair in found] == [b"a", b"b", b"c"]
    assert found[0].target == PAIRS[0].source


@pytest.mark.parametrize(
    "english, german, place, message",
    [
        (b"a\n\nb", b"x\ny\nz", "train.en:2", "a sentence, found an empty line"),
        (b"a\nb\nc", b"x\n \t\nz", "train.de:2", "a sentence, found an empty line"),
        (
            b"a\nb\nc",
            b"x\n12\xff\nz",
            "train.de:2",
            "UTF-8 text, found the invalid byte 0xff at column 3",
        ),
    ],
)
def test_bad_rows_name_file_and_line(folder, english, german, place, message):
    (folder / "train.en").write_bytes(english)
    (folder / "train.de").write_bytes(german)
    first, error, last = read(folder)
    assert str(error) == f"{folder / place}: expected {message}"
    rows = GoodRows([first, error, last], "skip")
    assert list(rows) == [first, last] and rows.skipped == 1


@pytest.mark.parametrize("longer, shorter", [("en", "de"), ("de", "en")])
def test_files_of_unlike_length(folder, longer, shorter):
    (folder / f"train.{longer}").write_bytes(b"a\n" * 5)
    (folder / f"train.{shorter}").write_bytes(b"a\n" * 3)
    rows = read(folder)
    assert [isinstance(row, Pair) for row in rows] == [True] * 3 + [False] * 2
    assert str(rows[4]) == (
        f"{folder}/train.{longer}:5: expected a line in {folder}/train.{shorter}, too, "
        "found its end after 4 lines"
    )


def test_missing_and_empty_files(folder):
    with pytest.raises(DataError, match="expected the file val.en or val.en.gz, found"):
        read(folder, "validation")
    (folder / "train.de").write_bytes(b"")
    with pytest.raises(DataError, match=r"train.de:1: expected a sentence a line"):
        read(folder)
    with pytest.raises(DataError, match=r"dir: expected .* train.en\[.gz\] and train"):
        read("")
    with pytest.raises(DataError, match="nowhere: expected the folder of train.en"):
        read("nowhere")


@pytest.mark.parametrize("damage", ["cut short", "changed", "no archive"])
def test_damaged_archives_are_refused(folder, damage):
    text = b"".join(b"line %d\n" % number for number in range(20_000))
    archive = bytearray(gzip.compress(text))
    if damage == "cut short":
        archive = archive[: len(archive) // 2]
    elif damage == "changed":
        archive[len(archive) // 2] ^= 0xFF
    else:
        archive = text
    (folder / "train.de").unlink()
    (folder / "train.de.gz").write_bytes(archive)
    (folder / "train.en").write_bytes(text)
    with pytest.raises(DataError, match=r"train.de.gz:\d+: expected a whole gzip file"):
        read(folder)


def test_identity_changes_with_the_files(folder):
    data = files_in(folder)
    before = parallel_text.identify(data, "train")
    assert parallel_text.identify(data, "train") == before
    (folder / "train.de").write_bytes(GERMAN + b"x\n")
    assert parallel_text.identify(data, "train") != before


def test_packed_text_is_the_same_text(folder, tmp_path):
    packed = tmp_path / "packed"
    packed.mkdir()
    for name, text in (("train.en.gz", ENGLISH), ("train.de.gz", GERMAN)):
        (packed / name).write_bytes(gzip.compress(text))
    plain, packed = files_in(folder), files_in(packed)
    fingerprint = parallel_text.fingerprint(plain, "train")
    assert parallel_text.fingerprint(packed, "train") == fingerprint
    # What earlier versions kept is known again.
    earlier = parallel_text.packed_fingerprint(packed, "train")
    assert earlier != fingerprint
    assert parallel_text.packed_fingerprint(plain, "train") == fingerprint
    batches = StreamedBatches(
        "train", None, Buckets((8,), 2), 4, fingerprint, lambda: earlier
    )
    for stored in (fingerprint, earlier):
        assert batches.has_fingerprint(stored)
    assert not batches.has_fingerprint(earlier[::-1])
    assert not batches.has_fingerprint(None)


def test_a_byte_order_mark_is_no_text(folder):
    (folder / "train.en").write_bytes(b"\xef\xbb\xbf" + ENGLISH)
    assert read(folder) == PAIRS


def test_real_pairs_are_all_read(shared):
    for language in ("de", "fr"):
        changes = {"target_language": language}
        for split, count in (("train", 29000), ("validation", 1014), ("test", 1000)):
            rows = read(shared / "multi30k", split, **changes)
            assert len(rows) == count
            assert all(isinstance(row, Pair) for row in rows)
