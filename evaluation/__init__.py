"""Opening a run, evaluating it, answering lines."""
