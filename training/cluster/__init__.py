"""Workers, locks and interruptions."""
