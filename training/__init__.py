"""Training and evaluating what configs describe."""
