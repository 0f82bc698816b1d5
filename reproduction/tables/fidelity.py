"""Which profile learns better: the paper's, the authors' code's, or one between."""

from common.errors import UserError
from models import variant_config
from reproduction.comparison import best_validation, kind_of
from reproduction.scores import mean_score
from reproduction.sheet import Column, Sheet
from reproduction.tables.fidelity_picture import draw
from reproduction.tables.table import Table

# Every choice that makes a difference, by itself: rotations have two of their own.
SHARED = ("phase", "depth_index", "score_scale")
CHOICES = {
    "transevolve-fullff-2": SHARED,
    "transevolve-randomff-2": (*SHARED, "rotation_phase", "rotation_scale"),
}
PAPER = "paper"
SCORES = ("accuracy", "bleu_13a")
COLUMNS = [
    Column("model", "model"),
    Column("task", "task"),
    Column("fidelity", "profile"),
    Column("badge", "evidence"),
    Column("metric", "on validation data"),
    Column("validation", "best validation", 4, deviation="validation_deviation"),
    Column(
        "validation_gain",
        "better than paper by",
        4,
        signed=True,
        deviation="gain_deviation",
    ),
    Column("pairs", "pairs", 0),
    Column("score", "on test data"),
    Column("test", "test score", 2, deviation="test_deviation"),
    Column("runs", "runs", 0),
]
CLEAR, UNCLEAR, ITSELF = "clear", "not clear", ""
# How many standard errors from 0 a mean of 2, 3, ... numbers is by chance in one case
# of 20 (Student's t); for more numbers the last.
BY_CHANCE = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)


def _profiles(variant):
    rotates = variant_config(variant)["feed_forward"] == "rotation"
    choices = CHOICES[f"transevolve-{'randomff' if rotates else 'fullff'}-2"]
    return [PAPER, "official", *(f"{PAPER}+{choice}" for choice in choices)]


def _variants(scale):
    if CHOICES.keys() <= scale.variants.keys():
        return list(CHOICES)
    found = [name for name in scale.variants if "fidelity" in variant_config(name)]
    if not found:
        raise UserError(
            "--variants: expected a variant of TransEvolve for the fidelity table, "
            f"found {', '.join(scale.variants)}"
        )
    return found


def _of_profile(setting, variant, profile, scale, seeds):
    return [
        scale.experiment(
            setting,
            variant,
            {"model.fidelity": profile},
            seed=seed,
            choice="" if profile == PAPER else profile,
        )
        for seed in range(seeds or scale.fidelity_seeds)
    ]


def experiments(scale, seeds):
    """See `Table`."""
    return [
        experiment
        for setting in scale.fidelity.values()
        for variant in _variants(scale)
        for profile in _profiles(variant)
        for experiment in _of_profile(setting, variant, profile, scale, seeds)
    ]


def sheets(scale, seeds, results):
    """See `Table`."""
    rows, gains = [], {}
    for task, setting in scale.fidelity.items():
        for variant in _variants(scale):
            paper = {}
            for profile in _profiles(variant):
                chosen = _of_profile(setting, variant, profile, scale, seeds)
                found = results.finished(chosen)
                runs = {run.seed: run for run in found if run.validations}
                if profile == PAPER:
                    paper = runs
                pairs = [] if profile == PAPER else _gains(runs, paper)
                rows.append(
                    {"task": task, "model": variant, "fidelity": profile}
                    | _row(profile, runs, pairs)
                )
                if pairs:
                    of_model = gains.setdefault((task, variant), {})
                    of_model[profile, rows[-1]["metric"]] = pairs
    compared = sum(map(len, gains.values()))
    notes = [
        scale.meaning,
        "A profile `paper+choice` is the paper's but for one choice, which is as in "
        "the authors' code; docs/fidelity.md has the choices.",
        "How much better a profile is than the paper's is the mean over seeds of the "
        "difference of two runs with one seed, positive if better. Behind a mean "
        "stands the sample standard deviation, there of the pairs. Evidence is clear "
        "if chance would give as much in fewer than one case of 20. So chance calls "
        f"clear some {compared / 20:.1f} of the {compared} comparisons of this table, "
        "and one that is clear wants another to agree.",
        *results.absences(scale.fidelity, scale.fidelity),
    ]
    if "multi30k" in scale.fidelity:
        notes.append("Multi30k is not of the paper. It stands in for WMT 2014.")
    pictures = [draw(gains, results.folder, "fidelity.png")] if gains else []
    title = "Fidelity: the paper's choices and the authors' code's"
    return [Sheet("fidelity", title, COLUMNS, rows, notes, pictures)]


def _row(profile, runs, gains):
    if not runs:
        return {"runs": 0, "badge": "not run"}
    task = kind_of(list(runs.values()))
    scores = next(iter(runs.values())).results["test"]
    name = next(score for score in SCORES if score in scores)
    factor = 100 if name == "accuracy" else 1
    test = mean_score(factor * run.results["test"][name] for run in runs.values())
    score = mean_score(map(best_validation, runs.values()))
    gain = mean_score(gains)
    evidence = ITSELF
    if profile != PAPER:
        evidence = CLEAR if _is_clear(gain) else UNCLEAR
    return {
        "runs": score.count,
        "metric": task.metric,
        "validation": score.mean,
        "validation_deviation": score.deviation,
        "validation_gain": gain.mean,
        "gain_deviation": gain.deviation,
        "pairs": gain.count or None,
        "score": name,
        "test": test.mean,
        "test_deviation": test.deviation,
        "badge": evidence,
    }


def _gains(runs, paper):
    """How much better each run is than the paper's of its seed, if there are both."""
    found = []
    for seed in sorted(runs.keys() & paper.keys()):
        sign = 1 if kind_of([runs[seed]]).higher_is_better else -1
        gain = best_validation(runs[seed]) - best_validation(paper[seed])
        found.append(sign * gain)
    return found


def _is_clear(gain):
    # Pairs that are alike to the last digit are few examples of a small set.
    if gain.count < 2 or gain.deviation == 0:
        return False
    error = gain.deviation / gain.count**0.5
    return abs(gain.mean) > error * BY_CHANCE[min(gain.count, len(BY_CHANCE) + 1) - 2]


TABLE = Table("fidelity", experiments, sheets, is_of_all_models=False)
