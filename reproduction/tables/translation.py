"""Table 2: BLEU of translation, and parameters."""

from configs.published import BLEU, TRANSLATION_PARAMETERS
from reproduction.scores import badge, difference, mean_score
from reproduction.sheet import Column, Sheet
from reproduction.tables.accuracy import BASELINE, fidelity
from reproduction.tables.table import Table, rows_of
from training.evaluation import result_name

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
    Column("test_set", "test set"),
    Column("model", "model"),
    Column("badge", "verdict"),
    Column("beside", "compared"),
    Column("compared", "compared BLEU", 2),
    Column("deviation", "± over seeds", 2),
    Column("published", "published", 1),
    Column("difference", "difference", 2, signed=True),
    *(Column(f"chosen_{name}", f"{name}, best validation", 2) for name in MEASURES),
    *(Column(f"last_{name}", f"{name}, last checkpoint", 2) for name in MEASURES[:1]),
    *(Column(f"mean_{name}", f"{name}, mean of checkpoints", 2) for name in MEASURES),
    *(
        Column(f"weights_{name}", f"{name}, mean of weights", 2)
        for name in MEASURES[:1]
    ),
    Column("runs", "runs", 0),
    Column("parameters", "parameters", 0),
    Column("published_parameters", "published parameters, millions", 0),
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
        "bleu_authors is the released script's, lower-cased and split at white space. "
        "It stands beside TransEvolve's published figures. The Transformer's published "
        "figures are those of Vaswani et al. (2017), tokenized and with compounds "
        "split. None of ours is that, so bleu_13a stands beside them as another "
        "measure.",
        "TransEvolve's parameters leave out those that cannot act, which the published "
        "counts have; docs/fidelity.md has both counts.",
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

    def mean(get):
        return mean_score(map(get, runs))

    score = mean(lambda run: run.results[averaged]["mean_of_checkpoints"][beside])
    row = {
        "fidelity": fidelity(runs),
        "runs": score.count,
        "parameters": runs[0].results[split]["parameters"] if runs else None,
        "published_parameters": TRANSLATION_PARAMETERS.get(variant),
        "compared": score.mean,
        "deviation": score.deviation,
        "beside": beside,
        "difference": difference(score.mean, published),
        "badge": badge(score.mean, published, scale.is_paper and variant != BASELINE),
    }
    for name in MEASURES:
        row[f"chosen_{name}"] = mean(lambda run, x=name: run.results[split][x]).mean
        row[f"last_{name}"] = mean(
            lambda run, x=name: run.results[averaged]["checkpoints"][-1][x]
        ).mean
        row[f"weights_{name}"] = mean(lambda run, x=name: run.results[averaged][x]).mean
        row[f"mean_{name}"] = mean(
            lambda run, x=name: run.results[averaged]["mean_of_checkpoints"][x]
        ).mean
    return row


TABLE = Table("2", experiments, sheets)
