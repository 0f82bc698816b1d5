"""A mistake of the user, to be said in one line."""


class UserError(ValueError):
    """A flag, config or workdir that cannot be used."""
