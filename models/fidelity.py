"""Whose choices, where the paper and the authors' code differ: docs/fidelity.md."""

BASES = ("paper", "official")
# What the two differ in.
CHOICES = {
    "phase": "the phase of T^l (equation 7)",
    "depth_index": "whether depths count from 1 or from 0",
    "score_scale": "the scale of the scores",
    "rotation_phase": "the phases in U and V (equation 10)",
    "rotation_scale": "the scale of U (equation 10)",
    "singular_values": "how many are held; the same ones act",
}
EXPECTED = (
    f"{' or '.join(BASES)}, and +{', +'.join(CHOICES)} for each choice that is "
    "to be the other's"
)


def official_choices(fidelity: str) -> frozenset[str]:
    """Those of `CHOICES` that are as in the authors' code.

    Args:
      fidelity: "paper" or "official", or one of these but for some choices, as in
        "paper+phase+score_scale".

    Raises:
      ValueError: if it is neither.
    """
    base, *exceptions = fidelity.split("+")
    known = base in BASES and set(exceptions) <= CHOICES.keys()
    if not known or len(set(exceptions)) < len(exceptions):
        raise ValueError(f"fidelity must be {EXPECTED}, got {fidelity!r}")
    exceptions = frozenset(exceptions)
    return exceptions if base == "paper" else CHOICES.keys() - exceptions


def is_fidelity(value) -> bool:
    """Whether `official_choices` takes it."""
    try:
        official_choices(value)
    except (ValueError, AttributeError):
        return False
    return True
