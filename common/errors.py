"""A mistake of the user, to be said in one line."""

import difflib
from collections.abc import Collection, Iterable

# Names that a message lists; of more, the nearest are shown.
LISTED = 12


class UserError(Exception):
    """A flag, field, file or workdir that cannot be used; the message is one line."""


def known_names(name: str, known: Collection[str]) -> str:
    """What a message says of known names to somebody who gave another."""
    known = list(known)
    if len(known) <= LISTED:
        return ", ".join(known)
    nearest = difflib.get_close_matches(name, known, n=5, cutoff=0)
    return f"{', '.join(nearest)} (the nearest of {len(known)} names)"


def check_known(flag: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raises `UserError` for the first name of a flag that is not known."""
    for name in names:
        if name not in known:
            raise UserError(
                f"--{flag}: expected some of {known_names(name, known)}, found {name!r}"
            )
