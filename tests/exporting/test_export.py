"""Exports, loaded where nothing of this repository can be imported."""

import gzip
import json
import math
import random
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from common.errors import UserError
from configs import ag_news
from data import DATASETS
from exporting import export as exporting
from exporting.export import export
from inference.classifier import TextClassifier
from models import can_decode, can_encode, variant_config, variants
from tests import classification, scripts, translation
from tests.conftest import SHARED
from tests.runs import untrained
from training.evaluation import evaluate
from training.run import load_run

pytestmark = [pytest.mark.slow, pytest.mark.script]

CLIENT = Path(__file__).with_name("client.py")
NUM_TEXTS = 70
# One of each kind of model and text; `make test-all` has every other.
QUICK = {
    ("listops", "transevolve-randomff-2"),
    ("ag_news", "transformer"),
    ("multi30k", "transevolve-fullff-2"),
}
CASES = [
    pytest.param(
        (task, name),
        id=f"{task}-{name}",
        marks=() if (task, name) in QUICK else pytest.mark.long,
    )
    for task, able in (
        ("listops", can_encode),
        ("ag_news", can_encode),
        ("multi30k", can_decode),
    )
    for name in variants()
    if able(variant_config(name))
]


class Client:
    """A process that has loaded an export."""

    def __init__(self, folder, modules):
        self.process = subprocess.Popen(
            # Isolated: neither this folder nor the environment lead to modules.
            [sys.executable, "-I", CLIENT, folder, *modules],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, signature, **inputs):
        """What the export returns for texts or bytes."""
        inputs = {
            name: [
                (text.encode() if isinstance(text, str) else text).decode("latin-1")
                for text in texts
            ]
            for name, texts in inputs.items()
        }
        self.process.stdin.write(json.dumps([signature, inputs]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the process has ended"
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0


def some_lines(source, target, count):
    with (gzip.open if source.suffix == ".gz" else open)(source, "rb") as file:
        target.write_bytes(b"".join(islice(file, count)))


def config_of(task, variant, folder):
    """Of a small model, on a part of the real data, or made data where that is not."""
    if task == "listops":
        return scripts.listops_config(folder, variant)
    if task == "ag_news":
        config = ag_news.get_config(variant)
        config.update_from_flattened_dict(
            {
                **scripts.for_variant(classification.TINY, variant),
                "data.source": "files",
                "data.dir": str(folder),
                "data.cache_dir": str(folder),
                "data.vocab_file": str(folder / "vocab.txt"),
            }
        )
        if SHARED.is_dir():
            shutil.copy(SHARED / "bert_base_uncased_vocab.txt", folder / "vocab.txt")
            for name in ("train.csv", "test.csv"):
                some_lines(SHARED / "ag_news_csv" / name, folder / name, NUM_TEXTS)
        else:
            (folder / "vocab.txt").write_text(classification.WORDS)
            classification.write_ag_news(folder)
        return config
    if not SHARED.is_dir():
        translation.write(folder)
        return translation.config(folder, variant)
    for name in ("train", "val", "test_2016_flickr"):
        for language in ("en", "de"):
            path = SHARED / "multi30k" / f"{name}.{language}.gz"
            count = 600 if name == "train" else NUM_TEXTS
            some_lines(path, folder / path.stem, count)
    return translation.config(folder, variant, **{"data.vocab_size": 400})


@pytest.fixture(scope="module", params=CASES)
def exported(request, tmp_path_factory):
    """A run of random weights, its export, and a process that has loaded that."""
    task, variant = request.param
    folder = tmp_path_factory.mktemp(f"{task}-{variant}")
    workdir = untrained(config_of(task, variant, folder), folder / "run")
    export(workdir, folder / "export")
    run = load_run(workdir)
    client = Client(folder / "export/1", run.tokenizer.modules)
    yield run, client, folder
    client.close()


def batches(texts):
    """The texts alone, in threes and all at once, in another order each time."""
    for size in (1, 3, 64):
        order = random.Random(size).sample(range(len(texts)), len(texts))
        for start in range(0, min(len(texts), 4 * size), size):
            yield order[start : start + size]


def test_it_answers_as_the_run_does(exported):
    run, client, _ = exported
    result, found = evaluate(run.workdir)
    if found.answers is None:
        check_classes(run, client, result)
    else:
        check_translations(run, client, found.answers)


def check_classes(run, client, result):
    data = run.config.data
    examples = list(DATASETS[data.dataset].read(data, "test"))
    texts = [example.text.decode() for example in examples]
    classes = [example.label for example in examples]
    predicted = run.predict(texts)
    for indices in batches(texts):
        found = client.ask("serving_default", text=[texts[i] for i in indices])
        for place, index in enumerate(indices):
            answer = predicted[index]
            scores = list(answer.scores.values())
            np.testing.assert_allclose(found["scores"][place], scores, atol=1e-5)
            assert found["label"][place] == answer.label
            assert found["truncated"][place] == answer.truncated
    found = client.ask("serving_default", text=texts)
    scores = np.array(found["scores"])[np.arange(len(texts)), classes]
    assert -np.log(scores).mean() == pytest.approx(result["loss"], abs=1e-5)
    assert (found["label_id"] == np.array(classes)).mean() == result["accuracy"]


def check_translations(run, client, evaluated):
    texts, _ = run.task.data.texts("test")
    predicted = run.predict(texts)
    ties = 0
    for indices in batches(texts):
        found = client.ask("serving_default", text=[texts[i] for i in indices])
        for place, index in enumerate(indices):
            answer, score = predicted[index], found["score"][place]
            assert score == pytest.approx(answer.score, abs=1e-4)
            assert found["truncated"][place] == answer.truncated
            ties += found["translation"][place].encode("latin-1") != (
                evaluated[index].encode()
            )
    print(f"{ties} translations of equal score differ from those of evaluate.py")
    assert ties <= len(texts) // 10


def test_it_holds_the_weights_and_nothing_else(exported):
    run, _, folder = exported
    held = tf.train.list_variables(str(folder / "export/1/variables/variables"))
    held = [shape for name, shape in held if name != "_CHECKPOINTABLE_OBJECT_GRAPH"]
    weights = run.text_model.weights
    assert sorted(held) == sorted(list(weight.shape) for weight in weights)
    assert not any("singular" in weight.name for weight in weights)


def test_encode_shows_what_the_model_sees(exported):
    run, client, _ = exported
    texts = ["[MAX 1 2 ]", "", "a film"]
    found = client.ask("encode", text=texts)
    lengths = np.array(found["mask"]).sum(1).tolist()
    ids = run.tokenizer(texts).to_list()
    ends = 1 if "score" in run.text_model.signatures else 0
    assert lengths[:2] == [len(ids[0]) + ends, ends]
    assert found["ids"][2][: len(ids[2])] == ids[2]


HOSTILE = [
    b"",
    b"\0",
    b"[MAX 1 \0 2 ]",
    "\u2028".encode(),
    "a\u2028b\u0085c".encode(),
    b"\xff\xfe\xfd",
    b"\xc3",
    b" \t \r ",
    "\U0001f600\ufeff".encode(),
    b"]" * 100,
]


def test_hostile_texts_are_answered(exported):
    run, client, _ = exported
    assert client.ask("serving_default", text=[])["truncated"] == []
    found = client.ask("serving_default", text=HOSTILE)
    assert len(found["truncated"]) == len(HOSTILE)
    numbers = np.array(found.get("scores", found.get("score")))
    assert np.isfinite(numbers).all()
    if "score" in run.text_model.signatures:
        assert not any("\n" in text for text in found["translation"])
        assert client.ask("n_best", text=[])["scores"] == []
        pairs = {"text": HOSTILE, "translation": HOSTILE[::-1]}
        assert np.isfinite(client.ask("score", **pairs)["log_prob"]).all()


def test_a_megabyte_beside_short_texts(exported, record_property):
    run, client, _ = exported
    short = client.ask("serving_default", text=["a film", "[MAX 1 2 ]"])
    texts = ["a film", "word " * 200_000, "[MAX 1 2 ]", "x" * 1_000_000]
    found = client.ask("serving_default", text=texts)
    assert found["truncated"] == [False, True, False, found["truncated"][3]]
    key = run.text_model.main_output
    assert [found[key][i] for i in (0, 2)] == short[key]
    more = found["memory"] - short["memory"]
    record_property("megabytes for two megabytes of text", more // 10**6)
    assert more < 1.5e9


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.long)])
def test_random_bytes(exported, count):
    run, client, _ = exported
    generator = random.Random(count)
    texts = [generator.randbytes(generator.randrange(40)) for _ in range(count)]
    found = client.ask("serving_default", text=texts)
    assert len(found["truncated"]) == count


def test_the_script_answers_lines(exported):
    run, _, folder = exported
    lines = ["[MAX 1 2 ]", "", "a film about news"]
    command = [sys.executable, "-I", folder / "export/answer.py"]
    text = "".join(line + "\n" for line in lines)
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(answer) for answer in run.predict(lines)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    config = config_of("listops", "transevolve-fullff-1", folder)
    return untrained(config, folder / "run")


def files(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


def test_a_folder_that_is_not_empty_stays_as_it_is(run, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    result = scripts.script("export.py", f"--workdir={run}", f"--output={tmp_path}")
    assert scripts.last_line(result) == (
        f"error: --output={tmp_path}: expected an empty folder or none"
    )
    assert files(tmp_path) == [Path("notes.txt")]


def test_a_run_without_a_checkpoint_leaves_nothing(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    shutil.rmtree(tmp_path / "run/checkpoints")
    with pytest.raises(UserError, match="expected a checkpoint, found none yet"):
        export(tmp_path / "run", tmp_path / "export")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_damaged_checkpoint_is_named(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    (path,) = (tmp_path / "run/checkpoints/best/1").glob("*.data-*")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=f"{path.name}: expected the content that was"):
        export(tmp_path / "run", tmp_path / "export")
    assert not (tmp_path / "export").exists()


def test_a_full_disk_leaves_nothing(run, tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device", "variables")

    monkeypatch.setattr(TextClassifier, "save", fail)
    with pytest.raises(OSError, match="No space left"):
        export(run, tmp_path / "export")
    assert list(tmp_path.iterdir()) == []


def test_another_answer_is_noticed(run, tmp_path, monkeypatch):
    script = exporting._script

    def wrong(text_model):
        line = "print(json.dumps(outputs)"
        return script(text_model).replace(line, "outputs['scores'][0] += 0.1; " + line)

    monkeypatch.setattr(exporting, "_script", wrong)
    with pytest.raises(UserError, match="expected the answers of the run"):
        export(run, tmp_path / "export")
    assert list(tmp_path.iterdir()) == []


def test_half_the_bytes(run, tmp_path):
    whole = export(run, tmp_path / "whole")
    half = export(run, tmp_path / "half", dtype="bfloat16")
    assert half["parameters"] == whole["parameters"]
    before, after = half["validation"]["loss"]
    assert before != after and math.isclose(before, after, rel_tol=0.05)
    sizes = [
        sum(path.stat().st_size for path in (tmp_path / name).rglob("*.data-*"))
        for name in ("half", "whole")
    ]
    assert sizes[0] < 0.6 * sizes[1]
    assert "What rounding costs" in (tmp_path / "half/README.md").read_text()
    with pytest.raises(UserError, match="expected an empty folder or none"):
        export(run, tmp_path / "half")


def test_the_card(run, tmp_path):
    evaluate(run)
    result = scripts.script(
        "export.py", f"--workdir={run}", f"--output={tmp_path / 'new/export'}"
    )
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["export"] == str(tmp_path / "new/export/1")
    card = (tmp_path / "new/export/README.md").read_text()
    for text in (
        "# transevolve-fullff-1, listops",
        "| test | 70 | accuracy | ",
        f"| parameters | {told['parameters']:,} |",
        "`scores` float32 [?, 10]",
        "first 24 tokens",
        "saved_model_cli run",
    ):
        assert text in card, text
    assert "tensorflow_text" not in card
    (answer,) = load_run(run).predict(["[MAX 1 2 ]"])
    shown = saved_model_cli(tmp_path / "new/export", "show")
    assert "inputs['text'] tensor_info" in shown and "(-1, 10)" in shown
    texts = ["--input_exprs", 'text=["[MAX 1 2 ]"]']
    found = saved_model_cli(tmp_path / "new/export", "run", *texts)
    label = found.split("output key label:")[1].split("output key")[0]
    assert answer.label in label


def saved_model_cli(folder, command, *more):
    signature = ["--signature_def", "serving_default"]
    arguments = ["--dir", "1", "--tag_set", "serve", *signature, *more]
    done = subprocess.run(
        [Path(sys.executable).with_name("saved_model_cli"), command, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
