"""The three figures called BLEU are three."""

from decoding.bleu import METRICS, score


def test_perfect_output_scores_100_by_every_metric():
    texts = ["A man, (tall) sleeps .", "Two dogs run in the snow today ."]
    scores, signatures = score(texts, texts)
    assert set(scores) == set(signatures) == set(METRICS)
    assert all(value == 100 for value in scores.values())


def test_the_authors_ignores_case_and_splits_at_white_space():
    reference = ["The dog runs over the green field today ."]
    lower, signatures = score(["the dog runs over the green field today ."], reference)
    assert lower["bleu_authors"] == 100 > lower["bleu_13a"]
    assert "case:lc" in signatures["bleu_authors"]
    assert "tok:none" in signatures["bleu_authors"]
    glued, _ = score(["The dog runs over the green field today."], reference)
    assert glued["bleu_13a"] == 100 > glued["bleu_authors"]
    assert (
        "tok:13a" in signatures["bleu_13a"] and "case:mixed" in signatures["bleu_13a"]
    )


def test_intl_splits_what_13a_does_not():
    reference = ["Er sagte „ hallo “ zu dem alten Mann ."]
    scores, _ = score(["Er sagte „hallo“ zu dem alten Mann ."], reference)
    assert scores["bleu_intl"] == 100 > scores["bleu_13a"]
