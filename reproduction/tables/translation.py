"""Table 2: BLEU of translation, and parameters."""

from configs.published import BLEU, TRANSLATION_PARAMETERS
from evaluation.evaluate import result_name
from reproduction.scores import badge, difference, mean_score
from reproduction.settings import profiles
from reproduction.sheet import DEVIATIONS, Column, Sheet
from reproduction.tables.accuracy import BASELINE
from reproduction.tables.table import Table, is_whole, rows_of

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
    Column("compared", "compared BLEU", 2, deviation="compared_deviation"),
    Column("published", "published", 1),
    Column("badge", "verdict"),
    Column("beside", "compared"),
    Column("difference", "difference", 2, signed=True),
    *(
        Column(key, title, 2, deviation=f"{key}_deviation")
        for key, title in (
            ("last", "compared measure, last checkpoint"),
            ("weights", "compared measure, mean of weights"),
            *((f"chosen_{name}", f"{name}, best validation") for name in MEASURES),
            *((f"mean_{name}", f"{name}, mean of checkpoints") for name in MEASURES),
        )
    ),
    Column("runs", "runs", 0),
    Column("parameters", "parameters", 0),
    Column("published_parameters", "published parameters, millions", 0),
    Column("parameters_difference", "difference, millions", 1, signed=True),
    Column("parameters_badge", "verdict (parameters)"),
    Column("fidelity", "profile"),
]


def of_task(task, variant, scale, seeds, **others):
    """The experiments of a variant: a run for each seed."""
    return [
        scale.experiment(scale.settings[task], variant, seed=seed, **others)
        for seed in range(seeds or scale.seeds)
    ]


def experiments(scale, seeds):
    """See `Table`."""
    return [
        experiment
        for task in TASKS
        for variant in scale.variants
        for experiment in of_task(task, variant, scale, seeds)
    ]


def sheets(scale, seeds, results):
    """See `Table`."""
    rows = []
    for task, languages, test_set, split in TEST_SETS:
        for variant in rows_of(scale):
            runs = []
            if variant in scale.variants:
                chosen = of_task(task, variant, scale, seeds)
                runs = results.finished(chosen)
            published = BLEU[languages][test_set].get(variant)
            name = f"{'-'.join(languages)} {test_set}"
            if not scale.is_paper:
                name = f"{'-'.join(languages)} Multi30k {split}, for {test_set}"
            rows.append(
                {"test_set": name, "model": variant, "published": published}
                | _row(task, variant, runs, split, published, scale)
            )
    notes = [
        scale.meaning,
        "The paper reports the mean BLEU of the last checkpoints. The compared figure "
        f"is the mean of {scale.settings[TASKS[0]].average_checkpoints}. Beside it "
        "stand the checkpoint of the best validation loss, the last one, and a model "
        "of the checkpoints' mean weights.",
        DEVIATIONS,
        "bleu_authors is the released script's, lower-cased and split at white space. "
        "It stands beside TransEvolve's published figures. The Transformer's published "
        "figures are those of Vaswani et al. (2017), tokenized and with compounds "
        "split. None of ours is that, so bleu_13a stands beside them as another "
        "measure.",
        "The counts of parameters are of another measure, too: TransEvolve's leave out "
        "those that cannot act, which the published counts have, and the Transformer's "
        "vocabulary is smaller. docs/fidelity.md has both counts.",
        "newstest2013 is the validation data, which chooses a checkpoint. Its mean of "
        "checkpoints chooses nothing.",
    ]
    if not scale.is_paper:
        notes.append(
            "Here Multi30k stands in for WMT 2014: its validation data for "
            "newstest2013, its test data for newstest2014."
        )
    notes += results.absences(TASKS)
    return [Sheet("table2", "Table 2: translation", COLUMNS, rows, notes)]


def _row(task, variant, runs, split, published, scale):
    beside = BESIDE_BASELINE if variant == BASELINE else BESIDE
    averaged = result_name(split, scale.settings[task].average_checkpoints)

    same_measure = scale.is_paper and variant != BASELINE
    same_measure = same_measure and all(is_whole(task, run, split) for run in runs)
    parameters = runs[0].results[split]["parameters"] if runs else None
    millions = parameters and parameters / 1e6
    published_parameters = TRANSLATION_PARAMETERS.get(variant)
    means = [run.results[averaged]["mean_of_checkpoints"] for run in runs]
    scores = {
        "compared": [mean[beside] for mean in means],
        "last": [run.results[averaged]["checkpoints"][-1][beside] for run in runs],
        "weights": [run.results[averaged][beside] for run in runs],
    }
    for name in MEASURES:
        scores[f"chosen_{name}"] = [run.results[split][name] for run in runs]
        scores[f"mean_{name}"] = [mean[name] for mean in means]
    row = {"beside": beside, "fidelity": profiles(runs), "runs": len(runs)}
    for key, values in scores.items():
        row[key], row[f"{key}_deviation"], _ = mean_score(values)
    return row | {
        "parameters": parameters,
        "published_parameters": published_parameters,
        "parameters_difference": difference(millions, published_parameters),
        "parameters_badge": badge(millions, published_parameters, False),
        "difference": difference(row["compared"], published),
        "badge": badge(row["compared"], published, same_measure),
    }


TABLE = Table("2", experiments, sheets)
