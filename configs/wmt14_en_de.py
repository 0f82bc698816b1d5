"""WMT 2014 English to German translation (table 2)."""

from configs.common import translation_config, wmt14_data


def get_config(variant: str = "transevolve-fullff-2"):
    """See `configs.common.VARIANTS` for the variants."""
    data = wmt14_data("de")
    return translation_config("wmt14_en_de", variant, "base", data, extra_length=50)
