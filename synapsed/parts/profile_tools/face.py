"""Shows, checks, drafts, tries and proves profiles of programs, passes them on in signed bundles, and reports wrong
states.

`profile_verb` shows and checks them; `drafting` *(pure)* writes a first one from a screen. `recordings` lets a profile
read recordings, which `recorded` *(pure)* plays in a process without rights; `changes` *(pure)* knows which keys decide
what is run or typed, and `proving` uses both for profiles that are to replace built-in ones.

`bundles` has releases of profiles apart from synapsed's own, signed with a key that the person trusts: `keys` and
`public_keys` sign and verify; `archive` *(pure)* packs and unpacks; `bundle` *(pure)* is the signed format. `shelf`
keeps the bundles that were taken, and knows which one counts; `stand_ins` gives its profiles to the daemon. `fetching`
gets one from its place; `making` and `taking` perform the verbs (`bundle_verb` for the tool; `proving` there checks the
profiles). `suspicion` *(pure)* decides that an agent does not come up with a bundle; `watching` then has it tried
without (`trial`), goes back if it comes up, and notifies a person.

`reports` makes a file of an agent whose state is wrong (`report_verb`; `report` *(pure)* is its format): `drawing`
*(pure)* has the screens in `frames` *(pure)* that draw them again, without what `private_words` *(pure)* finds in the
texts of their `panes` *(pure)*, in a process without rights. `private_values` finds the private words of this machine.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from synapsed.config.config import ConfigKey, Section
from synapsed.kernel import Face, WantedBy
from synapsed.parts.profile_tools.bundles.public_keys import PublicKey
from synapsed.parts.profile_tools.bundles.shelf import FOLDER


def _checked_key(value: str) -> str:
    PublicKey.parse(value)
    return value


class ProfilesConfig(Section):
    """`[profiles]`."""

    keys: list[Annotated[str, AfterValidator(_checked_key)]] = Field(default=[], max_length=50)
    """Public keys whose bundles of profiles may be taken, each followed by a name."""


FACE = Face(
    name="profile_tools",
    opens="synapsed.parts.profile_tools.bundles.watching",
    wanted=WantedBy(files=lambda paths: [paths.state / FOLDER]),
    sections={"profiles": ConfigKey(ProfilesConfig, ProfilesConfig())},
    profiles_in="synapsed.parts.profile_tools.bundles.stand_ins",
    findings_in="synapsed.parts.profile_tools.bundles.findings",
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
