"""Tests of everything; tests/golden holds what the authors' code computes."""

import gc

# TensorFlow's objects are many and seldom garbage: looking for it takes a tenth of the
# time of a test.
gc.set_threshold(1_000_000, 10, 10)
