"""Messages that say which names there are."""

import pytest

from common.errors import LISTED, UserError, check_known, known_names


def test_few_names_are_listed_in_their_order():
    names = [f"name-{i}" for i in range(LISTED)]
    assert known_names("other", names) == ", ".join(names)


def test_of_many_names_the_nearest_are_shown_first():
    names = [f"transevolve-{i}" for i in range(50)] + ["transformer", "transformer-x"]
    message = known_names("transfomer", names)
    assert message.startswith("transformer, transformer-x, ")
    assert message.endswith(" (the nearest of 52 names)")
    assert message.count(",") == 4


def test_the_first_unknown_name_of_a_flag_is_refused():
    check_known("models", ["a", "b"], ("b", "a"))
    message = "^--models: expected some of a, b, found 'c'$"
    with pytest.raises(UserError, match=message):
        check_known("models", ["a", "c", "d"], ("a", "b"))
