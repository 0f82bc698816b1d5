"""Fingerprints of rows that are held in memory."""

import numpy as np

from data.batches import HeldBatches, fingerprint
from data.buckets import Buckets
from data.packed import PackedRows
from data.tokenizers.subwords import END


def test_pairs_are_known_by_the_fingerprint_of_earlier_versions():
    tokens = np.array([5, 6, END, 7, END], np.uint16)
    rows = PackedRows(tokens, np.array([[3, 2]], np.int32))
    batches = HeldBatches(rows, Buckets([4], 1))
    lengths = np.array([[2, 1]], np.int32)
    assert batches.has_fingerprint(batches.fingerprint)
    assert batches.has_fingerprint(fingerprint(tokens[[0, 1, 3]], lengths))
    assert not batches.has_fingerprint(fingerprint(tokens[[0, 1, 1]], lengths))
