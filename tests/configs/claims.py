"""The claims of docs/claims.md: where the paper says them, and what its tables give,
computed from `configs.published`."""

import functools
import itertools

from configs import published
from configs.published import ACCURACY, BLEU, OTHER_ACCURACY, SPEED
from data.datasets import listops
from models import build_classifier, variant_config
from tests.models.builders import count_parameters

EVOLVING = ["randomff-1", "randomff-2", "fullff-1", "fullff-2"]
RANDOM, FULL = EVOLVING[:2], EVOLVING[2:]
ONE_BLOCK, TWO_BLOCKS = EVOLVING[::2], EVOLVING[1::2]
SHORT, LONG = ["ag_news", "imdb"], ["listops", "char_imdb"]
LENGTHS = [1000, 2000, 3000, 4000]
EN_DE, EN_FR = BLEU["en", "de"], BLEU["en", "fr"]
COLUMNS = [*EN_DE.values(), *EN_FR.values()]
SYNTHESIZER = "transformer-synthesizer-dense"
REFORMER, RFA = "transformer-reformer", "transformer-rfa"
# Names of tokens, padding among them, and classes: ListOps', and word pieces of IMDB.
VOCABULARIES = [(len(listops.SYMBOLS) + 1, 10), (30_522, 2)]


def of(figures, name):
    return figures[f"transevolve-{name}"]


def extremes(numbers, form="", unit=""):
    return f"{min(numbers):{form}} to {max(numbers):{form}}{unit}"


def signed(numbers):
    return ", ".join(f"{number:+.1f}" for number in numbers).replace("-", "−")


def positive(numbers, unit):
    return f"{sum(number > 0 for number in numbers)} of {len(numbers)} {unit}"


def differences(first, second, figures):
    """Of each pair of two lists of variants, in each table of figures."""
    pairs = [*zip(first, second, strict=True)]
    return [round(of(one, a) - of(one, b), 1) for one in figures for a, b in pairs]


# What the columns "figures" and "its tables give" have, each function for a claim or
# for some of one kind.


def difference(larger, smaller, unit):
    return f"{larger} − {smaller}", f"{larger - smaller:.1f} {unit}"


def bleu(test_set):
    return difference(of(test_set, "fullff-2"), test_set["transformer"], "BLEU")


def bleu_lost(test_set):
    return difference(test_set["transformer"], of(test_set, "fullff-2"), "BLEU")


def points(task, name, system="transformer"):
    systems = {**ACCURACY[task], **OTHER_ACCURACY[task]}
    return difference(of(ACCURACY[task], name), systems[system], "points")


def shares_of_parameters(*names):
    figures = published.TRANSLATION_PARAMETERS
    whole = figures["transformer"]
    counts = [of(figures, name) for name in names]
    return (
        f"{' and '.join(map(str, counts))} of {whole} M",
        [100 * count / whole for count in counts],
    )


def saved_parameters():
    figures, (share,) = shares_of_parameters("fullff-2")
    return figures, f"{100 - share:.1f} %"


def random_parameters():
    figures, shares = shares_of_parameters(*RANDOM)
    return figures, "{:.1f} and {:.1f} %".format(*shares)


def shares_of_bleu():
    """(percent, BLEU, the Transformer's BLEU) of randomFF, the smallest first."""
    pairs = [(of(one, name), one["transformer"]) for one in COLUMNS for name in RANDOM]
    return sorted((100 * ours / theirs, ours, theirs) for ours, theirs in pairs)


def random_bleu():
    ends = shares_of_bleu()[0], shares_of_bleu()[-1]
    figures = " to ".join(f"{ours} of {theirs}" for _, ours, theirs in ends)
    return figures, extremes([share for share, *_ in ends], ".1f", " %")


def bleu_steps():
    rises = differences(EVOLVING[1:], EVOLVING[:-1], COLUMNS)
    return extremes(rises, "+"), positive(rises, "steps")


def fullff_2_above_the_transformer(*test_sets):
    gains = [round(of(one, "fullff-2") - one["transformer"], 1) for one in test_sets]
    return signed(gains), positive(gains, "figures")


def random_below_full():
    pairs = itertools.product(RANDOM, FULL)
    random, full = zip(*pairs, strict=True)
    losses = differences(full, random, COLUMNS)
    return extremes(losses, "+"), positive(losses, "pairs")


def parameters_of_a_translator():
    whole = published.TRANSLATION_PARAMETERS["transformer"]
    return f"{whole} M", f"{whole / 10} × 10⁷"


def above_the_transformer():
    gains = [
        round(of(one, name) - one["transformer"], 1)
        for one in ACCURACY.values()
        for name in EVOLVING
    ]
    return extremes(gains, "+"), positive(gains, "figures")


def ranks(name):
    figures, places = [], []
    for task in SHORT:
        ordered = sorted((of(ACCURACY[task], x) for x in EVOLVING), reverse=True)
        figures.append(f"{of(ACCURACY[task], name)} of {ordered[-1]} to {ordered[0]}")
        places.append(1 + ordered.index(of(ACCURACY[task], name)))
    return "; ".join(figures), "rank {} and {} of 4".format(*places)


def above_all_others(task):
    ours = [of(ACCURACY[task], name) for name in EVOLVING]
    most = max(OTHER_ACCURACY[task].values())
    above = positive([x - most for x in ours], "").strip()
    return f"{', '.join(map(str, ours))}; {most}", above


def above_rfa():
    figures, least = ACCURACY["char_imdb"], OTHER_ACCURACY["char_imdb"][RFA]
    (name,) = (name for name in EVOLVING if of(figures, name) > least)
    return f"{of(figures, name)}; {least}", f"{name.replace('ff', 'FF')} alone"


def one_block_above(*tasks):
    gains = differences(ONE_BLOCK, TWO_BLOCKS, [ACCURACY[task] for task in tasks])
    return signed(gains), positive(gains, "pairs")


def random_above_in_long_tasks():
    short, long = (
        differences(RANDOM, FULL, [ACCURACY[task] for task in tasks])
        for tasks in (SHORT, LONG)
    )
    right = [*long, *(-gain for gain in short)]
    return f"{signed(long)}; {signed(short)}", positive(right, "pairs")


@functools.cache
def sizes(width):
    """[(parameters of each TransEvolve, of a Transformer)], for each vocabulary."""

    def count(name, width, vocabulary):
        config = {**variant_config(name), "hidden_dim": width, "ffn_dim": 4 * width}
        return count_parameters(
            build_classifier, {**config, "num_heads": 8}, *vocabulary
        )

    names = [f"transevolve-{name}" for name in EVOLVING]
    return [
        ([count(name, 256, one) for name in names], count("transformer", width, one))
        for one in VOCABULARIES
    ]


def millions(counts, whole):
    ours = [count / 1e6 for count in counts]
    return extremes(ours, ".1f", f" of {whole / 1e6:.1f} M")


def listops_parameters(width):
    counts, whole = sizes(width)[0]
    shares = [100 * count / whole for count in counts]
    return millions(counts, whole), extremes(shares, ".0f", " %")


def saved(width):
    """Percent of a Transformer's parameters, by vocabulary and variant."""
    return [
        [100 - 100 * count / whole for count in counts]
        for counts, whole in sizes(width)
    ]


def fewer_parameters(width):
    figures = "; ".join(millions(*counted) for counted in sizes(width))
    return figures, extremes([*itertools.chain(*saved(width))], ".0f", " %")


def speeds():
    return [speed for one in SPEED.values() for speed in one.values()]


def faster_than_the_transformer():
    return extremes(speeds()), positive([speed - 1 for speed in speeds()], "figures")


def speed_of_rfa():
    figures = published.OTHER_SPEED[RFA].values()
    return ", ".join(map(str, figures)), extremes(figures, unit=" times as fast")


def largest_speed():
    return extremes(speeds()), f"{max(speeds())} at most"


def faster_with_length():
    ends = [(of(SPEED, name)[1000], of(SPEED, name)[4000]) for name in EVOLVING]
    figures = ", ".join(f"{short} to {long}" for short, long in ends)
    return figures, positive([long - short for short, long in ends], "variants")


def faster(first, second):
    """At how many lengths the first of each pair is faster, and as fast."""
    by_length = [
        {name: speeds[length] for name, speeds in SPEED.items()} for length in LENGTHS
    ]
    gains = differences(first, second, by_length)
    return extremes(gains, "+"), f"{positive(gains, 'pairs')}, {gains.count(0)} equal"


# By the first words of a row: where the paper says it, with its number as a group if
# it has one, and the function of the row's figures with its arguments.
CLAIMS = {
    "fullFF-2's gain over the Transformer, En-Fr": (
        r"English-to-French translation by ([\d.]+) BLEU",
        bleu,
        EN_FR["newstest2014"],
    ),
    "the same gain again": (
        r"En-Fr dataset by ([\d.]+) points BLEU",
        bleu,
        EN_FR["newstest2014"],
    ),
    "fullFF-2's gain, En-De 2013": (
        r"with ([\d.]+) gain and [\d.]+ drops in BLEU",
        bleu,
        EN_DE["newstest2013"],
    ),
    "fullFF-2's loss": (
        r"gain and ([\d.]+) drops in BLEU",
        bleu_lost,
        EN_DE["newstest2014"],
    ),
    "parameters that fullFF-2": (
        r"score while using (\d+)% fewer trainable parameters",
        saved_parameters,
    ),
    "randomFF's share of the Transformer's parameters": (
        r"less than (\d+)% of the parameters used by",
        random_parameters,
    ),
    "randomFF's share of the Transformer's BLEU": (
        r"achieve above (\d+)% perfor",
        random_bleu,
    ),
    "BLEU rises": (
        "degrades with the decrease in the total parameter size on translation",
        bleu_steps,
    ),
    "fullFF-2 is above the Transformer": (
        r"in two datasets \(En-De 2013 and En-Fr 2014\) clearly",
        fullff_2_above_the_transformer,
        EN_DE["newstest2013"],
        EN_FR["newstest2014"],
    ),
    "randomFF is below fullFF": (
        "randomFF versions perform poorly compared to fullFF",
        random_below_full,
    ),
    "parameters of a Transformer that translates": (
        r"(7) × 107 in neural machine translation",
        parameters_of_a_translator,
    ),
    "each TransEvolve is above the Transformer": (
        "On all the encoder-only tasks, TransEvolve outperforms Transformer",
        above_the_transformer,
    ),
    "fullFF-1's gain over Synthesizer": (
        r"outperforming Synthesizer \(the best baseline\) by (\d+)%",
        points,
        "ag_news",
        "fullff-1",
        SYNTHESIZER,
    ),
    "fullFF-2's gain over Synthesizer": (
        r"improvements of (\d+)% and [\d.]+% upon Synthesizer",
        points,
        "imdb",
        "fullff-2",
        SYNTHESIZER,
    ),
    "fullFF-2's gain over the Transformer, IMDB": (
        r"improvements of \d+% and ([\d.]+)% upon Synthesizer",
        points,
        "imdb",
        "fullff-2",
    ),
    "fullFF-1 is the best": (
        "fullFF-1 achieves the best performance on both datasets",
        ranks,
        "fullff-1",
    ),
    "randomFF-1's gain over Reformer": (
        r"\(existing state-of-the-art\) by ([\d.]+)% and Transformer",
        points,
        "listops",
        "randomff-1",
        REFORMER,
    ),
    "randomFF-1's gain over the Transformer": (
        r"\(existing state-of-the-art\) by [\d.]+% and Transformer by ([\d.]+)%",
        points,
        "listops",
        "randomff-1",
    ),
    "each TransEvolve is above all other systems, ListOps": (
        "all four versions of Trans- Evolve show a gain in accuracy",
        above_all_others,
        "listops",
    ),
    "each TransEvolve is above all other systems, char-IMDB": (
        "along with previous methods on both ListOps and character-level sentiment",
        above_all_others,
        "char_imdb",
    ),
    "those above RFA": ("while only TransEvolve-randomFF-2 outperforms", above_rfa),
    "randomFF-2's gain over RFA": (
        r"improving upon RFA by ([\d.]+)%",
        points,
        "char_imdb",
        "randomff-2",
        RFA,
    ),
    "randomFF-2's gain over the Transformer": (
        r"upon RFA by [\d.]+% and Transformer by ([\d.]+)%",
        points,
        "char_imdb",
        "randomff-2",
    ),
    "one block of six depths is above two of three": (
        "6-layer deep encoder perform better than 2 successive 3-layer deep",
        one_block_above,
        "listops",
    ),
    "one block is above two, other": (
        "In other encoder-only tasks, there are no clear winners among the two",
        one_block_above,
        "ag_news",
        "imdb",
        "char_imdb",
    ),
    "randomFF is above fullFF": (
        "outperforming fullFF in both the long-range tasks while vice versa",
        random_above_in_long_tasks,
    ),
    "parameters as a share": (r"using (\d+)% of Transformer", listops_parameters, 512),
    "share of parameters saved": (
        r"with (\d+)% fewer trainable parameters and more than",
        fewer_parameters,
        512,
    ),
    "the same, beside the Transformer of width 256": (
        r"with (\d+)% fewer trainable parameters and more than",
        fewer_parameters,
        256,
    ),
    "RFA trains more slowly": (
        r"observed (\d+)% slower training compared to Transformer",
        speed_of_rfa,
    ),
    "training is faster": (
        "all the variants of TransEvolve run faster",
        faster_than_the_transformer,
    ),
    "speed-up of training": (
        r"results in a more than (\d)× training speedup for all the lengths",
        largest_speed,
    ),
    "speed-up grows": (
        "do not show any additional speed-up for longer sequences",
        faster_with_length,
    ),
    "randomFF is faster": (
        "randomFF versions run faster than fullFF ones",
        faster,
        RANDOM,
        FULL,
    ),
    "one block is faster": (
        "speed decreases with the increased number of shallower encoder blocks",
        faster,
        ONE_BLOCK,
        TWO_BLOCKS,
    ),
}
