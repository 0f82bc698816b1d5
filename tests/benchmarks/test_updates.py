"""Updates as training takes them."""

from types import SimpleNamespace

import pytest

from benchmarks import updates


@pytest.mark.parametrize(
    "is_asked_for, by_jax, expected",
    [(True, False, ["enabled"]), (False, False, []), (True, True, [])],
)
def test_operations_are_deterministic_where_training_has_them_so(
    is_asked_for, by_jax, expected, monkeypatch
):
    calls = []
    monkeypatch.setattr(updates, "BY_JAX", by_jax)
    monkeypatch.setattr(updates, "one_device_trainer", lambda *_, **__: (None, None))
    monkeypatch.setattr(
        updates.tf.config.experimental,
        "enable_op_determinism",
        lambda: calls.append("enabled"),
    )
    settings = SimpleNamespace(deterministic=is_asked_for)
    batches = SimpleNamespace(for_training=lambda seed: None, fillers=None)
    updates.task_updates(
        SimpleNamespace(
            config=SimpleNamespace(train=settings),
            build_model=None,
            training_batches=lambda: batches,
        ),
        count=1,
    )
    assert calls == expected
