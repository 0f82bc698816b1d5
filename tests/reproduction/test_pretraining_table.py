"""What the table of pretraining runs, and makes of it; nobody trains here."""

import pytest

from data.tokenizers.symbols import SymbolTokenizer
from reproduction import differences
from reproduction.experiment import Folder
from reproduction.scales import SCALES
from reproduction.scores import NOT_RUN
from reproduction.tables import pretraining
from tests.reproduction.made_runs import experiments_of, results_of, rows, run_of
from training import config as configuration
from training import workdir as workdirs

LAPTOP = SCALES["laptop"]
MODELS = ("transformer", "transformer-rfa")


def of(kind, variant, scale=LAPTOP):
    runs = experiments_of(pretraining, scale)
    return [one for one in runs if (one.task, one.variant) == (kind, variant)]


def evaluated(one, **test):
    return run_of(one, {"test": {"examples": 2000, **test}})


def test_a_run_follows_that_which_it_starts_from(tmp_path):
    results = results_of([], tmp_path)
    runs = pretraining.rows(LAPTOP, results)
    assert "listops-pretrained" not in {one.task for _, row in runs for one in row}
    (first, *_) = of("listops-masked", "transformer")
    assert first.make_config({}).kind == "masked_tokens"
    results = results_of([evaluated(first, loss=2.0, accuracy=0.3)], tmp_path)
    following = [
        one
        for _, row in pretraining.rows(LAPTOP, results)
        for one in row
        if one.task == "listops-pretrained"
    ]
    (one,) = following
    assert (one.variant, one.seed) == ("transformer", 0)
    start = results.folder.config(one).train.init_from
    assert start == str(results.folder.workdir(first))
    tuned = LAPTOP._replace(tunes=True)
    starts = {
        results.folder.config(one).train.init_from
        for one in of("listops-pretrained", "transformer", tuned)
        if one.seed == 0
    }
    assert starts == {start}


@pytest.mark.parametrize("scale", SCALES)
def test_its_runs_can_begin(scale):
    for one in experiments_of(pretraining, SCALES[scale]):
        config = one.make_config(
            {"data.source": "files", "data.dir": "data"} if "imdb" in one.task else {}
        )
        configuration.check(config)


@pytest.mark.parametrize("scale", ["paper", "laptop"])
def test_both_ways_have_as_many_updates(scale):
    for task in SCALES[scale].pretraining:
        scratch, masked, pretrained = (
            of(f"{task}-{way}", "transformer", SCALES[scale])[0].make_config({}).train
            for way in ("scratch", "masked", "pretrained")
        )
        until = "epochs" if scale == "paper" else "steps"
        assert scratch[until] == masked[until] + pretrained[until] > 0


def test_seeds_that_are_asked_for_replace_the_table_s():
    # Two tasks, two models with seven operators, three kinds of runs.
    assert len(experiments_of(pretraining, LAPTOP.with_seeds(1))) == 2 * 14 * 3


def test_a_run_is_finished_with_its_start_elsewhere(tmp_path):
    (one, *_) = of("listops-pretrained", "transformer")
    before, after = (Folder(tmp_path / name, "laptop") for name in ("a", "b"))
    config = before.config(one)
    tokenizer = SymbolTokenizer(["a"])
    workdir = after.workdir(one)
    workdir.mkdir(parents=True)
    workdirs.keep(config, tokenizer, {}, workdir)
    stored = workdirs.read_config(workdir)
    assert stored.train.init_from != after.config(one).train.init_from
    workdirs.check_same_run(after.config(one), stored, workdir)


def test_runs_of_a_variant_are_one_line_whatever_their_seeds(tmp_path):
    folder = results_of([], tmp_path).folder
    records = []
    for variant in MODELS:
        for one in of("listops-pretrained", variant):
            record = evaluated(one, accuracy=0.4)
            record.config["train"]["init_from"] = folder.config(one).train.init_from
            records.append(record)
    sizes = {name: len(group) for name, group in differences.group(records).items()}
    assert sizes == {(variant, ""): 3 for variant in MODELS}


def test_sizes_are_those_of_the_tables_of_systems():
    for variant in ("transformer-sinkhorn", "transevolve-fullff-1-sinkhorn"):
        for one in of("listops-scratch", variant):
            assert one.make_config({}).model.attention.block == 4


def test_gains_are_of_pairs_with_one_seed(tmp_path):
    accuracies = {
        ("listops-scratch", "transformer"): 0.4,
        ("listops-scratch", "transformer-rfa"): 0.3,
        ("listops-pretrained", "transformer"): 0.45,
        ("listops-pretrained", "transformer-rfa"): 0.46,
    }
    records = [
        evaluated(
            one, accuracy=accuracy + 0.01 * one.seed + 0.001 * one.seed**2 * turns
        )
        for (kind, variant), accuracy in accuracies.items()
        for turns in [kind.endswith("pretrained") == (variant == "transformer")]
        for one in of(kind, variant)
    ]
    for record in records:
        if record.name.startswith("listops-pretrained"):
            record.config["train"]["init_from"] = "/elsewhere"
    records += [evaluated(one, loss=2.0) for one in of("listops-masked", "transformer")]
    (sheet,) = pretraining.sheets(LAPTOP, results_of(records, tmp_path))
    (row,) = rows(sheet, task="listops", model="transformer")
    assert row["scratch"] == pytest.approx(41)
    assert row["pretrained"] == pytest.approx(46 + 0.5 / 3)
    assert row["gain"] == pytest.approx(5 + 0.5 / 3)
    assert (row["runs"], row["badge"], row["masked_loss"]) == (3, "clear", 2.0)
    (absent,) = rows(sheet, task="listops", model="transevolve-fullff-1")
    assert (absent["badge"], absent["runs"]) == (NOT_RUN, 0)
    (said,) = [note for note in sheet.notes if note.startswith("On listops")]
    assert "deviation of 6.95 points from scratch and 0.59 after pretrain" in said
    assert "Of 1 pairs of models 1 differ clearly from scratch, and 1 after" in said
    assert "order differs in 1, of which 1 differ clearly both times" in said
