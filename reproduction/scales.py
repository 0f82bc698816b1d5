"""How large the tables' runs are: the paper's, a laptop's, a test's."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from configs.published import SYSTEMS
from models import variants
from models.bag_of_words import BAG_OF_WORDS
from reproduction.experiment import Experiment
from reproduction.recall import ATTENTIONS


class Scale(NamedTuple):
    """Settings of all tables.

    Attributes:
      name: of its folder.
      meaning: what its figures may be taken for, a sentence.
      seeds, paired_seeds: how many runs there are of each kind, and how many in the
        tables that compare pairs of runs with one seed.
      tasks: {task of the paper: how it runs}.
      variants: {variant that runs: what it changes}.
      systems: the same, of variants that are other systems of the paper's tables, or
        beside them.
      learning_rates: (lr_max, warm-up) of Figure 2.
      fidelity: {task: how it runs in the fidelity table}.
      benchmarks: {"speed" or "memory": arguments of that benchmark}.
      retrieval: {setting: numbers of keys}, see `reproduction.retrieval`.
      recall: the attentions, {tokens: pairs} and widths of models that are trained to
        recall, and how, see `reproduction.recall`.
      fast_weights: {"translation" or the size of a language model: how it runs in the
        tables of Schlag, Irie and Schmidhuber 2021}.
      pretraining: {task: how its models learn classes in the table of pretraining}.
      tunes: whether learning rates are tried, see `reproduction.tuning`.
    """

    name: str
    meaning: str
    seeds: int
    paired_seeds: int
    tasks: dict[str, Experiment]
    variants: dict[str, dict]
    systems: dict[str, dict]
    learning_rates: list[tuple[float, int]]
    fidelity: dict[str, Experiment]
    benchmarks: dict[str, dict]
    retrieval: dict[int, Sequence[int]]
    recall: dict[str, Any]
    fast_weights: dict[str, Experiment]
    pretraining: dict[str, Experiment]
    tunes: bool = False

    @property
    def is_paper(self) -> bool:
        """Whether its figures may be set beside the paper's as the same measure."""
        return self.name == "paper"

    def with_seeds(self, seeds: int | None) -> "Scale":
        """Returns this scale with so many runs of each kind, or as it is for None."""
        if not seeds:
            return self
        tasks = {name: one._replace(seeds=0) for name, one in self.tasks.items()}
        return self._replace(seeds=seeds, paired_seeds=seeds, tasks=tasks)

    def each_seed(self, task: Experiment, variant: str, **changed) -> list[Experiment]:
        """The runs of a task and a variant that differ in their seed alone.

        Args:
          task: how it runs, and how many there are, if not the scale's number.
          variant: of the model.
          **changed: as for `Experiment.changed`, what the runs change beside.
        """
        usual = {**self.systems, **self.variants}.get(variant, {})
        one = task.changed(usual, variant=variant).changed(**changed)
        return [one._replace(seed=seed) for seed in range(task.seeds or self.seeds)]


PAPER_VARIANTS = {name: {} for name in variants(in_paper=True)}
# And what every classification is to be measured against.
PAPER_SYSTEMS = {name: {} for name in (*SYSTEMS, BAG_OF_WORDS)}


FOLDERS = {
    "wmt14_en_de": ("wmt14*de*",),
    "wmt14_en_fr": ("wmt14*fr*",),
    "multi30k": ("multi30k",),
    "ag_news": ("ag_news_csv",),
    "imdb": ("aclImdb", "aclImdb*.tar.gz"),
    "char_imdb": ("aclImdb", "aclImdb*.tar.gz"),
    "wikitext_103": ("wikitext-103",),
    "plain_text": ("imdb_text",),
    "listops": ("listops-1000", "lra_release/listops-1000", "*/*/listops-1000"),
}


def _task(task, preset="paper", changes=None, **attributes):
    folders = FOLDERS[task]
    return Experiment(task, task, preset, changes or {}, folders, **attributes)


def _classification(changes: dict[str, dict]) -> dict[str, Experiment]:
    """By the presets `laptop`, with changes for each task; ListOps is generated."""
    attributes = {"needs_folder": True, "test_at_validations": True}
    tasks = {
        task: _task(task, "laptop", changes[task], **attributes) for task in changes
    }
    listops = tasks["listops"]._replace(folders=(), needs_folder=False)
    return {**tasks, "listops": listops}


def _captions(changes: dict) -> dict[str, Experiment]:
    """Multi30k in place of WMT 2014, with its validation data for newstest2013."""
    average = changes["train.keep_checkpoints"]
    captions = _task("multi30k", needs_folder=True, average_checkpoints=average)
    return {
        f"wmt14_en_{language}": captions.changed(
            {**changes, "data.target_language": language},
            task=f"multi30k-en-{language}",
            splits=splits,
        )
        for language, splits in (("de", ("validation", "test")), ("fr", ("test",)))
    }


def _language(config, preset, changes=None):
    """A language model, whose data is in files or downloaded."""
    task = _task(config, preset, changes, needs_folder=config == "plain_text")
    return task._replace(task=f"{config}-{preset}", splits=("validation", "test"))


PAPER = Scale(
    name="paper",
    meaning="These runs have the paper's settings.",
    seeds=5,
    paired_seeds=3,
    tasks={
        "wmt14_en_de": _task(
            "wmt14_en_de", splits=("validation", "test"), average_checkpoints=10
        ),
        "wmt14_en_fr": _task("wmt14_en_fr", average_checkpoints=10),
        **{
            task: _task(task, test_at_validations=True)
            for task in ("ag_news", "imdb", "listops", "char_imdb")
        },
    },
    variants=PAPER_VARIANTS,
    systems=PAPER_SYSTEMS,
    learning_rates=[
        (rate, warmup) for rate in (1.0, 1.5) for warmup in (4000, 8000, 16_000)
    ],
    fidelity={
        "multi30k": _task("multi30k", needs_folder=True),
        "ag_news": _task("ag_news", test_at_validations=True),
    },
    benchmarks={
        "speed": {"lengths": [1000, 2000, 3000, 4000], "rounds": 7},
        "memory": {"lengths": [1000, 2000, 3000, 4000]},
    },
    retrieval={1: range(20, 620, 20), 2: range(20, 220, 20)},
    recall={
        "attentions": ATTENTIONS,
        "pairs": {64: 4, 128: 8, 256: 16, 512: 64},
        "widths": (64, 128, 256, 512),
        "training": {
            "vocabulary_size": 8192,
            "learning_rates": (2.2e-3, 4.6e-4, 1e-2, 1e-4),
            "steps": 10_000,
        },
    },
    fast_weights={
        "translation": _task(
            "wmt14_en_de",
            changes={
                "model.hidden_dim": 1024,
                "model.num_heads": 16,
                "model.ffn_dim": 4096,
                "model.norm": "post",
            },
            splits=("validation", "test"),
        )._replace(task="wmt14_en_de-big"),
        "small": _language("wikitext_103", "small"),
        "medium": _language("wikitext_103", "medium"),
    },
    pretraining={
        "listops": _task(
            "listops",
            changes={
                "data.min_length": 100,
                "data.max_length": 200,
                "data.bucket_lengths": (128, 160, 200),
            },
        ),
        "char_imdb": _task(
            "char_imdb",
            changes={
                "data.max_length": 1024,
                "data.bucket_lengths": (512, 768, 1024),
            },
        ),
    },
)

# Blocks of the usual size would cover a whole text.
LAPTOP_SYSTEMS = {
    **PAPER_SYSTEMS,
    "transformer-linformer": {"model.attention.projected_length": 16},
    "transformer-big-bird": {
        "model.attention.block": 4,
        "model.attention.global_blocks": 1,
        "model.attention.random_blocks": 2,
    },
    "transformer-sinkhorn": {"model.attention.block": 4},
    "transformer-reformer": {"model.attention.chunk": 4},
}
NARROW = {"model.hidden_dim": 128, "model.ffn_dim": 512}
CAPTIONS = {
    **NARROW,
    "data.vocab_size": 4000,
    "data.max_length": 32,
    "data.bucket_lengths": (12, 16, 20, 24, 32),
    "train.steps": 1500,
    "train.validate_every": 250,
    "train.keep_checkpoints": 2,
    "train.warmup_steps": 200,
    "decode.beam_size": 2,
    "decode.extra_length": 5,
}
LAPTOP_TASKS = {
    **_classification(
        {
            "ag_news": {
                **NARROW,
                "data.max_length": 64,
                "data.bucket_lengths": (32, 48, 64),
                "train.epochs": 2,
                "train.learning_rate_max": 0.12,
                "train.warmup_steps": 150,
            },
            "imdb": {
                **NARROW,
                "data.max_length": 128,
                "data.bucket_lengths": (64, 96, 128),
                "train.steps": 200,
                "train.validate_every": 100,
                "train.learning_rate_max": 0.12,
                "train.warmup_steps": 100,
            },
            # Two thirds of the preset's updates, for each system has three runs.
            "listops": {"train.steps": 340, "train.validate_every": 170},
            "char_imdb": {
                "model.hidden_dim": 32,
                "model.num_heads": 4,
                "model.ffn_dim": 128,
                "data.max_length": 256,
                "data.bucket_lengths": (256,),
                "train.steps": 600,
                "train.validate_every": 300,
                "train.learning_rate_max": 0.2,
            },
        }
    ),
    **_captions(CAPTIONS),
}
# Its expressions are short, so that there is time for more than one run.
LAPTOP_TASKS["listops"] = LAPTOP_TASKS["listops"]._replace(seeds=3)
LAPTOP = Scale(
    name="laptop",
    meaning=(
        "Laptop scale: models of width 32 to 128 on fewer and shorter texts, a few "
        "minutes each on two CPU cores. It shows that everything runs, and does not "
        "stand in for the paper's figures."
    ),
    seeds=1,
    paired_seeds=3,
    tasks=LAPTOP_TASKS,
    variants=PAPER_VARIANTS,
    systems=LAPTOP_SYSTEMS,
    learning_rates=[(0.4, 200), (0.8, 200)],
    fidelity={
        # Shorter than table 2's runs, since there are many.
        "multi30k": _task(
            "multi30k",
            changes={
                **CAPTIONS,
                "train.steps": 300,
                "train.validate_every": 100,
                "train.warmup_steps": 100,
            },
            needs_folder=True,
        )._replace(task="multi30k-shorter"),
        "ag_news": LAPTOP_TASKS["ag_news"],
    },
    # docs/performance.md has more lengths.
    benchmarks={
        "speed": {"lengths": [1000, 4000], "rounds": 5},
        "memory": {"lengths": [4000]},
    },
    # At some of these the published memories are full.
    retrieval={1: (20, 60, 180, 260, 420), 2: (20, 60, 200)},
    recall={
        "attentions": ATTENTIONS,
        "pairs": {64: 8},
        "widths": (16, 32, 64),
        "training": {
            "vocabulary_size": 128,
            "learning_rates": (1e-2, 2.2e-3),
            "steps": 1500,
        },
    },
    fast_weights={
        # Heads of 64, as theirs.
        "translation": LAPTOP_TASKS["wmt14_en_de"].changed(
            {"model.num_heads": 2}, task="multi30k-en-de-wide-heads"
        ),
        # One size stands for both.
        **dict.fromkeys(("small", "medium"), _language("plain_text", "laptop")),
    },
    pretraining={
        "listops": LAPTOP_TASKS["listops"].changed(
            {
                "model.hidden_dim": 64,
                "model.ffn_dim": 256,
                # As deep and wide as the paper's, so that most are short.
                "data.max_length": 200,
                "data.bucket_lengths": (16, 32, 64, 128, 200),
                "data.max_depth": 10,
                "data.max_arguments": 10,
                "train.steps": 500,
                "train.validate_every": 250,
            }
        ),
        # The same reviews as char_imdb's, in pieces: no model learns bytes so soon.
        "imdb": LAPTOP_TASKS["imdb"].changed(
            {
                "model.hidden_dim": 64,
                "model.ffn_dim": 256,
                "data.vocab": "train",
                "data.vocab_size": 4000,
                "data.max_length": 256,
                "data.bucket_lengths": (128, 192, 256),
                "train.batch_size": 16,
                "train.steps": 400,
                "train.validate_every": 200,
            }
        ),
    },
)

TINY = {
    "model.hidden_dim": 16,
    "model.ffn_dim": 32,
    "train.batch_size": 4,
    "train.steps": 4,
    "train.validate_every": 2,
    "train.log_every": 2,
    "train.warmup_steps": 2,
}
TINY_PAIRS = {
    **TINY,
    "model.num_heads": 2,
    "data.max_length": 16,
    "data.bucket_lengths": (16,),
}
TINY_TEXT = {**TINY_PAIRS, "data.validation_examples": 8}
TINY_LANGUAGE_MODEL = {
    **TINY,
    "model.adaptive_cutoffs": (8,),
    "model.num_heads": 1,
    "data.vocab_size": 50,
    "data.segment_length": 8,
}
SMOKE_TASKS = {
    **_classification(
        {
            "ag_news": TINY_TEXT,
            "imdb": TINY_TEXT,
            "char_imdb": TINY_TEXT,
            "listops": {
                **TINY_TEXT,
                "data.train_examples": 60,
                "data.test_examples": 20,
            },
        }
    ),
    **_captions(
        {
            **TINY_PAIRS,
            "data.vocab_size": 300,
            "train.keep_checkpoints": 2,
            "decode.beam_size": 2,
            "decode.extra_length": 2,
        }
    ),
}
SMOKE = Scale(
    name="smoke",
    meaning="A test of the machinery: four updates of tiny models.",
    seeds=1,
    paired_seeds=1,
    tasks=SMOKE_TASKS,
    # Two stand for five: layers are traced one by one, which is what takes time.
    variants={
        "transevolve-randomff-1": {"model.num_depths": 2},
        "transformer": {"model.num_layers": 1},
    },
    systems={"transformer-linear": {"model.num_layers": 1}},
    learning_rates=[(0.2, 2), (0.4, 2)],
    fidelity={
        "multi30k": SMOKE_TASKS["wmt14_en_de"],
        "ag_news": SMOKE_TASKS["ag_news"],
    },
    benchmarks={
        "speed": {"lengths": [16, 32], "rounds": 1, "tokens_per_batch": 32},
        "memory": {"lengths": [16], "tokens_per_batch": 32},
    },
    retrieval={1: (3,), 2: (3,)},
    recall={
        "attentions": ["", "-linear"],
        "pairs": {16: 2},
        "widths": (4,),
        "training": {
            "vocabulary_size": 16,
            "learning_rates": (1e-2,),
            "steps": 1,
        },
    },
    fast_weights={
        "translation": SMOKE_TASKS["wmt14_en_de"].changed(
            {"model.hidden_dim": 32, "model.num_heads": 1},
            task="multi30k-en-de-wide-heads",
        ),
        **dict.fromkeys(
            ("small", "medium"), _language("plain_text", "laptop", TINY_LANGUAGE_MODEL)
        ),
    },
    pretraining={task: SMOKE_TASKS[task] for task in ("listops", "char_imdb")},
)

SCALES = {scale.name: scale for scale in (PAPER, LAPTOP, SMOKE)}
