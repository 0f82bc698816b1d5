"""Workers and locks."""
