"""What trained models do."""
