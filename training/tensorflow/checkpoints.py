"""Checkpoints of a run: the last validated ones, the best, and one to go on from."""

import functools
import json
import logging
import tempfile
from collections.abc import Callable, Collection
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import tensorflow as tf

from common import checksums
from common.checksums import DamagedError
from common.errors import UserError
from common.paths import PATTERN, is_remote, make_path, move, remove_folder
from training.run_state import BEST, CARRIED, LAST, RESUME, STATE, RunState

WEIGHTS = "weights"
UNFINISHED = "unfinished-"
# Readings, of which each finds that its checkpoint was removed meanwhile.
MOST_READINGS = 10
# Variables that an error lists.
NAMED = 4
# Keys are those of `tf.train.Checkpoint`, as runs have them that it has saved.
SEED, ENDING = "seed_generator_state", "/.ATTRIBUTES/VARIABLE_VALUE"

logger = logging.getLogger("transevolve")


class OtherModelError(UserError):
    """A checkpoint is of a model with other variables.

    Attributes:
      weights: in words, those that either does not have, or in another shape.
    """

    def __init__(self, folder, weights):
        self.weights = ", ".join(weights[:NAMED])
        if len(weights) > NAMED:
            self.weights += f" and {len(weights) - NAMED} more"
        super().__init__(
            f"{folder}: expected the variables of this model, found others: "
            f"{self.weights}; open the run with the code that trained it"
        )


class RemovedError(DamagedError):
    """A checkpoint was removed while it was read."""


def _again(read):
    """The method, called anew where a training has just removed what it read: it then
    finds what has taken its place."""

    @functools.wraps(read)
    def read_again(*arguments):
        for _ in range(MOST_READINGS - 1):
            with suppress(RemovedError):
                return read(*arguments)
        return read(*arguments)

    return read_again


class Checkpoints:
    """Checkpoints below `workdir/checkpoints`, each a folder named by its step.

    `last/` has the latest validated ones, `best/` the one that validated best, and
    `resume/` one from between validations. A folder gets its name when all of it is
    written, and has the checksums of its files.

    Args:
      workdir: of the run.
      model: what evaluation needs.
      optimizer: None where nothing is trained. Only then may checkpoints lack one.
      keep: how many of `last/` to keep.
      unused: names of weights that a checkpoint may have and the model has not.
    """

    def __init__(
        self,
        workdir: Path,
        model,
        optimizer=None,
        keep: int = 1,
        unused: Collection[str] = (),
    ):
        self.model = model
        self._unused = unused
        self._keep = {LAST: keep, BEST: 1, RESUME: 1}
        self._variables = _by_keys("model", model)
        self._is_whole = optimizer is not None
        if self._is_whole:
            self._variables |= _by_keys("optimizer", optimizer)
        self._folder = make_path(workdir, "--workdir") / "checkpoints"

    def save(self, kind: str, state: RunState) -> None:
        """Saves the weights and the state to `LAST`, `BEST` or `RESUME`.

        Older ones that are not to be kept go, and so do newer ones: they are of a part
        of the run that was taken back.
        """
        folder = self._folder / kind
        unfinished = folder / f"{UNFINISHED}{state.step}"
        unfinished.mkdir(parents=True)
        try:
            _write(unfinished / WEIGHTS, self._variables)
            (unfinished / STATE).write_text(json.dumps(state.numbers()) + "\n")
            if len(state.carried):
                with (unfinished / CARRIED).open("wb") as file:
                    np.savez(file, *state.carried)
            checksums.write(unfinished, [path.name for path in unfinished.iterdir()])
            final = folder / str(state.step)
            move(unfinished, final)
        except BaseException:
            remove_folder(unfinished)
            raise
        steps = [step for step in self.steps(kind) if step <= state.step]
        for step in set(self.steps(kind)) - set(steps[-self._keep[kind] :]):
            _remove(folder / str(step))

    def steps(self, kind: str) -> list[int]:
        """The steps of the checkpoints of a kind, in order.

        Raises:
          UserError: if they are of an older version of this project.
        """
        folder = self._folder / kind
        if not folder.is_dir():
            return []
        names = [path.name for path in folder.iterdir()]
        if "checkpoint" in names:
            raise UserError(
                f"{folder}: expected checkpoints of this version, found those of an "
                "older one; open the run with the code that trained it, or train it "
                "anew"
            )
        return sorted(int(name) for name in names if name.isdecimal())

    def clean(self) -> None:
        """Removes what killed saves have left; only for who alone writes here."""
        for path in self._folder.glob(f"*/{UNFINISHED}*"):
            remove_folder(path)

    def resume(self) -> tuple[RunState, str]:
        """Restores the newest sound checkpoint; its state, and its kind.

        Raises:
          DamagedError: if none is sound, or there is none.
        """
        kinds = (LAST, BEST, RESUME)
        newest = [(step, kind) for kind in kinds for step in self.steps(kind)]
        # Stable: of one step, `last/` comes first.
        newest.sort(key=lambda checkpoint: checkpoint[0], reverse=True)
        damage = DamagedError(
            f"{self._folder}: expected the checkpoints of the run, found none; put "
            "them back, or train anew in another workdir"
        )
        for step, kind in newest:
            try:
                return self._restore(self._folder / kind / str(step)), kind
            except DamagedError as error:
                logger.warning("damaged: %s", error)
                damage = error
        raise damage

    @_again
    def restore_best(self) -> None:
        """Restores the best checkpoint.

        Raises:
          UserError: if there is none.
        """
        self._restore(self._best())

    def _best(self):
        steps = self.steps(BEST)
        if not steps:
            raise UserError(
                f"--workdir={self._folder.parent}: expected a checkpoint, found none "
                "yet; train.py writes the first when it first validates"
            )
        return self._folder / BEST / str(steps[-1])

    @_again
    def best_weights(self) -> dict[str, np.ndarray]:
        """The weights of the best checkpoint, by their variables' paths.

        Raises:
          UserError: if there is none.
        """
        with _checked(self._best()) as folder:
            reader = _reader(folder)
            keys = filter(_is_weight, reader.get_variable_to_shape_map())
            return {_path(key): reader.get_tensor(key) for key in keys}

    @_again
    def restore_average(self, count: int) -> None:
        """Restores the mean of the weights of the last `count` checkpoints.

        Raises:
          UserError: if fewer are kept.
        """
        weights = self.model.trainable_variables
        totals = [0.0] * len(weights)
        for restore in self.each_of_last(count):
            restore()
            totals = [
                total + weight.numpy()
                for total, weight in zip(totals, weights, strict=True)
            ]
        for weight, total in zip(weights, totals, strict=True):
            weight.assign(total / count)

    def each_of_last(self, count: int) -> list[Callable]:
        """Functions that restore the last `count` checkpoints, one each.

        Raises:
          UserError: if fewer are kept; the functions raise a `RemovedError` where a
            training has gone on meanwhile.
        """
        steps = self.steps(LAST)
        if len(steps) < count:
            raise UserError(
                f"--average_checkpoints={count}: expected as many checkpoints, found "
                f"{len(steps)}; train longer, with --config.train.keep_checkpoints of "
                f"at least {count}"
            )
        newest = steps[len(steps) - count :]
        return [
            functools.partial(self._restore, self._folder / LAST / str(step))
            for step in newest
        ]

    def _restore(self, folder) -> RunState:
        with _checked(folder) as plain:
            reader, carried = _reader(plain), ()
            self._check_variables(folder, reader.get_variable_to_shape_map())
            for key, variable in self._variables.items():
                variable.assign(reader.get_tensor(key))
            if self._is_whole and (plain / CARRIED).exists():
                with (plain / CARRIED).open("rb") as file, np.load(file) as arrays:
                    carried = [arrays[name] for name in arrays]
            numbers = json.loads((plain / STATE).read_text())
        return RunState.from_numbers(numbers, carried)

    def _check_variables(self, folder, stored):
        expected = {key: list(x.shape) for key, x in self._variables.items()}

        def is_needed(key):
            if key in expected or self._is_whole:
                return True
            # An optimizer is of no use here, nor are the seeds of training.
            return _is_weight(key) and _path(key).split("/")[-1] not in self._unused

        keys = {key for key in stored if key.endswith(ENDING)} | expected.keys()
        different = [
            _path(key)
            for key in sorted(keys)
            if stored.get(key) != expected.get(key) and is_needed(key)
        ]
        if different:
            raise OtherModelError(folder, different)


def _by_keys(part, owner):
    """{key in a checkpoint: Keras variable} of a model or an optimizer.

    Raises:
      ValueError: if two variables share a path: one of them would not be saved.
    """
    variables, seeds = {}, 0
    for variable in owner.variables:
        name = variable.path.replace(".", "..").replace("/", ".S")
        if variable.name == SEED:  # Keras counts their paths up over the process
            name, seeds = f"seeds/{seeds}", seeds + 1
        key = f"{part}/{name}{ENDING}"
        if key in variables:
            raise ValueError(f"{variable.path}: two variables have this path")
        variables[key] = variable
    return variables


def _is_weight(key):
    return key.startswith("model/") and not key.startswith("model/seeds/")


def _path(key):
    """The path of the variable of a key."""
    name = key.partition("/")[2].removesuffix(ENDING)
    return name.replace(".S", "/").replace("..", ".")


def _write(path, variables):
    tf.raw_ops.SaveV2(
        prefix=str(path),
        tensor_names=list(variables),
        shape_and_slices=[""] * len(variables),
        tensors=[np.asarray(variable.value) for variable in variables.values()],
    )


def _reader(folder):
    # Not load_checkpoint, which takes the names' beginning for a remote folder.
    return tf.compat.v1.train.NewCheckpointReader(str(folder / WEIGHTS))


def _remove(folder):
    # The name goes first and in one go, so that who reads tells this from damage.
    if not is_remote(folder):
        folder = folder.rename(folder.with_name(f"{UNFINISHED}{folder.name}"))
    remove_folder(folder)


@contextmanager
def _checked(folder):
    """The sound checkpoint in a folder, to be read within, as `_without_patterns`.

    Raises:
      DamagedError: if it is damaged; a `RemovedError` if it has gone meanwhile.
    """
    try:
        checksums.check(folder)
        with _without_patterns(folder) as plain:
            yield plain
    except (DamagedError, OSError, tf.errors.OpError):
        if folder.exists():
            raise
        raise RemovedError(
            f"{folder}: expected a checkpoint, found that it was removed while it was "
            "read; repeat that when the training which removes it has ended"
        ) from None


@contextmanager
def _without_patterns(folder):
    """The folder by a name that TensorFlow, which reads by pattern, takes literally."""
    if not set(PATTERN) & set(str(folder)):
        yield folder
        return
    with tempfile.TemporaryDirectory() as parent:
        link = Path(parent) / "checkpoint"
        link.symlink_to(folder.resolve())
        yield link
