"""One file per task: the settings of the paper, and of a laptop."""
