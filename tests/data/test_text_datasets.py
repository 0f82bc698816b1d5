"""AG News and IMDB: their layouts, and what is said of bad input."""

import io
import os
import tarfile

import pytest

from configs import ag_news as ag_news_config
from configs import imdb as imdb_config
from data.datasets import ag_news, imdb
from data.rows import DataError, Example, GoodRows

GOOD = '"3","Wall St.","Stocks ""fall"", oil rises"\n"1","UN","Talks"\n'
REVIEWS = {
    "train/pos/0_9.txt": b"Great fun.",
    "train/neg/0_2.txt": b"Dull.<br /><br />And long.",
    "test/pos/1_10.txt": "Sch\u00f6n.".encode(),
    "test/neg/2_1.txt": b"No.",
}


def news(directory, **changes):
    data = ag_news_config.get_config().data
    data.update(source="files", dir=str(directory), **changes)
    return data


def reviews(path, **changes):
    data = imdb_config.get_config().data
    data.update(source="files", dir=str(path), **changes)
    return data


@pytest.fixture
def ag_news_csv(tmp_path):
    folder = tmp_path / "ag_news_csv"
    folder.mkdir()
    (folder / "train.csv").write_text(GOOD)
    return folder


@pytest.fixture
def acl_imdb(tmp_path):
    for name, text in REVIEWS.items():
        path = tmp_path / "aclImdb" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    return tmp_path / "aclImdb"


def test_ag_news_files(ag_news_csv):
    expected = [
        Example(b'Wall St. Stocks "fall", oil rises', 2),
        Example(b"UN Talks", 0),
    ]
    assert list(ag_news.read(news(ag_news_csv), "train")) == expected
    assert list(ag_news.read(news(ag_news_csv.parent), "train")) == expected


@pytest.mark.parametrize(
    "row, message",
    [
        ('"1","one"', "three columns"),
        ('"5","a","b"', "a class from 1 to 4, found '5'"),
        ('"x","a","b"', "a class from 1 to 4, found 'x'"),
        ('"2","a\xff","b"', "UTF-8 text, found the invalid byte 0xff at column 7"),
        ('"2","a"b","c"', "three columns"),
    ],
)
def test_bad_news_rows_name_file_and_line(ag_news_csv, row, message):
    path = ag_news_csv / "train.csv"
    path.write_bytes(f"{GOOD}{row}\n{GOOD}".encode("latin-1"))
    rows = list(ag_news.read(news(ag_news_csv), "train"))
    bad = [row for row in rows if isinstance(row, DataError)]
    assert len(bad) == 1 and len(rows) == 5
    assert str(bad[0]).startswith(f"{path}:3: expected ")
    assert message in str(bad[0])


def test_rows_that_span_lines_are_named_by_their_first(ag_news_csv):
    path = ag_news_csv / "train.csv"
    path.write_text('"1","two\nlines","x"\n"9","a\nb","c"\n"1","open\n"2","a","b"\n')
    good, *bad, last = ag_news.read(news(ag_news_csv), "train")
    assert good == Example(b"two\nlines x", 0) and last == Example(b"a b", 1)
    places = [str(error).split(": expected ")[0] for error in bad]
    # After a bad row the next begins on the line after its first.
    assert places == [f"{path}:3", f"{path}:4", f"{path}:5"]
    assert "found a quote that opens here and closes no field" in str(bad[2])


def test_a_row_with_a_bad_line_is_bad_as_a_whole(ag_news_csv):
    path = ag_news_csv / "train.csv"
    path.write_bytes(b'"1","a","one\n\xff\ntwo"\n"2","b","c"\n')
    bad, *rest, good = ag_news.read(news(ag_news_csv), "train")
    assert str(bad).startswith(f"{path}:2: expected UTF-8")
    assert len(rest) == 2 and all(isinstance(error, DataError) for error in rest)
    assert good == Example(b"b c", 1)


@pytest.mark.parametrize(
    "bad, closing",
    [
        ('2,"left open,film', "3,news,film"),
        ('2,"left open,film', '3,"news",film'),
        ('2,"left open,film', '3,news,film"'),
        ('2,"left" open,film', "3,news,film"),
        ('2,left,"open film', '3,news,film"'),
    ],
)
def test_a_quote_left_open_loses_one_row(ag_news_csv, bad, closing):
    """Rows of which hardly one has a quote: none would end it for thousands of rows."""
    path = ag_news_csv / "train.csv"
    rows = [f"{i % 4 + 1},news,film {i}" for i in range(3000)]
    rows[1], rows[2500] = bad, closing
    path.write_text("".join(row + "\n" for row in rows))
    rows = GoodRows(ag_news.read(news(ag_news_csv), "train"), "skip")
    assert (len(list(rows)), rows.skipped) == (2999, 1)
    with pytest.raises(DataError, match=f"^{path}:2: expected three columns"):
        list(GoodRows(ag_news.read(news(ag_news_csv), "train")))


def test_a_byte_order_mark_is_no_text(ag_news_csv, acl_imdb):
    path = ag_news_csv / "train.csv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert list(ag_news.read(news(ag_news_csv), "train"))[1] == Example(b"UN Talks", 0)
    review = acl_imdb / "train/pos/0_9.txt"
    review.write_bytes(b"\xef\xbb\xbf" + review.read_bytes())
    *_, last = imdb.read(reviews(acl_imdb), "train")
    assert last.text == REVIEWS["train/pos/0_9.txt"]


def test_missing_and_empty_files(ag_news_csv):
    with pytest.raises(DataError, match=r"test.csv: expected CSV rows .* no such file"):
        list(ag_news.read(news(ag_news_csv), "test"))
    (ag_news_csv / "test.csv").touch()
    with pytest.raises(DataError, match=r"test.csv:1: expected .* an empty file"):
        list(ag_news.read(news(ag_news_csv), "test"))
    with pytest.raises(DataError, match="nowhere: expected the folder ag_news_csv/"):
        list(ag_news.read(news("nowhere"), "test"))
    with pytest.raises(DataError, match="--config.data.dir: expected the path"):
        list(ag_news.read(news(""), "test"))


def test_imdb_folder_and_archive_are_read_alike(acl_imdb, tmp_path):
    archive = tmp_path / "aclImdb_v1.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        # In another order than the folder's.
        for name, text in reversed(REVIEWS.items()):
            member = tarfile.TarInfo(f"aclImdb/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    expected = {
        "train": [
            Example(REVIEWS["train/neg/0_2.txt"], 0),
            Example(REVIEWS["train/pos/0_9.txt"], 1),
        ],
        "test": [
            Example(REVIEWS["test/neg/2_1.txt"], 0),
            Example(REVIEWS["test/pos/1_10.txt"], 1),
        ],
    }
    for split, examples in expected.items():
        for place in (acl_imdb, tmp_path, archive):
            assert list(imdb.read(reviews(place), split)) == examples


def test_bad_reviews_name_file_and_line(acl_imdb):
    bad = acl_imdb / "train/pos/0_9.txt"
    bad.write_bytes(b"fine\nnot \xc3( fine")
    *_, error = imdb.read(reviews(acl_imdb), "train")
    assert str(error) == (
        f"{bad}:2: expected UTF-8 text, found the invalid byte 0xc3 at column 5"
    )
    bad.write_bytes(b"")
    *_, error = imdb.read(reviews(acl_imdb), "train")
    assert str(error) == f"{bad}:1: expected a review, found an empty file"


def test_imdb_notices_reviews_changed_in_place(acl_imdb):
    before = imdb.identify(reviews(acl_imdb), "train")
    assert imdb.identify(reviews(acl_imdb), "train") == before
    (acl_imdb / "train/pos/0_9.txt").write_bytes(b"Changed.")
    assert imdb.identify(reviews(acl_imdb), "train") != before


def test_identities_are_of_the_content(ag_news_csv, acl_imdb, tmp_path):
    """Not of a name, a size or a time."""
    path, review = ag_news_csv / "train.csv", acl_imdb / "train/pos/0_9.txt"
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(acl_imdb, "aclImdb")
    sources = {
        path: lambda: ag_news.identify(news(path.parent), "train"),
        review: lambda: imdb.identify(reviews(acl_imdb), "train"),
        archive: lambda: imdb.identify(reviews(archive), "train"),
    }
    for file, identify in sources.items():
        content, status, before = file.read_bytes(), file.stat(), identify()
        file.write_bytes(content.replace(b"Great", b"Awful").replace(b'"3"', b'"2"'))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert file.stat().st_size == status.st_size
        assert identify() != before
        file.write_bytes(content)
        assert identify() == before
    before = [identify() for identify in sources.values()]
    moved = tmp_path / "moved"
    for folder in (ag_news_csv, acl_imdb, archive):
        folder.rename(moved.with_name(f"moved-{folder.name}"))
    path, acl_imdb, archive = (
        tmp_path / f"moved-{name}"
        for name in ("ag_news_csv/train.csv", "aclImdb", "a.tar")
    )
    assert [identify() for identify in sources.values()] == before


def test_imdb_without_one_class(acl_imdb, tmp_path):
    archive = tmp_path / "half.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for split in ("train", "test"):
            tar.add(acl_imdb / split / "pos", f"aclImdb/{split}/pos")
    message = r"half.tar.gz: expected reviews in aclImdb/train/neg/\*.txt, found none"
    with pytest.raises(DataError, match=message):
        list(imdb.read(reviews(archive), "train"))
    (acl_imdb / "train/pos/0_9.txt").unlink()
    with pytest.raises(DataError, match=r"expected reviews in aclImdb/train/pos/\*.tx"):
        list(imdb.read(reviews(acl_imdb), "train"))


def test_imdb_without_reviews(acl_imdb, tmp_path):
    archive = tmp_path / "other.tar.gz"
    with tarfile.open(archive, "w:gz"):
        pass
    with pytest.raises(DataError, match="other.tar.gz: expected reviews in aclImdb/"):
        list(imdb.read(reviews(archive), "train"))
    archive.write_text("no archive")
    with pytest.raises(DataError, match="other.tar.gz: expected the folder aclImdb/"):
        list(imdb.read(reviews(archive), "train"))
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(acl_imdb, "aclImdb")
    damaged = bytearray(archive.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    archive.write_bytes(damaged)
    with pytest.raises(DataError, match="other.tar.gz: expected the folder aclImdb/"):
        list(imdb.read(reviews(archive), "train"))
    (acl_imdb / "train/pos/0_9.txt").unlink()
    (acl_imdb / "train/pos").rmdir()
    with pytest.raises(DataError, match="train/pos: expected .* found no such folder"):
        list(imdb.read(reviews(acl_imdb), "train"))


def test_a_damaged_archive_is_refused_wherever_the_damage_is(acl_imdb, tmp_path):
    """A reader that stops at the last entry sees neither the sum nor the end."""
    for mode, name in (("w:gz", "a.tar.gz"), ("w", "a.tar"), ("w:bz2", "a.tar.bz2")):
        archive = tmp_path / name
        with tarfile.open(archive, mode) as tar:
            tar.add(acl_imdb, "aclImdb")
        list(imdb.read(reviews(archive), "train"))
        whole = archive.read_bytes()
        blocks = range(0, len(whole.rstrip(b"\0")), tarfile.BLOCKSIZE)
        cuts = blocks if mode == "w" else range(1, len(whole), 97)
        flips = [] if mode == "w" else range(len(whole) - 8, len(whole))
        for cut in cuts:
            archive.write_bytes(whole[:cut])
            with pytest.raises(DataError, match=name):
                list(imdb.read(reviews(archive), "train"))
        for place in flips:
            flipped = bytearray(whole)
            flipped[place] ^= 1
            archive.write_bytes(flipped)
            if mode == "w:gz":  # its last eight bytes are its sum and its length
                with pytest.raises(DataError, match=name):
                    list(imdb.read(reviews(archive), "train"))


@pytest.mark.parametrize(
    "name, kind, found",
    [
        ("aclImdb/train/pos/1_1.txt", tarfile.SYMTYPE, "expected a file"),
        ("aclImdb/train/pos/1_1.txt", tarfile.LNKTYPE, "expected a file"),
        ("aclImdb/train/pos/1_1.txt", tarfile.DIRTYPE, "expected a file"),
        ("aclImdb/train/pos/1_1.txt", tarfile.FIFOTYPE, "expected a file"),
        ("aclImdb/train/pos/../neg/1_1.txt", tarfile.REGTYPE, "expected a name below"),
        ("/aclImdb/train/pos/1_1.txt", tarfile.REGTYPE, "expected a name below"),
    ],
)
def test_an_archive_with_other_entries_is_refused(tmp_path, name, kind, found):
    archive = tmp_path / "odd.tar"
    with tarfile.open(archive, "w") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        tar.addfile(member)
    with pytest.raises(DataError, match=f"odd.tar:.*1_1.txt: {found}"):
        list(imdb.read(reviews(archive), "train"))


def test_a_folder_with_the_name_of_a_review_is_refused(acl_imdb):
    (acl_imdb / "train/pos/5_5.txt").mkdir()
    with pytest.raises(DataError, match="5_5.txt: expected a file"):
        list(imdb.read(reviews(acl_imdb), "train"))


def test_row_errors_fail_or_are_counted():
    rows = [Example(b"a", 0), DataError("x"), Example(b"b", 1), DataError("y")]
    with pytest.raises(DataError, match="x"):
        list(GoodRows(rows))
    good = GoodRows(rows, "skip")
    assert list(good) == [rows[0], rows[2]]
    assert good.skipped == 2


def test_real_texts_are_all_read(shared):
    data = news(shared / "ag_news_csv")
    for split, count in (("train", 6600), ("test", 1000)):
        rows = list(ag_news.read(data, split))
        assert len(rows) == count
        assert {row.label for row in rows} == {0, 1, 2, 3}
    data = reviews(shared / "aclImdb_part.tar.gz")
    rows = list(imdb.read(data, "test"))
    assert len(rows) == 2000
    assert sum(row.label for row in rows) == 1000
