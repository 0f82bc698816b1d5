"""What benchmark.py measures: parameters, speed, memory and input pipelines."""
