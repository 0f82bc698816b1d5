"""What tests of several files of data share."""

import pytest

from configs.multi30k import get_config
from data.tokenizers.subwords import SubwordTokenizer
from tests.conftest import SHARED


@pytest.fixture(scope="session")
def multi30k(tmp_path_factory):
    """The `data` part of the config for the real Multi30k, and its own subwords."""
    if not SHARED.is_dir():
        pytest.skip("no sample data beside this checkout")
    cache = tmp_path_factory.mktemp("multi30k")
    config = get_config().data
    config.update(dir=str(SHARED / "multi30k"), cache_dir=str(cache))
    return config, SubwordTokenizer.make(config)
