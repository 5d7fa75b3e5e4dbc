"""The places where a person is told what waits: each says once, and takes it back where it can.

`base` is what the notifier knows of them; `making` makes them of the configuration.
"""
