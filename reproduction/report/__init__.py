"""One page in one file with the results of runs."""
