"""Seconds of a beam search, models side by side, with a cache and without."""

import functools
import itertools
import statistics
from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from benchmarks import models
from benchmarks.calls import Setting, check
from benchmarks.timing import interleave, speedup, summary
from common.errors import UserError
from decoding.beam_search import beam_search
from decoding.translation import cached_step
from models import build_encoder_decoder, build_language_model
from models.attention.cache import SlotMap, num_bytes
from models.convert import fold_rotations
from models.language_model import LanguageModel

VOCABULARY_SIZE = 32_000
START = 2
RECOMPUTED = "-recomputed"


def measure(
    names: list[str],
    lengths: list[int],
    size: str = "base",
    beam_size: int = 4,
    batch_size: int = 8,
    source_length: int = 32,
    causal: bool = False,
    recompute: bool = True,
    rounds: int = 5,
    xla: bool = False,
) -> Iterator[dict]:
    """Times searches of all models and lengths by turns; yields a row for each.

    Each search translates `batch_size` random sentences to exactly `length` tokens,
    the encoder included, or writes so many texts by a language model, from nothing. Its
    shapes allow for the longest of the lengths. A row has
    the median of the rounds, their spread, tokens and sentences a second; the ratio of
    speeds in the same round to the Transformer, and to the same model without a cache,
    which runs the decoder over each hypothesis at every step; the milliseconds of a
    step, the encoder not counted, of the steps that the length before did not have,
    and how many times those of the first length they are; the bytes that the cache
    holds for each token of a hypothesis, and those that it holds whatever the length.

    Args:
      names: of variants that can decode.
      lengths: tokens of an output, rising.
      size: a key of `models.SIZES`.
      beam_size: hypotheses alive at a time.
      batch_size: sentences.
      source_length: tokens of a sentence.
      causal: language models are timed, and no translators.
      recompute: time the models without a cache, too; slow.
      rounds: timed ones; one before them does not count.
      xla: compile by XLA.

    Raises:
      UserError: if a model is unknown or has no decoder, or lengths do not rise.
    """
    if causal:
        models.check_language_models(names)
    else:
        check(names, Setting(size=size, task="translation"))
    if any(long <= short for short, long in itertools.pairwise(lengths)):
        raise UserError(f"--lengths: expected rising numbers, found {lengths}")
    sources = np.random.default_rng(0).integers(
        START + 1, VOCABULARY_SIZE, (batch_size, source_length)
    )
    sources = tf.constant(sources, tf.int32)
    calls, cache_bytes = {}, {}
    for name in names:
        keras.utils.set_random_seed(0)
        build = build_language_model if causal else build_encoder_decoder
        model = build(models.model_config(name, size), VOCABULARY_SIZE)
        model = fold_rotations(model)
        stack = model.encoder if causal else model.decoder
        cache_bytes[name] = num_bytes(stack.empty_cache(1, 1))
        calls[name, 0] = _encoding(model, sources, xla)
        steps = {name: (continuing_step if causal else cached_step, model.empty_cache)}
        if recompute:
            steps[name + RECOMPUTED] = (recomputing_step, SlotMap.empty)
        for kind, step in steps.items():
            search = _search(model, *step, beam_size, lengths[-1], xla)
            for length in lengths:
                calls[kind, length] = functools.partial(search, sources, length)

    seconds = interleave(calls, rounds, "decoding")
    for name, length in itertools.product(names, lengths):
        times = summary(seconds[name, length], 4)
        median = statistics.median(seconds[name, length])
        steps = _milliseconds_per_step(seconds, name, lengths)
        row = {
            "benchmark": "decode",
            "model": name,
            "size": size,
            "xla": xla,
            "causal": causal,
            "beam": beam_size,
            "batch": batch_size,
            "length": length,
            **times,
            "sentences_per_second": round(batch_size / median, 2),
            "tokens_per_second": round(batch_size * length / median, 1),
            "milliseconds_per_step": round(statistics.median(steps[length]), 2),
            "growth_of_step": round(speedup(steps, lengths[0], length), 3),
            "cache_bytes_per_token": cache_bytes[name][0],
            "cache_bytes_fixed": cache_bytes[name][1],
        }
        if models.BASELINE in names:
            ratio = speedup(seconds, (name, length), (models.BASELINE, length))
            row["ratio_to_transformer"] = round(ratio, 3)
        if recompute:
            ratio = speedup(seconds, (name, length), (name + RECOMPUTED, length))
            row["ratio_to_recomputing"] = round(ratio, 2)
        yield row


def _milliseconds_per_step(seconds, name, lengths):
    """{length: one number a round}, of the steps since the length before."""
    return {
        long: [
            1000 * (more - less) / (long - short)
            for less, more in zip(
                seconds[name, short], seconds[name, long], strict=True
            )
        ]
        for short, long in itertools.pairwise([0, *lengths])
    }


def _encoding(model, sources, xla):
    if isinstance(model, LanguageModel):
        return lambda: None
    encode = tf.function(
        lambda sources: tf.nest.flatten(model.source_cache(sources)),
        jit_compile=xla,
    )
    return lambda: [array.numpy() for array in encode(sources)]


def _search(model, make_step, empty_cache, beam_size, max_length, xla):
    """A function of sources and a length that translates them to that many tokens."""

    @tf.function(jit_compile=xla)
    def search(sources, lengths):
        return beam_search(
            make_step(model, sources),
            empty_cache(sources.shape[0], beam_size),
            lengths,
            max_length,
            beam_size,
            start=START,
            # Outside the vocabulary: no hypothesis ends, every search takes all steps.
            end=VOCABULARY_SIZE,
        ).scores

    def call(sources, length):
        return search(sources, tf.fill([sources.shape[0]], length)).numpy()

    return call


def continuing_step(model, texts):
    """The step of a language model; of the texts it needs nothing."""
    constants = model.constants()

    def step(tokens, cache, position):
        return model.step(tokens, constants, cache, position)

    return step


def recomputing_step(model, sources):
    """Runs the model over each hypothesis from its start; an encoder only once.

    The cache is a `SlotMap` that holds each hypothesis's tokens: a beam that goes on
    from another takes them over. Shapes are static, as those of the cached step:
    positions to come are padding.
    """
    decode = _decoder(model, sources)

    def step(tokens, cache, position):
        batch_size, beams = tokens.shape
        now = ops.arange(cache.owners.shape[2]) == position
        cache = SlotMap(ops.where(now, tokens[:, :, None], cache.owners))
        prefixes = ops.reshape(cache.owners, (batch_size * beams, -1))
        new = ops.reshape(decode(prefixes)[:, position], (batch_size, beams, -1))
        return model.embedding.logits_at_position(new), cache

    return step


def _decoder(model, sources):
    """A function of whole texts that gives vectors, of which logits are made."""
    if isinstance(model, LanguageModel):
        return functools.partial(model.encode, training=False)
    encoded = model.encode(sources, training=False)
    source_mask = sources != 0

    def decode(prefixes):
        beams = prefixes.shape[0] // sources.shape[0]
        return model.decoder(
            model.embedding(prefixes),
            ops.repeat(encoded, beams, axis=0),
            prefixes != 0,
            ops.repeat(source_mask, beams, axis=0),
            training=False,
        )

    return decode
