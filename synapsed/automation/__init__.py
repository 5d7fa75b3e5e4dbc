"""What is done by itself because a person has written it down: performs what the pure rooms decide.

- `scheduler`: messages at their times (`synapsed.schedules`), `zones`: the machine's time zone;
- `ruler`: what follows from events (`synapsed.rules`), `desktop`: tells the person;
- `webhooks`: tells receivers elsewhere.
"""
