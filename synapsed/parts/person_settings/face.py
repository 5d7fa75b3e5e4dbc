"""Persons' own settings of agents' programs, as far as what is added to a launch depends on them: theirs win.

`reading` looks at them and says what follows, by what the profile says of the program (`[settings]`).
"""

from synapsed.kernel import Face

FACE = Face(name="person_settings", opens="synapsed.parts.person_settings.reading")
