"""The paper's tables: runs, measurements, results, a report."""

import logging
import re
import time

from common import cli
from common.errors import UserError, check_known
from common.paths import (
    check_writable_file,
    make_local_path,
    make_path,
    write_whole,
)
from models import variants
from reproduction import plan, records, tables
from reproduction.experiment import Experiment, Folder
from reproduction.learning_curves import learning_curves
from reproduction.report.page import NAME as REPORT
from reproduction.report.page import page
from reproduction.results import Results
from reproduction.running import do_all, measured, run_all, write_json
from reproduction.scales import SCALES, Scale
from reproduction.sheet import Picture, Sheet

# More would be a slip of the keyboard, or a folder of somebody else.
MOST_SEEDS = 1000
# Which tables commands have asked for, this one or those before.
ASKED = "tables.json"
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
      only: a regular expression; runs and measurements whose name it is not found in
        are left out.
      models: names of the variants to run, if not the scale's.
      tune: whether other learning rates are tried, see `reproduction.tuning`.

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
        tune: bool = False,
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
        if table not in (known := (*tables.TABLES, "all")):
            raise UserError(f"--table={table}: expected one of {', '.join(known)}")
        self.tables = tables.ALL if table == "all" else (table,)
        self.seeds = seeds
        # What is run. More may be shown.
        self.scale = SCALES[scale].with_seeds(seeds)._replace(tunes=tune)
        if models:
            _refuse("variants", table, table in tables.OF_GIVEN_MODELS)
            chosen = _variants(self.scale, models)
            self.scale = self.scale._replace(variants=chosen, systems={})
        self.folder = Folder(output, scale, data_dir)
        self._written = time.monotonic()
        self._is_chosen = _pattern(only)
        usual = tables.experiments(self.tables, self.scale)
        untuned = tables.experiments(self.tables, self.scale._replace(tunes=False))
        _refuse("tune", table, tune and usual == untuned)
        _refuse("seeds", table, seeds is not None and not usual)
        self.experiments = [one for one in usual if self._is_chosen(one.name)]
        jobs = []
        for module in map(tables.TABLES.get, self.tables):
            if hasattr(module, "jobs"):
                jobs += module.jobs(self.scale, self.folder.results)
        self._jobs = [job for job in jobs if self._is_chosen(job.name)]
        if not self.experiments and not self._jobs:
            names = [one.name for one in (*usual[:3], *jobs[:3])]
            raise UserError(
                f"--only={only}: expected a pattern that is found in some run's name, "
                f"such as {', '.join(names)}"
            )

    def plan(self, strategy: str, tpu: str = "") -> Sheet:
        """What would run, and how long it would take here; see `plan.plan`."""
        return plan.plan(self.experiments, self.folder, strategy, tpu)

    def run(self, strategy: str, tpu: str = "") -> list[str]:
        """Runs and measures what is not done, and writes the results, now and then too.

        Returns:
          Names of the runs and measurements that failed.

        Raises:
          Interrupted: after a signal; what was done is kept.
          UserError: if the folder cannot be written to, or holds runs of other
            settings.
        """
        check_writable_file(self.folder.results / REPORT, "--output")
        for seed, path in self._seeds():
            if seed >= MOST_SEEDS:
                expected = f"expected a seed below {MOST_SEEDS:,}"
                logger.warning("left out: %s: %s", path, expected)
        after_each = self._write_now_and_then
        failed, begun = [], set()
        while left := [
            one for one in self._to_run(self._read()) if one.name not in begun
        ]:
            failed += run_all(left, self.folder, strategy, tpu, after_each)
            begun |= {one.name for one in left}
        failed += do_all(self._jobs, after_each)
        self.write()
        return failed

    def sheets(self) -> list[Sheet]:
        """The tables that were asked for, of what has been run so far."""
        return self._sheets(self.tables, self._read())

    def write(self) -> None:
        """Writes each table as Markdown, JSON and CSV, curves, and the report."""
        self._written = time.monotonic()
        folder, results = self.folder.results, self._read()
        before = measured(folder / ASKED)
        asked = [name for name in tables.TABLES if name in (*before, *self.tables)]
        sheets = self._sheets(asked, results)
        write_json(folder / ASKED, dict.fromkeys(asked, True))
        for sheet in sheets:
            write_whole(folder / f"{sheet.name}.md", sheet.markdown())
            write_whole(folder / f"{sheet.name}.json", sheet.json())
            write_whole(folder / f"{sheet.name}.csv", sheet.csv())
        members = list(results.records.values())
        if members:
            curves = self._curves(members)
            sheets.append(Sheet("curves", "Learning curves", [], [], [], curves))
        notes = [self.scale.meaning]
        if sentence := plan.accuracy_of_plan(self.folder, members):
            logger.info("%s", sentence)
            notes.append(sentence)
        title = f"TransEvolve: tables at scale {self.scale.name}"
        text = page(title, sheets, members, results.damaged, folder, notes)
        write_whole(folder / REPORT, text)
        logger.info("report: %s", folder / REPORT)

    def _write_now_and_then(self):
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

    def _seeds(self):
        """(seed, folder) of each folder of a seed, below symbolic links too."""
        glob = self.folder.runs.glob
        # A run with a choice lies a folder deeper.
        paths = [*glob("*/*/seed-*"), *glob("*/*/*/seed-*")]
        return [
            (int(seed), path)
            for path in paths
            if (seed := path.name.removeprefix("seed-")).isdecimal()
        ]

    def _shown_scale(self, table, results) -> Scale:
        """The scale with all models, seeds and learning rates that a table shows."""
        usual = SCALES[self.scale.name]._replace(tunes=True)
        if table not in tables.OF_CHOSEN_MODELS:
            models = {**self.scale.variants, **usual.variants}
            scale = usual._replace(variants=models)
        else:
            scale = self.scale if table in self.tables else usual
        begun = [*results.records, *results.damaged]
        before = [1 + int(name.rpartition("seed-")[2]) for name in begun]
        return scale.with_seeds(max([self.seeds or 0, *before]))

    def _to_run(self, results) -> list[Experiment]:
        """What there is to run by now: which runs follow may depend on what trials
        gave."""
        usual = tables.experiments(self.tables, self.scale, results)
        return [one for one in usual if self._is_chosen(one.name)]

    def _read(self) -> Results:
        """What the runs that lie there have left."""
        workdirs = [path for seed, path in self._seeds() if seed < MOST_SEEDS]
        runs, damaged = records.read_each(workdirs, self.folder.runs)
        return Results({record.name: record for record in runs}, self.folder, damaged)

    def _sheets(self, named, results):
        self.folder.results.mkdir(parents=True, exist_ok=True)
        sheets = []
        for table in named:
            scale = self._shown_scale(table, results)
            sheets += tables.TABLES[table].sheets(scale, results)
        return sheets

    def _curves(self, members) -> list[Picture]:
        pictures = []
        for task in dict.fromkeys(record.name.split("/")[0] for record in members):
            some = [one for one in members if one.name.split("/")[0] == task]
            name = f"curves-{task}.png"
            pictures.append(learning_curves(some, task, self.folder.results, name))
        return list(filter(None, pictures))


def _refuse(flag, table, changes_nothing):
    if changes_nothing:
        raise UserError(f"--{flag}: not expected beside --table={table}")


def _variants(scale, models):
    check_known("variants", models, variants())
    usual = {**scale.systems, **scale.variants}
    return {name: usual.get(name, {}) for name in models}


def _pattern(only):
    try:
        return re.compile(only).search
    except re.error as error:
        raise UserError(
            f"--only={only}: expected a regular expression, found {error}"
        ) from None
