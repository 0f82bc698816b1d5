"""Workdirs as runs leave them, written by hand: nobody trains here."""

import hashlib
import importlib
import json
import zlib

from training.metrics_log import NAME
from training.workdir import CONFIG

EPOCHS, STEPS_PER_EPOCH = 5, 120


def config_of(task, variant, seed=0, preset="laptop", **changes):
    """A config of `configs/`; in names of changes __ stands for a point."""
    module = importlib.import_module(f"configs.{task}")
    config = module.get_config(f"{variant},{preset}")
    config.seed = seed
    changes = {name.replace("__", "."): value for name, value in changes.items()}
    config.update_from_flattened_dict(changes)
    if config.train.get("steps"):
        config.train.steps = EPOCHS * STEPS_PER_EPOCH
    else:
        config.train.epochs = EPOCHS
    return config


def score(config, epoch):
    """A made-up accuracy that grows, another for each run."""
    level = 0.35 + 0.02 * (zlib.crc32(config.variant.encode()) % 5)
    level += 0.004 * config.seed + 0.1 * config.train.learning_rate_max
    return level * (1 - 0.6 * 0.5**epoch)


def write(
    workdir, config, epochs=EPOCHS, results=True, log=(), failure=None, facts=None
):
    """Writes the files of a run that has come so far; returns its workdir."""
    workdir.mkdir(parents=True)
    (workdir / CONFIG).write_text(json.dumps(config.to_dict()))
    rows = []
    for epoch in range(1, epochs + 1):
        reached = score(config, epoch)
        row = {"step": epoch * STEPS_PER_EPOCH, "split": "validation"}
        if "epochs" in config.train:
            row["epoch"] = float(epoch)
        figures = {"loss": 2.3 - 2 * reached, "accuracy": reached}
        rows += [{**row, "split": "train", **figures}, {**row, **figures}]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (workdir / NAME).write_text(text)
    if rows:
        checkpoint = workdir / f"checkpoints/last/{rows[-1]['step']}"
        checkpoint.mkdir(parents=True)
        log_sum = hashlib.sha256(text.encode()).hexdigest()
        state = {"logged_lines": len(rows), "log_sum": log_sum}
        (checkpoint / "state.json").write_text(json.dumps(state))
    if results:
        (workdir / "results").mkdir()
        result = {
            "task": config.task,
            "variant": config.variant,
            "split": "test",
            "parameters": 1_000_000 + 1000 * len(config.variant),
            "examples": 2000,
            "loss": 1.25 + 0.01 * config.seed,
            "accuracy": score(config, epochs) - 0.01,
        }
        if config.kind == "translation":
            bleu = {"bleu_13a": 33.61, "bleu_intl": 33.9, "bleu_authors": 34.2}
            bleu = {name: value + config.seed for name, value in bleu.items()}
            result = {**result, **bleu, "chrf": 58.8, "decode": {"beam_size": 4}}
        (workdir / "results/test.json").write_text(json.dumps(result) + "\n")
    if log:
        (workdir / "log.txt").write_text("".join(line + "\n" for line in log))
    if failure is not None:
        (workdir / "failure.txt").write_text(failure)
    if facts is not None:
        (workdir / "facts.json").write_text(json.dumps(facts))
    return workdir


def write_several(folder):
    """Two tasks, the paper's variants, seeds, and runs that ended early."""
    log = [
        f"step {120 * i}: validation loss {1.9 - 0.1 * i:.4f}, accuracy 0.{31 + 2 * i}"
        for i in range(1, 6)
    ]
    facts = {
        "machine": "AMD EPYC 9004, 2 cores, 24 GiB of memory",
        "versions": "python 3.11.7, tensorflow 2.20.0",
        "seconds": 412.5,
        "finished": True,
    }
    for variant in ("transevolve-fullff-1", "transevolve-randomff-1", "transformer"):
        for seed in range(3):
            config = config_of("listops", variant, seed)
            workdir = folder / "listops" / variant / f"seed-{seed}"
            write(workdir, config, log=log, facts=facts)
    variant = "transevolve-fullff-2"
    write(
        folder / "listops" / variant / "seed-0",
        config_of("listops", variant),
        epochs=3,
        results=False,
        log=log[:3],
    )
    write(
        folder / "listops" / variant / "seed-1",
        config_of("listops", variant, 1),
        epochs=1,
        results=False,
        log=[*log[:1], "training: 21%|██        | 130/600 [00:12<00:44, 10.6 steps/s]"],
        failure="step 131: expected a finite loss and gradient, found a loss of nan",
    )
    for rate in (0.2, 0.4):
        config = config_of("multi30k", "transformer", train__learning_rate_max=rate)
        write(folder / f"multi30k/transformer/rate-{rate}", config, log=log)
    return folder
