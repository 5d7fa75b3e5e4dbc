"""Configurations and profiles that are wrong in what they say, not only in the kind of a value."""

import re
from collections.abc import Mapping, Sequence

from synapsectl.verbs import is_installed
from synapsed.model.released_names import CONFIG_FILES, CONFIG_KEYS

type Wrong = Mapping[str, str]
"""Files by their names below the folder of the configuration."""

SAMPLES = {
    "channels.NAME.adapter": '"hooks"',
    "name": "",  # a profile is named by its file
    "prompts.dialogs[].own_words.row": "'(?P<key>x)'",
    "rule[].do": '{ notify = "n" }',
    "rule[].on": '{ event = "taskStatus" }',
    "rule[].on.event": '"taskStatus"',
    "schedule[].at": '"08:00"',
}
"""What a required key may have, where it does not take just any value of its kind; empty: it is left out."""

_CONFIG = (
    "[api\n",
    "[agnts.x]\n",
    "[api]\nagent_port = true\n",
    '[api]\nlisten = "0.0.0.0:80"\n',
    '[api]\nlisten = "example.org:80"\n',
    '[api]\nlisten = "127.0.0.1:70000"\n',
    '[api]\ntls_listen = "example.org:443"\n',
    '[api]\ntls_listen = "0.0.0.0"\n',
    '[api]\ntls_listen = "0.0.0.0:8443"\ntls_cert = "/x"\n',
    '[api]\ntls_cert = "/x"\ntls_key = "/y"\n',
    '[api]\ntls_listen = "0.0.0.0:8443"\ntls_cert = "x"\ntls_key = "/y"\n',
    '[api]\ntls_listen = "0.0.0.0:8090"\n',
    "[agents.x]\nautostrt = true\n",
    '[agents.x]\nlimits = { memory = "lots" }\n',
    '[agents.x]\nlimits = { cpu = "2" }\n',
    "[agents.x]\nlimits = { tasks = 0 }\n",
    "[agents.x]\nport = 0\n",
    "[agents.x]\nrestart = { initial = 10, maximum = 1 }\n",
    '[agents.x]\nrestart = { policy = "sometimes" }\n',
    '[agents.x]\napproval = { allow = ["Bash("] }\n',
    '[agents.x]\nquestion_timeout = "10"\n',
    "[agents.x]\npark = { idle_timeout = 0 }\n",
    '[agents.x]\nargs = "--fast"\n',
    '[agents."a b"]\n',
    "[agents.a]\nport = 9\n[agents.b]\nport = 9\n",
    '[agents.a]\ndepends_on = ["bb"]\n[agents.b]\n',
    '[agents.a]\ndepends_on = ["b"]\n[agents.b]\ndepends_on = ["a"]\n',
    "[teams.a]\nmembers = []\n",
    '[teams.a]\nmembers = ["b", "b"]\n',
    '[teams.a]\nmembers = ["../b"]\n',
    '[teams.a]\nmembers = ["b"]\n[teams.b]\nmembers = ["c"]\n',
    '[agents.a]\n[teams.a]\nmembers = ["b"]\n',
    '[a2a.push]\nallow = ["10.0.0.1/8"]\n',
    "[a2a.push]\ninitial = 10\nmaximum = 5\n",
    '[hosts]\nname = "-"\n',
    "[hosts]\nssh = []\n",
    '[traces]\nendpoint = "ftp://x"\n',
    '[traces]\nheaders = { "a b" = "c" }\n',
    "[traces]\nsample = 2\n",
    '[instructions]\nlanguage = "de"\n',
    '[attach]\nkeys = { nxt = "n" }\n',
    "[attach]\nscrollback = 9999\n",
    '[[schedule]]\nat = "whenever"\nagent = "a"\nmessage = "m"\n',
    '[[schedule]]\nat = "0 8 * *"\nagent = "a"\nmessage = "m"\n',
    '[[schedule]]\nat = "*-02-30"\nagent = "a"\nmessage = "m"\n',
    '[[schedule]]\nat = "08:00"\nzone = "Nowhere/City"\nagent = "a"\nmessage = "m"\n',
    '[[schedule]]\nat = "08:00"\nagent = "a"\nmessage = " "\n',
    '[[schedule]]\nat = "08:00"\nmessage = "m"\n',
    '[[schedule]]\nat = "08:00"\nagent = "a"\nmessage = "m"\n[[schedule]]\nat = "08:00"\nagent = "a"\nmessage = "m"\n',
    '[[rule]]\nname = "r"\non = { event = "taskStatuz" }\ndo = { notify = "n" }\n',
    '[[rule]]\nname = "r"\non = { event = "taskStatus" }\ndo = {}\n',
    '[[rule]]\nname = "r"\non = { event = "taskStatus" }\ndo = { send = "a" }\n',
    '[[rule]]\nname = "r"\non = { event = "toolExecution" }\ndo = { approve = true }\n',
    '[[rule]]\nname = "r"\non = { event = "taskStatus" }\ndo = { webhook = "w" }\n',
    '[[rule]]\nname = "-"\non = { event = "taskStatus" }\ndo = { notify = "n" }\n',
    2 * '[[rule]]\nname = "r"\non = { event = "taskStatus" }\ndo = { notify = "n" }\n',
    '[webhooks.w]\nurl = "https://example.com"\n',
    '[webhooks.w]\nurl = "https://example.com"\nsecret_env = "1"\n',
    '[notify]\nquiet = ["22:00"]\n',
    '[notify]\nkinds = ["all"]\n',
    '[notify]\ncontact = "ann"\n',
    '[notify.sinks."a b"]\ntype = "desktop"\n',
    '[notify.sinks.x]\ntype = "pigeon"\n',
    '[notify.sinks.x]\nurl = "https://example.com"\n',
    '[notify.sinks.x]\ntype = "desktop"\nzzz = 1\n',
    '[notify.sinks.x]\ntype = "webhook"\nurl = "https://example.com"\n',
    '[notify.sinks.x]\ntype = "webhook"\nurl = "https://example.com"\nsecret_env = "A-B"\n',
    '[notify.sinks.x]\ntype = "ntfy"\n',
    '[notify.sinks.x]\ntype = "ntfy"\ntopic = "a b"\n',
    '[notify.sinks.x]\ntype = "ntfy"\ntopic = "t"\ntoken_file = "f"\ntoken_env = "E"\n',
    '[notify.sinks.x]\ntype = "ntfy"\ntopic = "t"\nurl = "ntfy.sh"\n',
    '[notify.sinks.x]\ntype = "ntfy"\ntopic = "t"\nanswers = "https://example.com"\n',
    '[notify.sinks.x]\ntype = "mail"\nhost = "h"\nsender = "ann"\nto = ["ann@example.com"]\n',
    '[notify.sinks.x]\ntype = "mail"\nhost = "h"\nsender = "a@b.c"\nto = ["a@b.c"]\nuser = "u"\n',
    (
        '[notify.sinks.x]\ntype = "mail"\nhost = "h"\nsender = "a@b.c"\nto = ["a@b.c"]\nuser = "u"\n'
        'password_env = "P"\nsecurity = "none"\n'
    ),
    '[notify.sinks.x]\ntype = "web"\ndevices = []\n',
    '[fleet]\nnam = "box"\n',
    '[fleet]\nname = "Box"\n',
    '[fleet]\nname = "box"\nurls = ["box"]\n',
    '[fleet]\naccept = ["team:"]\n',
    '[fleet.work]\nclases = ["x"]\n',
    '[fleet.work]\nclasses = ["A B"]\n',
    '[fleet.broker]\nmax_store = "20GB"\n',
    '[fleet.broker]\nlisten = "4222"\n',
    '[fleet]\npersons = ["laptop"]\n',
)


def _is_there(text: str) -> bool:
    """Returns False for a section, or a key, of a part that is not there: it is refused for that, whatever it says."""
    found = re.match(r"\[+(\w+)(?:\.\w+)?(?:\]\n(\w+))?", text)
    keys = (found[1], f"{found[1]}.{found[2]}", found[2] if found[1] == "agents" else None) if found is not None else ()
    part = next((CONFIG_KEYS[key] for key in keys if key in CONFIG_KEYS), None)
    return part is None or is_installed(part)


_BESIDE = {"fleet.toml": 'name = "box"\nurls = ["tls://box:4222"]\nworks = 1\n'}
"""Files of parts beside config.toml."""

OF_CONFIGURATION: Sequence[Wrong] = (
    *({"config.toml": text} for text in _CONFIG if _is_there(text)),
    {"config.toml": "[agents.a]\n", "agents.d/a.toml": ""},
    {"agents.d/a.toml": "autostrt = true\n"},
    {"agents.d/a b.toml": ""},
    *({name: text} for name, text in _BESIDE.items() if is_installed(CONFIG_FILES[name])),
)

_PROFILE = (
    "command = [\n",
    'name = "x"\n',
    'command = ["x", "y"]\n',
    'command = "x"\ncolour = "red"\n',
    'command = "x"\nports = [2, 1]\n',
    'command = "x"\nextends = "nobody"\n',
    'command = "x"\nextends = "x"\n',
    'command = "x"\n[[error]]\npattern = "("\n',
    'command = "x"\nrights = ["everything"]\n',
    'command = "x"\n[[versions]]\n',
    'command = "x"\n[[versions]]\nbelow = "new"\n',
    'command = "x"\n[channel]\nadapter = "telepathy"\n',
)

OF_PROFILES: Sequence[Wrong] = tuple({"profiles/x.toml": text} for text in _PROFILE)
