"""What a run leaves for TensorBoard, and a profile of some of its steps."""

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata

from common.errors import UserError
from tests.scripts import listops_config, metrics
from training.tensorflow.profiler import Profile
from training.tensorflow.trainer import Trainer
from training.train import train_and_evaluate

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Workdirs of one run, the second with a profile."""
    folder = tmp_path_factory.mktemp("runs")
    config = listops_config(folder, "transevolve-fullff-1")
    config.train.epochs = 1
    for name, profile in (("plain", None), ("profiled", "5:8")):
        train_and_evaluate(config, folder / name, profile=profile)
    return folder / "plain", folder / "profiled"


def test_hyperparameters_stand_beside_the_metric(runs):
    events = EventAccumulator(str(runs[0] / "tensorboard")).Reload()
    found = events.SummaryMetadata("_hparams_/session_start_info")
    fields = metadata.parse_session_start_info_plugin_data(found.plugin_data.content)
    assert fields.hparams["train.batch_size"].number_value == 16
    assert fields.hparams["variant"].string_value == "transevolve-fullff-1"
    found = events.SummaryMetadata("_hparams_/experiment").plugin_data.content
    (metric,) = metadata.parse_experiment_plugin_data(found).metric_infos
    validation = EventAccumulator(str(runs[0] / "tensorboard/validation")).Reload()
    assert metric.name.group == "validation"
    assert metric.name.tag in validation.Tags()["tensors"]


def test_a_profile_changes_nothing_else(runs):
    plain, profiled = runs
    written = list(profiled.glob("tensorboard/plugins/profile/*/*.xplane.pb"))
    assert len(written) == 1 and written[0].stat().st_size > 0
    assert not list(plain.glob("tensorboard/plugins"))
    steps = [[row["step"] for row in metrics(run)] for run in runs]
    assert steps[0] == steps[1]
    # Training losses are summed over fewer steps at a time, and round otherwise.
    last = [metrics(run)[-1] for run in runs]
    assert last[0]["split"] == "validation" and last[0] == last[1]


def test_a_profile_is_of_those_steps(runs, tmp_path, monkeypatch):
    taken, seen = [], {}

    class Counted(Trainer):
        def train(self, iterator, num_steps):
            taken.append(num_steps)
            return super().train(iterator, num_steps)

    for name in ("start", "stop"):
        monkeypatch.setattr(
            f"tensorflow.profiler.experimental.{name}",
            lambda *_, name=name: seen.setdefault(name, sum(taken)),
        )
    monkeypatch.setattr("training.train.Trainer", Counted)
    config = listops_config(runs[0].parent, "transevolve-fullff-1")
    config.train.epochs = 1
    train_and_evaluate(config, tmp_path / "run", profile="5:8")
    assert seen == {"start": 4, "stop": 8}


@pytest.mark.parametrize("steps", ["", "5", "0:3", "4:3", "a:b", "1:2:3", "-1:2"])
def test_what_are_no_steps(steps, tmp_path):
    with pytest.raises(UserError, match="expected FIRST:LAST, two steps from 1"):
        Profile(steps, tmp_path)


def test_steps_that_the_run_does_not_take(tmp_path):
    profile = Profile("5:8", tmp_path)
    profile.check(4, 8)
    for step, total in ((5, 9), (0, 7)):
        with pytest.raises(UserError, match=f"expected steps .* {step + 1} to {total}"):
            profile.check(step, total)
