"""`synapsectl completion SHELL`: a script that has the shell ask what may stand next (`synapsectl.completing`)."""

import argparse

from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.output import PROGRAM, harmless

TAKES_REST = TAKES_BYTES = True
EXAMPLES = (
    ('eval "$(synapsectl completion bash)"', "in ~/.bashrc"),
    ('eval "$(synapsectl completion zsh)"', "in ~/.zshrc, after compinit"),
    ("synapsectl completion fish > ~/.config/fish/completions/synapsectl.fish", "for fish"),
)

BASH = f"""\
_{PROGRAM}() {{
    local line="${{COMP_LINE:0:COMP_POINT}}" part="${{COMP_WORDS[COMP_CWORD]}}" word also="" cut
    local -a words
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    [[ $part == [=:@] ]] && part=""
    # Readline has broken the word at = : and @: what stands before is no part of the answer.
    cut="${{words[-1]%"$part"}}"
    COMPREPLY=()
    while IFS= read -r line; do
        word="${{line%%$'\t'*}}"
        case "$word" in
            '') also="${{line#*$'\t'}}" ;;
            *) COMPREPLY+=("${{word#"$cut"}}") ;;
        esac
    done < <("${{words[0]}}" completion --words -- "${{words[@]:1}}" 2> /dev/null)
    case "$also" in
        file) compopt -o default 2> /dev/null ;;
        folder) compopt -o dirnames 2> /dev/null ;;
    esac
}}
complete -F _{PROGRAM} {PROGRAM}
"""

ZSH = f"""\
#compdef {PROGRAM}
_{PROGRAM}() {{
    local line word about
    local -a found
    while IFS= read -r line; do
        word="${{line%%$'\t'*}}" about="${{line#*$'\t'}}"
        case "$word" in
            '') [[ $about == folder ]] && _files -/ || _files ;;
            *) found+=("${{word//:/\\:}}${{about:+:$about}}") ;;
        esac
    done < <("${{words[1]}}" completion --words -- "${{(@Q)words[2,CURRENT]}}" 2> /dev/null)
    (( $#found )) && _describe -V {PROGRAM} found
}}
compdef _{PROGRAM} {PROGRAM}
"""

FISH = f"""\
function __{PROGRAM}
    set -l words (commandline -opc) (commandline -ct)
    for found in ($words[1] completion --words -- $words[2..] 2> /dev/null)
        switch $found
            case (printf '\tfile')
                __fish_complete_path (commandline -ct)
            case (printf '\tfolder')
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $found
        end
    end
end
complete -c {PROGRAM} -f -k -a '(__{PROGRAM})'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} {{{','.join(SCRIPTS)}}}"
    parser.add_argument("shell", nargs="?", choices=list(SCRIPTS), help="for which shell")
    parser.add_argument("--words", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if args.words:
        return _tell(args.rest or [], ctx)
    if args.shell is None:
        raise UsageError(f"name the shell: {', '.join(SCRIPTS)}")
    ctx.out.piece(SCRIPTS[args.shell])
    return DONE


def _tell(words: list[str], ctx: CommandContext) -> int:
    """A line for each word that may stand there, and what it is, behind a tab; without a word, what the shell is to
    complete itself."""
    from synapsectl.completing import candidates

    found = candidates(words, ctx)
    for word, about in found.words:
        ctx.out.line(f"{harmless(word)}\t{' '.join(harmless(about).split())}")
    if found.also is not None:
        ctx.out.line(f"\t{found.also}")
    return DONE
