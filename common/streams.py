"""The standard streams of a script: closed, full, or with a reader that has ended."""

import io
import os
import sys

from common.errors import UserError

# EX_IOERR of sysexits.h.
EXIT_CODE = 74


class LostOutputError(UserError):
    """Standard output does not take what was printed."""


def secure() -> None:
    """Makes the standard streams of this process safe to write to.

    Standard error loses what it cannot take, and the work goes on. Standard output
    raises a `LostOutputError` where something is printed that it cannot take. Streams
    that are no descriptors, as in a notebook, stay as they are.
    """
    # The next file to be opened takes the lowest free number. If that is one of these
    # three, what others print gets into the file.
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)
    sys.stdout = _secured(sys.stdout, _Results(1, "w", closefd=False), "strict")
    sys.stderr = _secured(
        sys.stderr, _Messages(2, "w", closefd=False), "backslashreplace"
    )


def _secured(stream, file, errors):
    encoding = None
    if stream is not None:  # as Python sets those that were closed from the start
        try:
            if stream.fileno() != file.fileno():
                return stream
        except (AttributeError, OSError):
            return stream
        encoding, errors = stream.encoding, stream.errors
    buffer = io.BufferedWriter(file)
    return io.TextIOWrapper(buffer, encoding, errors, line_buffering=True)


class _Messages(io.FileIO):
    def write(self, data):
        try:
            return super().write(data)
        except OSError:
            return len(data)


class _Results(io.FileIO):
    _is_lost = False

    def write(self, data):
        # Python writes once more, at exit, what could not be written.
        if self._is_lost:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._is_lost = True
            raise LostOutputError(
                f"standard output: {error.strerror}; what was printed is lost, what "
                "was written to files is whole"
            ) from None
