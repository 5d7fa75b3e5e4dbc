"""Who needs a person: what the log of events says of it, and what follows from that. Pure.

- `board`: everything that is open now, over all agents;
- `consequences`: what needs a person although no program asks, and when that is over;
- `notification_policy`: whether a person is told of it now, by `notify` (`[notify]`), and in which words.
"""
