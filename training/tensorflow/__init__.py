"""What TensorFlow does: updates, evaluation, strategies, and all checkpoints."""
