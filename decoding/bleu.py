"""BLEU three ways, and chrF, by sacrebleu."""

from sacrebleu.metrics import BLEU, CHRF

# Tokenization moves BLEU by more than a point, so each figure names its own. The
# authors' released script lower-cases and splits at white space.
METRICS = {
    "bleu_13a": lambda: BLEU(tokenize="13a"),
    "bleu_intl": lambda: BLEU(tokenize="intl"),
    "bleu_authors": lambda: BLEU(tokenize="none", lowercase=True),
    "chrf": lambda: CHRF(),
}
# The one to set beside the paper's figures.
AS_PUBLISHED = "bleu_authors"


def score(hypotheses: list[str], references: list[str]) -> tuple[dict, dict]:
    """Scores of a corpus, from 0 to 100, and sacrebleu's signature of each."""
    scores, signatures = {}, {}
    for name, make in METRICS.items():
        metric = make()
        value = metric.corpus_score(hypotheses, [references]).score
        scores[name] = round(value, 2)
        signatures[name] = str(metric.get_signature())
    return scores, signatures
