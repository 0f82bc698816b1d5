"""One module a dataset; `data` says what it has."""
