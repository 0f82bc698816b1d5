"""The argument of a config: configs/TASK.py:VARIANT[,PRESET]."""

from collections.abc import Collection

from common.errors import UserError
from models import variants


def parse(
    task: str, argument: str, default_variant: str, presets: Collection[str]
) -> tuple[str, str]:
    """The variant and the preset that an argument names.

    Args:
      task: name of the config file, for errors.
      argument: "VARIANT", "VARIANT,PRESET", or "" for the defaults.
      default_variant: where the argument names none.
      presets: what the config offers, the default first.

    Raises:
      UserError: if either is unknown.
    """
    variant, _, preset = argument.partition(",")
    variant, preset = variant or default_variant, preset or next(iter(presets))
    for what, found, known in (
        ("variant", variant, variants()),
        ("preset", preset, presets),
    ):
        if found not in known:
            raise UserError(
                f"--config=configs/{task}.py:{argument}: expected a {what} out of "
                f"{', '.join(known)}, found {found}"
            )
    return variant, preset
