"""What is TensorFlow's alone: updates, evaluation, strategies, checkpoints."""
