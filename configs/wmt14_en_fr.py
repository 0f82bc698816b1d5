"""WMT 2014, English to French (table 2).

    python train.py --config=configs/wmt14_en_fr.py:VARIANT --workdir=runs/wmt14_en_fr
    python evaluate.py --workdir=runs/wmt14_en_fr --average_checkpoints=10

`paper`: 300,000 steps of 512 pairs. On a TPU v3-8 the authors report a BLEU on
newstest2014 of 32.6 (randomFF-1), 33.4 (randomFF-2), 38.0 (fullFF-1) and 39.5
(fullFF-2).
"""

from ml_collections import ConfigDict

from configs import wmt14_en_de

PRESETS = wmt14_en_de.PRESETS


def get_config(argument: str = "") -> ConfigDict:
    """The settings of a variant, by default transevolve-fullff-2, and of a preset."""
    return wmt14_en_de.from_english("fr", argument, extra_length=35)
