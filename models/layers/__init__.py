"""Layers that every model is made of."""
