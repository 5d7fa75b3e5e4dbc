"""Rules that act: which events each is for, and what follows. Pure.

- `pattern`: globs, linear in what they are held against;
- `rule`: `[[rule]]` as it is written, whether it is for an event, and the words that it fills in;
- `signing`: webhooks by the Standard Webhooks specification.
"""
