"""Beam search, and translating text with a trained model."""
