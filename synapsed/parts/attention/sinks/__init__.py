"""The places where a person is notified: each tells an item once, and takes it back if it can.

`base` is their interface for the notifier; `making` makes them of the configuration.
"""
