"""n-gram models beside smoothing written out by dictionaries."""

from collections import Counter

import numpy as np
import pytest

from benchmarks.ngrams import KneserNey, measure
from common.errors import UserError
from configs import ag_news, plain_text
from tests import plain_text as counting_text

SIZE = 7


def text(length, seed=0):
    """Tokens of which some are frequent, so that each count occurs."""
    random = np.random.default_rng(seed)
    tokens = random.choice(SIZE - 1, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05], size=length)
    return tokens.astype(np.uint16)  # 6 never comes


def counts(tokens, order):
    """{length: {n-gram: n}}: occurrences of the longest, of others tokens before."""
    grams = {
        length: Counter(
            tuple(tokens[i : i + length]) for i in range(len(tokens) - length + 1)
        )
        for length in range(1, order + 1)
    }
    continued = {order: grams[order]}
    for length in range(1, order):
        continued[length] = Counter(gram[1:] for gram in grams[length + 1])
    return continued


def by_hand(tokens, order):
    grams = counts(tokens, order)

    def discounts(length):
        n = Counter(grams[length].values())
        share = n[1] / max(n[1] + 2 * n[2], 1)
        return [0] + [
            min(max(c - (c + 1) * share * n[c + 1] / max(n[c], 1), 0), c)
            for c in (1, 2, 3)
        ]

    def probability(context, word):
        base = probability(context[1:], word) if context else 1 / SIZE
        table = grams[len(context) + 1]
        of_context = {g[-1]: n for g, n in table.items() if g[:-1] == context}
        if not of_context:
            return base
        D, total = discounts(len(context) + 1), sum(of_context.values())
        taken = {w: D[min(n, 3)] for w, n in of_context.items()}
        here = of_context.get(word, 0) - taken.get(word, 0)
        return here / total + sum(taken.values()) / total * base

    return probability


@pytest.mark.parametrize("order", [1, 2, 3])
def test_probabilities_are_those_of_the_formula(order):
    tokens, asked = text(200), np.append(text(30, seed=1), 6)
    p = KneserNey(tokens, SIZE, order).probabilities(asked)
    written_out = by_hand([*map(int, tokens)], order)
    expected = [
        written_out(tuple(map(int, asked[max(i - order + 1, 0) : i])), int(word))
        for i, word in enumerate(asked)
    ]
    np.testing.assert_allclose(p, expected, rtol=1e-9)


def test_they_add_up_to_one():
    model, prefix = KneserNey(text(300), SIZE, 4), list(text(6, seed=2))
    last = [model.probabilities([*prefix, word])[-1] for word in range(SIZE)]
    assert sum(last) == pytest.approx(1) and min(last) > 0


def test_a_text_that_counts_is_foreseen(tmp_path):
    folder = counting_text.write(tmp_path)
    config = plain_text.get_config("transformer,laptop")
    config.data.update(dir=str(folder), cache_dir=str(tmp_path / "cache"))
    rows = list(measure(config))
    assert [row["split"] for row in rows] == ["validation"] + ["test"] * 5
    perplexities = [row["perplexity"] for row in rows[1:]]
    # Of ten words one follows another; a line may end.
    assert perplexities[0] > 8 and perplexities[1] < 3


def test_another_task_is_refused():
    with pytest.raises(UserError, match="expected language modelling, found class"):
        list(measure(ag_news.get_config("transformer,laptop")))
