"""When a schedule is due. Pure: an instant and a time zone are arguments, and no clock is read.

- `calendar`: systemd's calendar events (systemd.time(7));
- `spec`: whether a text is one of those or cron's, and the times that it means;
- `due`: what is to be done at an instant, after the clock was set, the machine slept or no daemon ran.
"""
