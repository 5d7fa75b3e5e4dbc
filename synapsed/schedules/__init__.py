"""When a schedule is due. Pure: an instant and a time zone are arguments, and no clock is read.

- `cron`: five fields, or `@daily` and the like, as Debian's cron has them;
- `calendar`: systemd's calendar events (systemd.time(7));
- `spec`: which of the two a text is, and `next_after`;
- `due`: what is to be done at an instant, after the clock was set, the machine slept or no daemon ran.
"""
