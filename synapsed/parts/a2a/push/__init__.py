"""Push notifications (specification 3.1.7-10, 4.3, 13.2): who is told of a task, durably, at least once, in order.

- `operations`: what a client may ask for, and what it is shown of it.
- `lanes`: how many at a time.
- `telling`: the loop for each config: events, one in flight, cursor. `sender` starts and ends them.

Nothing here imports the SDK when it is loaded: the sender does when there is something to tell.
"""
