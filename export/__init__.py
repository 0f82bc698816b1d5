"""A trained run as a SavedModel, which needs nothing of this repository."""
