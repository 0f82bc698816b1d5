"""Random features beside softmax attention."""

import numpy as np
import pytest

from benchmarks import features, rows


def test_random_features_come_near_softmax_attention(monkeypatch, tmp_path):
    """Their error falls as 1 / sqrt(m), and is smaller with orthogonal vectors."""
    monkeypatch.setattr(features, "NUM_FEATURES", (64, 256, 1024))
    monkeypatch.setattr(features, "DRAWS", 5)
    found = list(features.measure())
    errors = {}
    for row in found:
        errors.setdefault(row["vectors"], {})[row["num_features"]] = row["error"]
    for line in errors.values():
        counts, means = np.log(list(line)), np.log(list(line.values()))
        assert np.polyfit(counts, means, 1)[0] == pytest.approx(-0.5, abs=0.08)
    for count, error in errors["independent"].items():
        nearest = errors["orthogonal, paired"][count]
        assert nearest < errors["orthogonal"][count] < error
    rows.plot(found, tmp_path / "features.png")
    assert (tmp_path / "features.png").read_bytes().startswith(b"\x89PNG")
