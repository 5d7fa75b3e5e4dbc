"""The places where a person is notified: each shows the notice of an item once, and takes it back if it can.

`base` is their interface for the notifier; `making` makes them from the configuration.
"""
