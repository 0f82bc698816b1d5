"""The paper's comparisons, run."""
