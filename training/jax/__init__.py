"""Training by JAX, on one device."""
