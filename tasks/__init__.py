"""Tasks: what is learned, how it is measured, what it answers. A file each.

To add one, write its `Task` and name it here.
"""

from tasks.classification import ClassificationTask
from tasks.language_modelling import LanguageModellingTask
from tasks.masked_tokens import MaskedTokensTask
from tasks.task import Task
from tasks.translation import TranslationTask

# By the `kind` of a config.
TASKS: dict[str, type[Task]] = {
    "classification": ClassificationTask,
    "language_modelling": LanguageModellingTask,
    "masked_tokens": MaskedTokensTask,
    "translation": TranslationTask,
}
