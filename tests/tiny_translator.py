"""A translator of few words that has learned nothing."""

import io

import sentencepiece
from ml_collections import ConfigDict

from data.tokenizers.subwords import SubwordTokenizer
from models import build_encoder_decoder
from tests.models.builders import SMALL, randomize

SETTINGS = ConfigDict(
    {"beam_size": 3, "length_penalty": 0.6, "extra_length": 4, "batch_size": 2}
)


def make_tokenizer():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["two dogs run in the snow today", "a dog"]),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    return SubwordTokenizer(model.getvalue())


def make_model(tokenizer):
    """With rotations, and random weights."""
    config = {**SMALL, "num_blocks": 1, "feed_forward": "rotation"}
    return randomize(build_encoder_decoder(config, tokenizer.vocabulary_size))
