"""Push notifications (specification 3.1.7-10, 4.3, 13.2): receivers get the events of a task, durably, at least
once and in order.

- `operations`: the requests of clients, and the shown form of a config.
- `lanes`: the number of notifications at a time.
- `telling`: the loop for each config: events, one in flight, cursor. `sender` starts and ends them.

Nothing here imports the SDK when it is loaded: the sender does so for its first notification.
"""
