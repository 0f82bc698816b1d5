"""Table 2: BLEU of translation, and parameters."""

from configs.published import BLEU, TRANSLATION_PARAMETERS
from evaluation.evaluate import result_name
from models import BASELINE
from reproduction.differences import fidelities
from reproduction.results import Results, has_all_data, models_of
from reproduction.scales import Scale
from reproduction.scores import mean_score, verdict
from reproduction.sheet import DEVIATIONS, Column, Sheet

TASKS = ["wmt14_en_de", "wmt14_en_fr"]
# (task, languages of `BLEU`, its test set, our split)
TEST_SETS = [
    ("wmt14_en_de", ("en", "de"), "newstest2013", "validation"),
    ("wmt14_en_de", ("en", "de"), "newstest2014", "test"),
    ("wmt14_en_fr", ("en", "fr"), "newstest2014", "test"),
]
MEASURES = ("bleu_authors", "bleu_13a", "bleu_intl")
# Which of ours stands beside a published figure. The Transformer's are those of Vaswani
# et al. (2017), tokenized and with compounds split, which none of ours is.
BESIDE, BESIDE_BASELINE = "bleu_authors", "bleu_13a"
COLUMNS = [
    Column("model", "model"),
    Column("test_set", "test set"),
    Column("compared", "compared BLEU", 2, is_mean=True),
    Column("published", "published", 1),
    Column("badge", "verdict"),
    Column("beside", "compared"),
    Column("difference", "difference", 2, signed=True),
    Column("last", "compared measure, last checkpoint", 2, is_mean=True),
    Column("weights", "compared measure, mean of weights", 2, is_mean=True),
    *(
        Column(f"{way}_{name}", f"{name}, {title}", 2, is_mean=True)
        for way, title in (
            ("chosen", "best validation"),
            ("mean", "mean of checkpoints"),
        )
        for name in MEASURES
    ),
    Column("runs", "runs", 0),
    Column("parameters", "parameters", 0),
    Column("published_parameters", "published parameters, millions", 0),
    Column("parameters_difference", "difference, millions", 1, signed=True),
    Column("parameters_badge", "verdict (parameters)"),
    Column("fidelity", "fidelity"),
]
NOTES = [
    DEVIATIONS,
    "bleu_authors is the released script's, lower-cased and split at white space. "
    "It stands beside TransEvolve's published figures. The Transformer's published "
    "figures are those of Vaswani et al. (2017), tokenized and with compounds "
    "split. None of ours is that, so bleu_13a stands beside them as another "
    "measure.",
    "The counts of parameters are of another measure, too: TransEvolve's leave out "
    "those that cannot act, which the published counts have, and the Transformer's "
    "vocabulary is smaller. docs/fidelity.md has both counts.",
    "newstest2013 is the validation data, which chooses a checkpoint. No checkpoint is "
    "chosen by its mean of checkpoints.",
]
STANDS_IN = (
    "Here Multi30k stands in for WMT 2014: its validation data for newstest2013, its "
    "test data for newstest2014."
)


def rows(scale: Scale, results: Results | None = None) -> list[tuple[dict, list]]:
    """See `reproduction.tables`."""
    cells = []
    for task, languages, test_set, split in TEST_SETS:
        name = "-".join(languages)
        name += (
            f" {test_set}" if scale.is_paper else f" Multi30k {split}, for {test_set}"
        )
        for model in models_of(scale):
            is_run = model in scale.variants
            runs = scale.each_seed(scale.tasks[task], model) if is_run else []
            row = {"task": task, "split": split, "test_set": name, "model": model}
            row["published"] = BLEU[languages][test_set].get(model)
            cells.append((row, runs))
    return cells


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`."""
    filled = [
        row | _figures(row, scale, results.finished(runs))
        for row, runs in rows(scale, results)
    ]
    notes = [
        scale.meaning,
        "The paper reports the mean BLEU of the last checkpoints. The compared figure "
        f"is the mean of {scale.tasks[TASKS[0]].average_checkpoints}. Beside it stand "
        "the checkpoint of the best validation loss, the last one, and a model of the "
        "checkpoints' mean weights.",
        *NOTES,
        *[STANDS_IN] * (not scale.is_paper),
        *results.absences({task: scale.tasks[task] for task in TASKS}),
    ]
    return [Sheet("table2", "Table 2: translation", COLUMNS, filled, notes)]


def _figures(row, scale, records):
    task, split, model = row["task"], row["split"], row["model"]
    beside = BESIDE_BASELINE if model == BASELINE else BESIDE
    same_measure = (
        scale.is_paper
        and model != BASELINE
        and all(has_all_data(task, one, split) for one in records)
    )
    averaged = result_name(split, scale.tasks[task].average_checkpoints)
    chosen = [record.results[split] for record in records]
    weights = [record.results[averaged] for record in records]
    means = [result["mean_of_checkpoints"] for result in weights]
    scores = {
        "compared": [mean[beside] for mean in means],
        "last": [result["checkpoints"][-1][beside] for result in weights],
        "weights": [result[beside] for result in weights],
    }
    for name in MEASURES:
        scores[f"chosen_{name}"] = [result[name] for result in chosen]
        scores[f"mean_{name}"] = [mean[name] for mean in means]
    figures = {"beside": beside, "fidelity": fidelities(records), "runs": len(records)}
    for key, values in scores.items():
        figures |= mean_score(values).cells(key)
    parameters = chosen[0]["parameters"] if chosen else None
    millions = parameters and parameters / 1e6
    published = TRANSLATION_PARAMETERS.get(model)
    return figures | {
        "parameters": parameters,
        "published_parameters": published,
        **verdict(millions, published, False, prefix="parameters_"),
        **verdict(figures["compared"], row["published"], same_measure),
    }
