"""Raw text in, answers out: what a trained model is to those who use it."""
