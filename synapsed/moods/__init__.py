"""How the person who works with an agent seems to feel, by what is written and done: pure, and without a clock.

`words` and `text` read a message, `likeness` finds the same question again, `signals` is the table of what counts for
how much, `scorer` takes an agent's events one after the other and says which levels changed.
"""
