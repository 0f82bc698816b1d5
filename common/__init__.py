"""What every room may use: errors for people, fields of configs, progress bars."""
