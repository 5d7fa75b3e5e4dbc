"""Persons' own settings of agents' programs, as far as additions to a launch depend on them. The person's settings have
precedence.

`reading` reads them and returns the consequences, by the profile's description of the program (`[settings]`).
"""

from synapsed.kernel import WITH_AGENTS, Face

FACE = Face(name="person_settings", opens="synapsed.parts.person_settings.reading", wanted=WITH_AGENTS)
"""Description of this part for the daemon, which reads it without loading the part's code."""
