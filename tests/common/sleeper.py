"""What a process does that is to be ended."""

import time


def sleep():
    print("begun", flush=True)
    time.sleep(600)
