"""Rules that act: which events each is for, and what follows. Pure.

- `rule`: `[[rule]]` as it is written, whether it is for an event, and the words that it fills in;
"""
