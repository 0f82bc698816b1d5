"""Perplexity of n-gram models, what a language model is to be measured against."""

from collections.abc import Iterator

import numpy as np

from common.errors import UserError
from common.progress import progress_bar
from data.tokenizers import make_tokenizer
from tasks import TASKS
from tasks.language_modelling import LanguageModellingTask
from training import config as configuration

ORDER = 5


class KneserNey:
    """Modified Kneser and Ney's smoothing, interpolated (Chen and Goodman 1999).

        p_k(w | c) = (n(c w) - D(n(c w))) / n(c) + γ(c) p_(k-1)(w | c')

    where c' is c without its first token, γ(c) is what the discounts D leave over, and
    n counts occurrences for the longest n-grams, and for others how many tokens come
    before them. p_0 is uniform. A context that never came is left out.

    Args:
      tokens: int array (n,), of a training text.
      vocabulary_size: ids are below.
      order: words of the longest n-grams.
    """

    def __init__(self, tokens, vocabulary_size: int, order: int = ORDER):
        self.size = vocabulary_size
        # An n-gram is the number of its first tokens, times the size, and its last one.
        contexts, grams, starts = np.zeros(len(tokens), np.int64), [], None
        for length in range(1, order + 1):
            types, firsts, numbers, counts = np.unique(
                contexts * vocabulary_size + tokens[length - 1 :],
                return_index=True,
                return_inverse=True,
                return_counts=True,
            )
            if grams:
                # Of n-grams that are shorter by one: how many tokens come before.
                shorter = grams[-1]
                shorter[1] = np.bincount(starts[firsts + 1], minlength=len(shorter[0]))
            grams.append([types, counts])
            starts, contexts = numbers, numbers[:-1]
        self.orders = [self._order(*each) for each in grams]

    def _order(self, types, counts):
        """Types; their discounted counts; and of each context the total, and what the
        discounts leave over."""
        contexts = types // self.size
        occurrences = np.bincount(np.minimum(counts, 5), minlength=5).astype(float)
        _, once, twice, thrice, four = occurrences[:5]
        share = once / max(once + 2 * twice, 1)
        ratios = (twice / max(once, 1), thrice / max(twice, 1), four / max(thrice, 1))
        discounts = [0, *(n - (n + 1) * share * r for n, r in enumerate(ratios, 1))]
        taken = np.clip(np.array(discounts)[np.minimum(counts, 3)], 0, counts)
        totals = np.bincount(contexts, counts)
        left = np.bincount(contexts, taken) / np.maximum(totals, 1)
        return types, counts - taken, totals, left

    def probabilities(self, tokens) -> np.ndarray:
        """That of each token after those before it, float64 (n,)."""
        tokens = np.asarray(tokens, np.int64)
        p = np.full(len(tokens), 1 / self.size)
        contexts = np.zeros(len(tokens), np.int64)
        for types, discounted, totals, left in self.orders:
            seen = (contexts >= 0) & (contexts < len(totals))
            seen[seen] = totals[contexts[seen]] > 0
            keys = contexts * self.size + tokens
            places = np.minimum(np.searchsorted(types, keys), len(types) - 1)
            is_there = seen & (types[places] == keys)
            context = np.where(seen, contexts, 0)
            share = np.where(is_there, discounted[places], 0) / np.maximum(
                totals[context], 1
            )
            p = np.where(seen, share + left[context] * p, p)
            # The n-gram that ends here is the context of the token after.
            contexts = np.concatenate([[-1], np.where(is_there, places, -1)[:-1]])
        return p


def measure(config) -> Iterator[dict]:
    """Yields a row for each split, and of the test split for each length of n-grams.

    Words and the ends of lines are predicted as a language model predicts them, each
    after the words before it, of earlier lines too.

    Args:
      config: of language modelling, as from a file in `configs/`.

    Raises:
      UserError: for a bad config; a `DataError` for bad input.
    """
    configuration.check(config)
    kind = TASKS[config.kind]
    if not issubclass(kind, LanguageModellingTask):
        raise UserError(f"--config: expected language modelling, found {config.kind}")
    task = kind(config, make_tokenizer(config.data))
    tokens, size = task.data.text("train").tokens, task.tokenizer.vocabulary_size
    asked = [("validation", ORDER), *(("test", n) for n in range(1, ORDER + 1))]
    for split, order in progress_bar(asked, desc="n-grams", unit=" models"):
        text = task.data.text(split)
        p = KneserNey(tokens, size, order).probabilities(text.tokens)
        yield {
            "benchmark": "ngrams",
            "split": split,
            "order": order,
            "words": text.words,
            "tokens": len(text.tokens),
            "perplexity": round(float(np.exp(-np.log(p).sum() / text.words)), 2),
        }
