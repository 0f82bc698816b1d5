"""What exports answer, loaded where nothing of this repository can be imported."""

import random
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import serve
from data import DATASETS
from evaluation.evaluate import evaluate
from evaluation.run import load_run
from export.signatures import MAX_NUMBERS
from models import can_decode, can_encode, variant_config
from tests import plain_text
from tests.conftest import ROOT
from tests.export.cases import Client, config_of
from tests.runs import untrained
from tests.shallow import representatives
from tests.test_docs import blocks

pytestmark = [pytest.mark.slow, pytest.mark.script]

# One of each kind of model and text; `make test-all` has every other.
QUICK = {
    ("listops", "transevolve-randomff-2"),
    ("ag_news", "transformer"),
}
CASES = [
    ("char_imdb", "transevolve-fullff-1"),
    *(
        (task, name)
        for task, able in (
            ("listops", can_encode),
            ("ag_news", can_encode),
            ("multi30k", can_decode),
        )
        for name in representatives()
        if able(variant_config(name))
    ),
]
CASES = [
    pytest.param(
        case, id="-".join(case), marks=() if case in QUICK else pytest.mark.long
    )
    for case in CASES
]
# How far scores of one answer may be apart.
NEAR = 1e-5
# How far two scores may be apart for their translations to change places.
TIE = 1e-4


@pytest.fixture(scope="module", params=CASES)
def exported(request, tmp_path_factory):
    """A run of random weights, its model as export.py writes it, and a process that
    has loaded that."""
    task, variant = request.param
    folder = tmp_path_factory.mktemp(f"{task}-{variant}")
    workdir = untrained(config_of(task, variant, folder), folder / "run")
    run = load_run(workdir)
    run.text_model.save(folder / "export/1")
    client = Client(folder / "export/1", run.tokenizer.modules)
    yield run, client, folder
    client.close()


def batches(texts):
    """The texts alone, in threes and all at once, in another order each time."""
    for size in (1, 3, 64):
        order = random.Random(size).sample(range(len(texts)), len(texts))
        for start in range(0, min(len(texts), 4 * size), size):
            yield order[start : start + size]


def test_it_answers_as_the_run_does(exported, record_property):
    run, client, _ = exported
    result, found = evaluate(run.workdir)
    if found.answers is None:
        check_classes(run, client, result)
    else:
        ties = check_translations(run, client, found.answers)
        record_property("ties with translations of evaluate.py", ties)


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
            np.testing.assert_allclose(found["scores"][place], scores, atol=NEAR)
            assert found["label"][place] == answer.label
            assert found["truncated"][place] == answer.truncated
    found = client.ask("serving_default", text=texts)
    for text, scores in zip(texts[:10], found["scores"], strict=False):
        ids = run.tokenizer([text]).to_tensor()[:, : data.max_length]
        expected = tf.nn.softmax(run.model(ids, training=False))[0]
        np.testing.assert_allclose(scores, expected, atol=NEAR)
    scores = np.array(found["scores"])[np.arange(len(texts)), classes]
    assert -np.log(scores).mean() == pytest.approx(result["loss"], abs=NEAR)
    assert (found["label_id"] == np.array(classes)).mean() == result["accuracy"]


def check_translations(run, client, evaluated):
    """How many translations differ from those of evaluate.py, all of them ties."""
    texts, _ = run.task.data.texts("test")
    predicted = run.predict(texts)
    best = client.ask("n_best", text=texts)
    others = [[text_of(x) for x in row] for row in best["translations"]]
    ties = 0
    for indices in batches(texts):
        sources = [texts[i] for i in indices]
        found = client.ask("serving_default", text=sources)
        for place, index in enumerate(indices):
            answer, score = predicted[index], found["score"][place]
            assert found["truncated"][place] == answer.truncated
            text = text_of(found["translation"][place])
            near = NEAR if text == answer.text else TIE
            assert score == pytest.approx(answer.score, rel=NEAR, abs=near)
            for other in {answer.text, evaluated[index], others[index][0]} - {text}:
                ties += 1
                tied = best["scores"][index][others[index].index(other)]
                assert tied == pytest.approx(score, abs=TIE)
    return ties


def text_of(received):
    """What the client has printed a byte a character."""
    return received.encode("latin-1").decode()


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
        assert client.ask("score", text=[], translation=[])["tokens"] == []
        pairs = {"text": HOSTILE, "translation": HOSTILE[::-1]}
        assert np.isfinite(client.ask("score", **pairs)["log_prob"]).all()


def test_what_is_not_a_batch_is_refused_and_the_process_goes_on(exported):
    run, client, _ = exported
    inputs = {name: ["text"] for name in run.text_model.signatures}
    if "score" in inputs:
        inputs["score"] = ["text", "translation"]
        found = client.ask("score", text=["a", "b"], translation=["a"])
        assert "as many of each, found shape [2] and [1]" in found["refused"]
    for name, columns in inputs.items():
        for texts, shape in [
            ("x y", "[]"),
            ([["a", "c"], ["b", "d"]], "[2 2]"),
            ([[["a"]]], "[1 1 1]"),
        ]:
            found = client.ask(name, **dict.fromkeys(columns, texts))
            assert f"{columns[0]}: expected texts of shape [batch]" in (
                found["refused"].replace(", translation:", ":")
            )
            assert f"found shape {shape}" in found["refused"]
    assert len(client.ask("serving_default", text=["a", "b"])["truncated"]) == 2


def test_a_megabyte_beside_short_texts(exported):
    run, client, _ = exported
    short = client.ask("serving_default", text=["a film", "[MAX 1 2 ]"])
    texts = ["a film", "word " * 200_000, "[MAX 1 2 ]", "x" * 1_000_000]
    found = client.ask("serving_default", text=texts)
    # A word of a megabyte is one unknown word piece; neither is an expression.
    tokenizer = run.config.data.tokenizer
    cut = tokenizer not in ("wordpiece", "symbols")
    assert found["truncated"] == [False, tokenizer != "symbols", False, cut]
    key = run.text_model.main_output
    assert [found[key][i] for i in (0, 2)] == short[key]
    assert np.array(client.ask("encode", text=texts)["ids"]).shape[1] <= 1024
    if "score" in run.text_model.signatures:
        found = client.ask("score", text=texts, translation=texts)
        assert found["truncated"] == [False, True, False, cut]
        assert np.isfinite(found["log_prob"]).all()


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.long)])
def test_random_bytes_are_answered(exported, count):
    run, client, _ = exported
    if count > 200 and (run.config.task, run.config.variant) not in QUICK:
        pytest.skip("minutes for a translator, and no affair of the variant")
    generator = random.Random(count)
    texts = [generator.randbytes(generator.randrange(40)) for _ in range(count)]
    found = client.ask("serving_default", text=texts)
    assert len(found["truncated"]) == count


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {"data.memory": True, "model.adaptive_cutoffs": (8,)}, id="memory"
        ),
        pytest.param({}, marks=pytest.mark.long, id="segments"),
        pytest.param({"data.tokenizer": "bytes"}, marks=pytest.mark.long, id="bytes"),
    ],
)
def test_a_language_model_answers_and_scores_as_the_run_does(changes, tmp_path):
    changes = {"model.positions": "none", **changes}
    folder = plain_text.write(tmp_path)
    config = plain_text.config(folder, "transevolve-fullff-1-delta", **changes)
    run = load_run(untrained(config, tmp_path / "run"))
    run.text_model.save(tmp_path / "export/1")
    client = Client(tmp_path / "export/1", run.tokenizer.modules)
    texts = [*plain_text.lines(4, seed=3), "one " * 20, *HOSTILE]
    predicted = run.predict(texts)
    scores = run.text_model.outputs("score", texts)
    for indices in batches(texts):
        asked = {"text": [texts[i] for i in indices]}
        answered = client.ask("serving_default", **asked)
        scored = client.ask("score", **asked)
        for place, index in enumerate(indices):
            answer, score = predicted[index], scores[index]
            assert text_of(answered["continuation"][place]) == answer.text
            assert answered["truncated"][place] == answer.truncated
            assert scored["log_prob"][place] == pytest.approx(score["log_prob"], NEAR)
            for name in ("tokens", "truncated"):
                assert scored[name][place] == score[name]
    client.close()


@pytest.mark.long
@pytest.mark.parametrize("name", ["transformer", "transevolve-fullff-2"])
@pytest.mark.parametrize("task", ["classification", "translation"])
def test_megabytes_take_no_more_memory_than_is_said(
    task, name, tmp_path, record_property
):
    longest = {"classification": 2048, "translation": 1024}[task]
    model = serve.SERVED[task](name, "base", longest)
    model.text_model.save(tmp_path / name)
    client = Client(tmp_path / name, model.text_model.modules)
    client.ask("serving_default", text=["a film"])
    texts = ["word " * 200_000] * 4
    found = client.ask("serving_default", measured=True, text=texts)
    client.close()
    assert all(found["truncated"])
    before, peak = found["memory"]
    megabytes = [before // 10**6, (peak - before) // 10**6]
    record_property("MB before, and more with 4 texts of 1 MB:", megabytes)
    # A cache that grows is there twice, at each of 6 depths.
    arrays = {"classification": 3, "translation": 2 * 6}[task]
    assert peak - before < arrays * 4 * MAX_NUMBERS


@pytest.mark.long
def test_the_documented_lines_answer_as_the_run_does(exported, tmp_path):
    run, _, folder = exported
    if run.text_model.modules:
        pytest.skip("saved_model_cli cannot import what the model needs")
    if (run.config.task, run.config.variant) not in QUICK:
        pytest.skip("no affair of the variant, and three processes")
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports/listops").symlink_to(folder / "export")
    page = (ROOT / "docs/export.md").read_text()
    label = run.predict(["[MAX 2 9 [MIN 4 7 ] 0 ]"])[0].label
    commands = [
        line
        for block in blocks(page, "bash")
        for line in block.replace("\\\n", " ").splitlines()
        if line.startswith("saved_model_cli")
    ]
    shown, found = (output_of(shlex.split(line), tmp_path) for line in commands)
    assert "inputs['text'] tensor_info" in shown and "outputs['scores']" in shown
    found = found.split("output key label:")[1].split("output key")[0]
    assert f"'{label}'" in found
    first, *_ = blocks(page, "python")
    found = output_of(["python", "-I", "-c", first], tmp_path)
    assert found.strip() == f"[b'{label}']"


def output_of(command, folder):
    program = Path(sys.executable).with_name(command[0])
    done = subprocess.run(
        [program, *command[1:]], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
