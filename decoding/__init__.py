"""Beam search, translating, BLEU, and continuing a text."""
