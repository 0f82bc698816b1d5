"""What training checks before it starts."""

import pytest
import tensorflow as tf

from common.errors import UserError
from configs import multi30k
from tests.translation import FLAGS, write
from training.train import train_and_evaluate


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {},
            r"bucket_lengths: expected one length, .*, found \(12, 24\); give \(24,\)",
        ),
        (
            {"data.bucket_lengths": (4,), "data.max_length": 4},
            "max_length: expected room for all validation data, .* found 4 tokens, "
            "and an example of up to 20$",
        ),
    ],
)
def test_a_tpu_program_has_one_shape(changes, message, tmp_path, monkeypatch):
    write(tmp_path)
    config = multi30k.get_config()
    flags = {**FLAGS, "data.bucket_lengths": (12, 24), **changes}
    folders = {"data.dir": str(tmp_path), "data.cache_dir": str(tmp_path / "cache")}
    config.update_from_flattened_dict({**flags, **folders})
    monkeypatch.setattr(tf.distribute, "TPUStrategy", tf.distribute.OneDeviceStrategy)
    with pytest.raises(UserError, match=message):
        train_and_evaluate(config, tmp_path / "run")
