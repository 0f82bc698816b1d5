"""Tables, plots and results for people."""
