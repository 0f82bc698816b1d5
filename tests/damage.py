"""Ways to damage a file at random."""

import random
from pathlib import Path


def _flip(content, generator):
    place = generator.randrange(len(content))
    changed = content[place] ^ (1 << generator.randrange(8))
    return content[:place] + bytes([changed]) + content[place + 1 :]


def _cut(content, generator):
    return content[: generator.randrange(len(content))]


def _empty(content, generator):
    return b""


def _erase(content, generator):
    start = generator.randrange(len(content))
    end = min(len(content), start + generator.randrange(1, 600))
    return content[:start] + bytes(end - start) + content[end:]


def _insert(content, generator):
    place = generator.randrange(len(content) + 1)
    odd = generator.choice(ODD)
    return content[:place] + odd + content[place:]


def _replace_word(content, generator):
    words = content.split(b" ")
    words[generator.randrange(len(words))] = generator.choice(ODD)
    return b" ".join(words)


def _drop_line(content, generator):
    lines = content.splitlines(keepends=True)
    del lines[generator.randrange(len(lines))]
    return b"".join(lines)


def _repeat_line(content, generator):
    lines = content.splitlines(keepends=True)
    line = lines[generator.randrange(len(lines))]
    lines.insert(generator.randrange(len(lines)), line)
    return b"".join(lines)


def _noise(content, generator):
    return generator.randbytes(generator.randrange(1, 2000))


ODD = [
    *(b"\0", b"\xff", b"\xc3", b"\r", b"\n", b"\n\n", b"\t", b'"', b'""', b",", b" "),
    *(b"-1", b"0", b"5", b"1e400", b"NaN", b"null", b"{}", b"[]", b"true", b"\\", b"]"),
    "\u2028 \u2029 \ufeff \U0001f600 \u0301".encode(),
    b"[MAX",
    b"x" * 100_000,
    b"a " * 50_000,
]
BINARY = [_flip, _cut, _empty, _erase, _noise]
TEXT = [*BINARY, _insert, _replace_word, _drop_line, _repeat_line]


def damage(path: Path, generator: random.Random) -> str:
    """Damages a file in one way or removes it; says what was done."""
    if generator.random() < 0.05:
        path.unlink()
        return f"{path.name} removed"
    content = path.read_bytes()
    packed = path.suffix in (".gz", ".npy", ".model") or "weights" in path.name
    how = generator.choice(BINARY if packed else TEXT)
    try:
        path.write_bytes(how(content, generator))
    except (ValueError, IndexError):  # nothing left to damage
        path.write_bytes(b"?")
    return f"{path.name} {how.__name__}"
