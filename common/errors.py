"""A mistake of the user, to be said in one line."""

import difflib
from collections.abc import Collection

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
