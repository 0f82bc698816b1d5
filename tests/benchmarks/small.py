"""benchmark.py on models of few layers, and with a small product for the peak."""

import os
import runpy
import sys

from benchmarks import models, speed
from tests.shallow import shallow_variant

# What is forked has not read it.
sys.path += filter(None, [os.environ.get("PYTHONPATH")])
models.variant_config = shallow_variant
speed.PEAK_SIZE = 256
runpy.run_path("benchmark.py", run_name="__main__")
