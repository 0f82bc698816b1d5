"""What is computed is returned, also where it cannot be kept."""

import json

import pytest

from evaluation import evaluate as evaluation
from evaluation.evaluate import evaluate, evaluate_each
from tests.rights import nobodys, open_folder
from tests.runs import untrained
from tests.scripts import listops_config

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run():
    """A run whose workdir and cache are in a folder that is closed to writing."""
    with open_folder() as folder:
        workdir = untrained(listops_config(folder / "cache"), folder / "run")
        (folder / "cache").mkdir()
        for path in (folder, workdir, folder / "cache"):
            path.chmod(0o555)
        yield workdir
        for path in (folder, workdir, folder / "cache"):
            path.chmod(0o755)


def test_a_run_that_cannot_be_written_is_evaluated(run, caplog):
    with nobodys():
        result, _ = evaluate(run)
        with pytest.raises(PermissionError):  # a run of reproduce.py is not done then
            evaluate_each(run, [("test", 0)])
    assert result["examples"] == 70
    assert not list(run.glob("results/*"))
    told = [record.getMessage() for record in caplog.records]
    (number,) = (i for i, text in enumerate(told) if "the result is not kept" in text)
    assert told[number].startswith(
        f"warning: --workdir={run}/results: expected a folder that can be written, "
        f"found {run}: Permission denied"
    )
    caches = [i for i, text in enumerate(told) if "--config.data.cache_dir=" in text]
    assert number < min(caches)  # before the work, which goes on without a cache


def test_a_disk_that_fills_up_meanwhile_loses_no_result(tmp_path, monkeypatch, caplog):
    workdir = untrained(listops_config(tmp_path / "cache"), tmp_path / "run")

    def full(path, content):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "write_whole", full)
        result, _ = evaluate(workdir)
    assert "the result is not kept in a file: [Errno 28] No space left" in caplog.text
    assert evaluate(workdir)[0] == result
    assert json.loads((workdir / "results/test.json").read_text()) == result
