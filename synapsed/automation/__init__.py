"""What is done by itself because a person has written it down: performs what the pure rooms decide.

- `notifier`: tells the person what waits, at each of the `sinks`; `inbox`: what waits (`synapsed.attention`).
"""
