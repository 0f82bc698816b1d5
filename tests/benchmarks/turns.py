"""Calls that are made, and whose seconds are made up: what rows say is then exact."""

PAIR = ["transformer", "transevolve-fullff-1"]
WIDTH, HEADS = 32, 8
TWO_SECONDS = [1.0, 2.0, 4.0]  # of three rounds, the median


def made_up(monkeypatch, module, seconds):
    """Lets `interleave` of a module make each call once, and say what it took.

    Args:
      seconds: function of a call's name, the seconds of each round.
    """

    def interleave(calls, rounds, title=""):
        for call in calls.values():
            call()
        return {name: seconds(name) for name in calls}

    monkeypatch.setattr(module, "interleave", interleave)
