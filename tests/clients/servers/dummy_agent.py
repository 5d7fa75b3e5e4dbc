"""The program that synapse-a2a's profile `dummy` runs in its working directory: it repeats what it is told."""

import signal
import sys

signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
while True:
    print("> ", end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        break
    print(f"You said: {line.rstrip()}", flush=True)
