"""Downloads that show how far they are, and end where a server says nothing more."""

import hashlib
import http.client
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

from common.processes import within
from common.progress import progress_bar

SILENCE_SECONDS = 15  # with these a script without a network ends within 30 s
BLOCK_SIZE = 2**16  # bytes


class DownloadError(Exception):
    """What came instead of a file; one line that begins with its URL."""


@contextmanager
def _urlopen(url, timeout):
    # Some servers refuse what calls itself urllib.
    request = urllib.request.Request(url, headers={"User-Agent": "transevolve"})
    with urllib.request.urlopen(request, timeout=timeout) as response:
        yield response, iter(partial(response.read, BLOCK_SIZE), b"")


@contextmanager
def opened(
    url: str, open_url: Callable[..., AbstractContextManager] = _urlopen
) -> Iterator[tuple[object, Iterable[bytes]]]:
    """Opens a URL: the response, and blocks of bytes that a progress bar counts.

    Args:
      url: of a file.
      open_url: function of a URL and `timeout` in seconds, whose context is a response
        with `headers`, and its blocks of bytes.

    Raises:
      DownloadError: if nothing comes for `SILENCE_SECONDS`, at first or later, or the
        server or the network refuses. Reading the blocks raises it, too.
    """
    opening = open_url(url, timeout=SILENCE_SECONDS)
    with ExitStack() as stack:
        with _named(url):
            response, blocks = within(SILENCE_SECONDS, opening.__enter__)
        stack.push(opening)
        yield response, _counted(url, blocks, response.headers.get("Content-Length"))


def download(url: str, path: Path, sha256: str) -> None:
    """Downloads a file.

    Raises:
      DownloadError: as `opened`, or if the file has another SHA-256.
    """
    digest = hashlib.sha256()
    with opened(url) as (_, blocks), path.open("wb") as file:
        for block in blocks:
            digest.update(block)
            file.write(block)
    if digest.hexdigest() != sha256:
        raise DownloadError(f"{url}: another file, of SHA-256 {digest.hexdigest()}")


def _counted(url, blocks, size):
    bar = progress_bar(
        desc="downloading",
        total=int(size) if size else None,
        unit="B",
        unit_scale=True,
        leave=None,  # below another bar it goes in the end
    )
    with _named(url), bar:
        for block in blocks:
            yield block
            bar.update(len(block))


@contextmanager
def _named(url):
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(f"{url}: {_reason(error)}") from error


def _reason(error):
    # Libraries wrap what the system said, which says it best.
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
    if isinstance(error, TimeoutError):
        return f"no answer for {SILENCE_SECONDS} s"
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(text.split())[:300] or type(error).__name__
