"""The paper's tables by one command, and a report of any runs.

Ten ideas make the room. A reader meets them in this order:

  Experiment (experiment.py): a run as data, before it is run.
  Folder (experiment.py): where runs, results and data lie.
  Scale (scales.py): how large the experiments are.
  Job (running.py): what a process of its own does once, a run or a measurement.
  Record (records.py): what a run has left in its workdir.
  table (tables/): a module that states its rows and fills them from `Results`.
  Score (scores.py): a mean over seeds, and its verdict beside a published figure.
  Sheet (sheet.py): a table of results with its notes and pictures.
  plan (plan.py): what experiments will take.
  page (report/page.py): sheets and records as one HTML file.

`Reproduction` in reproduce.py joins them. short_listops.py is the newcomer's
comparison.
"""
