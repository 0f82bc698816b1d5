"""A mistake of the user, to be said in one line."""


class UserError(Exception):
    """A flag, field, file or workdir that cannot be used; the message is one line."""
