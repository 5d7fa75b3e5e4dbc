"""`synapsectl completion SHELL`: verbs, then agents and profiles, asked of the daemon that runs."""

import argparse

from synapsectl.context import CommandContext
from synapsectl.errors import DONE
from synapsectl.output import PROGRAM
from synapsectl.verbs import VERBS

EXAMPLES = (
    ('eval "$(synapsectl completion bash)"', "in ~/.bashrc"),
    ("synapsectl completion zsh > ~/.zfunc/_synapsectl", "in a folder of zsh's fpath"),
    ("synapsectl completion fish > ~/.config/fish/completions/synapsectl.fish", "for fish"),
)

AGENT_VERBS = "stop|restart|park|kill|status|attach|send|tasks|input|approve|deny|keys|cancel|logs|events|screen"
PROFILE_VERBS = "start|run|adopt"
WORDS = {
    "external": "add list send remove",
    "host": "add list remove",
    "profiles": "list show check",
    "completion": "bash zsh fish",
}
"""What stands behind a verb in any case."""
AGENTS = f"{PROGRAM} list 2>/dev/null | cut -f1"
PROFILES = f"{PROGRAM} profiles list 2>/dev/null | cut -f1"

BASH_WORDS = "\n".join(f'            {verb}) words="{words}" ;;' for verb, words in WORDS.items())
BASH = f"""\
_{PROGRAM}() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{" ".join(VERBS)}"
    else
        case "${{COMP_WORDS[1]}}" in
            {AGENT_VERBS}) words="$({AGENTS})" ;;
            {PROFILE_VERBS}) words="$({PROFILES})" ;;
{BASH_WORDS}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _{PROGRAM} {PROGRAM}
"""

ZSH_VERBS = "\n".join(f'        "{name}:{verb.help}"' for name, verb in VERBS.items())
ZSH_WORDS = "\n".join(f"        {verb}) compadd {words} ;;" for verb, words in WORDS.items())
ZSH = f"""\
#compdef {PROGRAM}
_{PROGRAM}() {{
    local -a verbs agents
    verbs=(
{ZSH_VERBS}
    )
    if (( CURRENT == 2 )); then
        _describe verb verbs
        return
    fi
    case "$words[2]" in
        {AGENT_VERBS}) agents=(${{(f)"$({AGENTS})"}}) && compadd -a agents ;;
        {PROFILE_VERBS}) agents=(${{(f)"$({PROFILES})"}}) && compadd -a agents ;;
{ZSH_WORDS}
    esac
}}
compdef _{PROGRAM} {PROGRAM}
"""

FISH = "\n".join(
    [
        f"complete -c {PROGRAM} -f",
        *(
            f"complete -c {PROGRAM} -n __fish_use_subcommand -a {name} -d '{verb.help.replace("'", chr(92) + "'")}'"
            for name, verb in VERBS.items()
        ),
        f"complete -c {PROGRAM} -n '__fish_seen_subcommand_from {AGENT_VERBS.replace('|', ' ')}' -a '({AGENTS})'",
        f"complete -c {PROGRAM} -n '__fish_seen_subcommand_from {PROFILE_VERBS.replace('|', ' ')}' -a '({PROFILES})'",
        *(
            f"complete -c {PROGRAM} -n '__fish_seen_subcommand_from {verb}' -a '{words}'"
            for verb, words in WORDS.items()
        ),
        "",
    ]
)
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=list(SCRIPTS), help=f'bash: eval "$({PROGRAM} completion bash)"')


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    ctx.out.piece(SCRIPTS[args.shell])
    return DONE
