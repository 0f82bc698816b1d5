"""Datasets as batches of token ids.

A classification dataset is a module with `CLASS_NAMES`, `SPLITS`, `SOURCES`,
`read(config, split)` and `identify(config, split)`; to add one, write the module and
name it in `DATASETS`. Translation has one module, `parallel_text`, for all datasets.
Importing this package stays cheap: the processes that generate ListOps do.
"""

from data import ag_news, imdb, listops

DATASETS = {"ag_news": ag_news, "imdb": imdb, "listops": listops}
