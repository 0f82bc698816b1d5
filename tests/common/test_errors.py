"""Messages that say which names there are."""

from common.errors import LISTED, known_names


def test_few_names_are_listed_in_their_order():
    names = [f"name-{i}" for i in range(LISTED)]
    assert known_names("other", names) == ", ".join(names)


def test_of_many_names_the_nearest_are_shown_first():
    names = [f"transevolve-{i}" for i in range(50)] + ["transformer", "transformer-x"]
    message = known_names("transfomer", names)
    assert message.startswith("transformer, transformer-x, ")
    assert message.endswith(" (the nearest of 52 names)")
    assert message.count(",") == 4
