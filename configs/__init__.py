"""One file per task: the settings of the papers, and of a laptop."""
