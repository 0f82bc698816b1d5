"""Writes a SavedModel: export.py --workdir=DIR --output=DIR."""

import json
import os

from common import cli  # first: it quiets TensorFlow's logs

from absl import flags

run_arguments = cli.define_run()
OUTPUT = flags.DEFINE_string("output", None, "Folder to write, empty or not there yet.")
DTYPE = flags.DEFINE_string(
    "dtype", "float32", '"float32" or "bfloat16", of the stored weights.'
)


def main():
    # The process that checks the export needs memory of the same GPU.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    from export.saved_model import export

    written = export(output=OUTPUT.value, dtype=DTYPE.value, **run_arguments())
    print(json.dumps(written))


if __name__ == "__main__":
    flags.mark_flag_as_required("output")
    cli.run(main)
