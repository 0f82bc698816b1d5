"""Tables 1 to 5 of Schlag, Irie and Schmidhuber 2021.

They print BLEU and perplexity of fast weights. TransEvolve stands beside them.
"""

from configs.published import FAST_WEIGHT_BLEU, FAST_WEIGHT_PERPLEXITY
from reproduction.experiment import Experiment
from reproduction.results import Results
from reproduction.scales import Scale
from reproduction.scores import mean_score, verdict
from reproduction.sheet import DEVIATIONS, Column, Sheet

TRANSLATION = "translation"
# {(table, task of `Scale.fast_weights`): {variant and options: published figures}}
PUBLISHED = {("1", TRANSLATION): FAST_WEIGHT_BLEU, **FAST_WEIGHT_PERPLEXITY}
# Nobody has published figures of these, which stand beside table 2.
BESIDE = [f"transevolve-fullff-1{ending}" for ending in ("", "-linear", "-delta")]
OPTIONS = {
    "normalised": {"model.attention.attention_normalisation": True},
    # Features are divided by their sum in the authors' code, whatever else is.
    "undivided": {
        "model.attention.attention_normalisation": False,
        "model.attention.sum_normalisation": True,
    },
    "no positions": {"model.positions": "none"},
    "relative positions": {"model.positions": "relative-sinusoids"},
    "memory": {"data.memory": True, "decode.sliding_window": False},
}
# Of Transformer-XL, at scale paper; the other models of its size have twice as many.
STEPS = 200_000
COLUMNS = [
    Column("table", "table"),
    Column("size", "size"),
    Column("model", "model"),
    Column("options", "dot product, options"),
    Column("test", "test", 2, is_mean=True),
    Column("published_test", "published", 1),
    Column("badge", "verdict"),
    Column("difference", "difference", 2, signed=True),
    Column("validation", "validation", 2, is_mean=True),
    Column("published_validation", "published (validation)", 1),
    Column("validation_difference", "difference (validation)", 2, signed=True),
    Column("runs", "runs", 0),
    Column("parameters", "parameters", 0),
]
NOTES = {
    "bleu_13a": "BLEU is sacrebleu's 13a, as theirs, of the checkpoint with the best "
    "validation loss. The runs have the batches and the learning rate of TransEvolve, "
    "not theirs, so that the two are no same measure.",
    "perplexity": "Perplexity is a word's. At scale paper a window slides over the "
    "text, and its last token counts, as theirs. With memory, and at the other scales, "
    "the text is read segment by segment. Their output layer is an adaptive softmax, "
    "and so is ours.",
}


def rows(scale: Scale, results: Results | None = None) -> list[tuple[dict, list]]:
    """See `reproduction.tables`."""
    filled = []
    for (table, size), published in PUBLISHED.items():
        for name in (*published, *BESIDE * ((table, size) == ("2", "small"))):
            model, *options = name.split(", ")
            validation, test = published.get(name, (None, None))
            cells = {
                "table": table,
                "size": size,
                "model": model,
                "options": ", ".join(options),
                "published_validation": validation,
                "published_test": test,
            }
            task = scale.fast_weights[size]
            filled.append((cells, _runs(scale, task, model, options)))
    return filled


def _runs(scale, task, variant, options) -> list[Experiment]:
    changes = {}
    for option in options:
        changes |= OPTIONS.get(option) or _dot_product(task, variant, int(option))
    if scale.is_paper:
        changes |= _theirs(task, variant, options)
    choice = "-".join(options).replace(" ", "-")
    return scale.each_seed(task, variant, changes=changes, choice=choice)


def _theirs(task, variant, options):
    """Settings of the authors that change a run, and are no option of their tables."""
    changes = {}
    if "relative positions" in options:
        changes["train.steps"] = STEPS
    if variant.startswith("transformer-linear") and task.config == "wikitext_103":
        # Their language models divide features by their sum in every row.
        changes["model.attention.sum_normalisation"] = True
    return changes


def _dot_product(task, variant, size):
    """Hyperparameters of the feature map with which keys have so many features."""
    config = task._replace(variant=variant).make_config({})
    model = config.model
    if "favor" in variant:
        # exp(wx) and exp(-wx) of each draw. One serves a batch: a pass a microbatch.
        every = config.train.accumulate_steps
        features = {"num_features": size, "paired": True, "redraw_every": every}
    else:
        features = {"nu": size // (2 * (model.hidden_dim // model.num_heads))}
    return {f"model.attention.{field}": value for field, value in features.items()}


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`; BLEU and perplexity apart."""
    return [
        _sheet("fast-weights-bleu", "Fast weights: BLEU", "bleu_13a", scale, results),
        _sheet(
            "fast-weights", "Fast weights: perplexity", "perplexity", scale, results
        ),
    ]


def _sheet(name, title, score, scale, results):
    filled = [
        cells | _figures(cells, results.finished(runs), score, scale)
        for cells, runs in rows(scale, results)
        if (cells["size"] == TRANSLATION) == (score == "bleu_13a")
    ]
    tasks = {row["size"]: scale.fast_weights[row["size"]] for row in filled}
    notes = [scale.meaning, NOTES[score], DEVIATIONS, *results.absences(tasks)]
    return Sheet(name, title, COLUMNS, filled, notes)


def _figures(cells, records, score, scale):
    figures = {"runs": len(records)}
    for split, prefix in (("test", ""), ("validation", "validation_")):
        scores = [record.results[split] for record in records]
        mean = mean_score(one[score] for one in scores)
        figures |= mean.cells(split)
        published = cells[f"published_{split}"]
        is_same = scale.is_paper and score != "bleu_13a"
        figures |= verdict(mean.mean, published, is_same, prefix=prefix)
    tested = [record.results["test"] for record in records]
    return figures | {"parameters": tested[0]["parameters"] if tested else None}
