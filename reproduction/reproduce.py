"""The paper's tables: runs, measurements, results, a report."""

import logging
import re
import time
from collections import Counter

from common.errors import UserError
from common.paths import make_local_path, make_path, write_whole
from common.paths import check_writable_file
from models import variants
from reproduction import measure, plan, survey, tables
from reproduction.experiment import Places
from reproduction.pictures import learning_curves
from reproduction.report.build import NAME as REPORT
from reproduction.report.build import facts_of, left_out
from reproduction.report.page import page
from reproduction.running import run_all
from reproduction.scales import SCALES
from reproduction.sheet import Picture, Sheet
from reproduction.tables.table import Results
from training import cli

MEASURED = (measure.SPEED, measure.MEMORY)
# More would be a slip of the keyboard, or a folder of somebody else.
MOST_SEEDS = 1000
# Of a command that runs for days.
SECONDS_BETWEEN_RESULTS = 600

logger = logging.getLogger("transevolve")


class Reproduction:
    """The runs of tables at a scale, and what is made of them.

    Args:
      table: a key of `tables.TABLES`, or "all".
      scale: a key of `SCALES`.
      output: folder of runs and results.
      data_dir: folder of the data as its authors ship it, or None.
      seeds: how many, if not the scale's own number.
      only: a regular expression; runs whose name it is not found in are not run, nor
        are the measurements "speed" and "memory".
      models: names of the variants to run, if not the scale's.

    Results have the runs that lie there, whatever is run.

    Raises:
      UserError: for a bad argument.
    """

    def __init__(
        self,
        table: str,
        scale: str,
        output,
        data_dir=None,
        seeds: int | None = None,
        only: str = "",
        models: list[str] | None = None,
    ):
        output = make_local_path(output, "--output")
        if data_dir is not None:
            data_dir = make_path(data_dir, "--data_dir")
        if scale not in SCALES:
            raise UserError(f"--scale={scale}: expected one of {', '.join(SCALES)}")
        if seeds is not None and not 0 < seeds <= MOST_SEEDS:
            raise UserError(
                f"--seeds: expected a whole number from 1 to {MOST_SEEDS:,}, found "
                f"{seeds}"
            )
        self.tables = tables.named(table)
        # What is run, and what is shown.
        self.scale = self._shown = SCALES[scale]
        if models:
            chosen = _variants(self.scale, models)
            shown = {**chosen, **self.scale.variants}
            self._shown = self.scale._replace(variants=shown)
            self.scale = self.scale._replace(variants=chosen, systems={})
        self.seeds = seeds
        self.places = Places(output, scale, data_dir)
        self._written = time.monotonic()
        wanted = _pattern(only)
        chosen = tables.experiments(self.tables, self.scale, seeds)
        self.experiments = [one for one in chosen if wanted(one.name)]
        is_timed = any(table.is_timed for table in self.tables)
        measured = MEASURED if is_timed else ()
        self._to_measure = [name for name in measured if wanted(name)]
        if not self.experiments and not self._to_measure:
            names = [one.name for one in chosen[:3]]
            raise UserError(
                f"--only={only}: expected a pattern that is found in some run's name, "
                f"such as {', '.join([*names, *measured])}"
            )

    def plan(self, strategy: str, tpu: str = "") -> Sheet:
        """What would run, and how long it would take here; see `plan.plan`."""
        return plan.plan(self.experiments, self.places, strategy, tpu)

    def run(self, strategy: str, tpu: str = "") -> list[str]:
        """Runs and measures what is not done, and writes the results, now and then too.

        Returns:
          Names of the runs and measurements that failed.

        Raises:
          Interrupted: after a signal; what was done is kept.
          UserError: if the folder cannot be written to, or holds runs of other
            settings.
        """
        check_writable_file(self.places.results / REPORT, "--output")
        for seed, path in self._found_seeds():
            if seed >= MOST_SEEDS:
                expected = f"expected a seed below {MOST_SEEDS:,}"
                logger.warning("left out: %s: %s", path, expected)
        failed = run_all(self.experiments, self.places, strategy, tpu, self._in_between)
        unmeasured = []
        if self._to_measure:
            folder = self.places.results
            unmeasured = measure.measure(self.scale, folder, self._to_measure)
        self.write()
        return [*(experiment.name for experiment in failed), *unmeasured]

    def sheets(self) -> list[Sheet]:
        """The tables that were asked for, of what has been run so far."""
        return self._sheets(self.tables)

    def _sheets(self, chosen):
        folder = self.places.results
        folder.mkdir(parents=True, exist_ok=True)
        (runs, _), seeds = self._runs(chosen), self._seeds()
        results = Results(
            self._shown,
            runs,
            self._missing(chosen, runs),
            measure.rows(folder, measure.SPEED),
            measure.rows(folder, measure.MEMORY),
            folder,
            measure.device(folder, measure.SPEED),
        )
        return [
            sheet
            for table in chosen
            for sheet in table.sheets(self._scale_of(table), seeds, results)
        ]

    def write(self) -> None:
        """Writes each table as Markdown, JSON and CSV, curves, and the report."""
        self._written = time.monotonic()
        folder = self.places.results
        shown = self._with_runs()
        sheets = self._sheets(shown)
        for sheet in sheets:
            for ending in ("md", "json", "csv"):
                text = getattr(sheet, {"md": "markdown"}.get(ending, ending))()
                write_whole(folder / f"{sheet.name}.{ending}", text)
        by_name, damaged = self._runs(shown)
        runs = list(by_name.values())
        curves = Sheet("curves", "Learning curves", [], [], [], self._curves(runs))
        notes = [self.scale.meaning, *left_out(damaged)]
        places = self.places
        if sentence := plan.accuracy_of_plan(self.experiments, places, by_name):
            logger.info("%s", sentence)
            notes.append(sentence)
        text = page(
            f"TransEvolve: tables at scale {self.scale.name}",
            [*sheets, curves] if runs else sheets,
            runs,
            facts_of(runs),
            folder,
            notes,
        )
        write_whole(folder / REPORT, text)
        logger.info("report: %s", folder / REPORT)

    def _in_between(self):
        """Writes the results, if that is a while ago.

        Runs go on where that fails, as on a disk that is full for a while. At the end
        it is told again.
        """
        if time.monotonic() - self._written > SECONDS_BETWEEN_RESULTS:
            try:
                self.write()
            except Exception as error:
                logger.warning(
                    "results were not written, runs go on: %s",
                    cli.explain(error) or f"{type(error).__name__}: {error}",
                )

    def _scale_of(self, table):
        """The scale with the models that a table shows."""
        if table.is_of_all_models:
            return self._shown
        return self.scale if table in self.tables else SCALES[self.scale.name]

    def _seeds(self):
        """How many seeds there are to show: those asked for, and those run before."""
        before = [1 + seed for seed, _ in self._found_seeds() if seed < MOST_SEEDS]
        return max([self.seeds or 0, *before]) or None

    def _found_seeds(self):
        """(seed, folder) of each folder of a seed."""
        return [
            (int(seed), path)
            for path in self.places.runs.glob("**/seed-*")
            if (seed := path.name.removeprefix("seed-")).isdecimal()
        ]

    def _experiments(self, table):
        """{name: what a table shows}, whether it has been run or not."""
        found = table.experiments(self._scale_of(table), self._seeds())
        return {one.name: one for one in found}

    def _with_runs(self):
        """The tables that were asked for, and others that another command has run."""
        of_each = {name: self._experiments(one) for name, one in tables.TABLES.items()}
        runs, _ = self._runs(tables.TABLES.values())
        # A run that tables share does not say which of them was asked for.
        shared = Counter(name for found in of_each.values() for name in found)
        return [
            table
            for table in tables.TABLES.values()
            if table in self.tables
            or any(
                shared[name] == 1 and one.is_finished(runs.get(name))
                for name, one in of_each[table.name].items()
            )
        ]

    def _runs(self, chosen):
        """The runs of tables by name, and why others are left out, as `survey` says."""
        folder = self.places.runs
        names = {name for table in chosen for name in self._experiments(table)}
        runs, damaged = survey.read_each((folder / name for name in names), folder)
        return {run.name: run for run in runs}, damaged

    def _missing(self, chosen, runs):
        """{name of a setting: why it was not run}, of what has not been run before."""
        experiments = [
            one for table in chosen for one in self._experiments(table).values()
        ]
        finished = {
            experiment.setting.name
            for experiment in experiments
            if experiment.is_finished(runs.get(experiment.name))
        }
        return {
            experiment.setting.name: "--data_dir has no "
            + " or ".join(experiment.setting.folders)
            for experiment in experiments
            if self.places.data(experiment.setting) is None
            and experiment.setting.name not in finished
        }

    def _curves(self, runs) -> list[Picture]:
        by_setting = {}
        for run in runs:
            by_setting.setdefault(run.name.split("/")[0], []).append(run)
        pictures = [
            learning_curves(some, name, self.places.results, f"curves-{name}.png")
            for name, some in by_setting.items()
        ]
        return [picture for picture in pictures if picture]


def _variants(scale, models):
    known = variants()
    for name in models:
        if name not in known:
            raise UserError(
                f"--variants: expected some of {', '.join(known)}, found {name!r}"
            )
    usual = {**scale.systems, **scale.variants}
    return {name: usual.get(name, {}) for name in models}


def _pattern(only):
    try:
        return re.compile(only).search
    except re.error as error:
        raise UserError(
            f"--only={only}: expected a regular expression, found {error}"
        ) from None
