"""`synapsectl completion SHELL`: a script that makes the shell ask for the next words (`synapsectl.completing`)."""

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
    local line="${{COMP_LINE:0:COMP_POINT}}" tool="${{COMP_WORDS[0]}}" also="" found word
    tool="${{tool//[\\"\\'\\\\]/}}"
    tool="${{tool/#\\~\\//$HOME/}}" tool="${{tool/#\\$HOME\\//$HOME/}}"
    COMPREPLY=()
    while IFS= read -r found; do
        word="${{found%%$'\t'*}}"
        case "$word" in
            '') also="${{found#*$'\t'}}" ;;
            *[^[:alnum:]_.,:=@%+/-]*) printf -v word %q "$word"; COMPREPLY+=("$word") ;;
            *) COMPREPLY+=("$word") ;;
        esac
    done < <("$tool" completion --words --line="$line" -- "${{COMP_WORDS[COMP_CWORD]}}" 2> /dev/null)
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
    local line word about tool
    local -a found
    tool=${{~${{(Q)words[1]}}}}
    tool=${{tool/#\\$HOME\\//$HOME/}}
    while IFS= read -r line; do
        word="${{line%%$'\t'*}}" about="${{line#*$'\t'}}"
        case "$word" in
            '') compset -P '--*='; [[ $about == folder ]] && _files -/ || _files ;;
            *) found+=("${{word//:/\\:}}${{about:+:$about}}") ;;
        esac
    done < <($tool completion --words -- "${{(@Q)words[2,CURRENT-1]}}" "${{(Q)PREFIX}}" 2> /dev/null)
    (( $#found )) && _describe -V {PROGRAM} found
}}
compdef _{PROGRAM} {PROGRAM}
"""

FISH = f"""\
function __{PROGRAM}
    set -l words (commandline -opc)
    set -l typed (commandline -ct | string replace -r '^["\\']' '')
    set -l tool (string replace -r '^(~|\\$HOME)(?=/)' $HOME -- $words[1])
    command -q -- $tool; or return
    set -l option (string match -r '^--[^=]*=' -- $typed)
    set -l path (string replace -r '^--[^=]*=' '' -- $typed)
    for found in ($tool completion --words -- $words[2..] "$typed" 2> /dev/null)
        switch $found
            case (printf '\tfile')
                printf "$option%s\\n" (__fish_complete_path "$path")
            case (printf '\tfolder')
                printf "$option%s\\n" (__fish_complete_directories "$path")
            case '*'
                echo $found
        end
    end
end
complete -c {PROGRAM} -f -k -a '(__{PROGRAM})'
"""
BREAKS = ("=", ":", "@")
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} {{{','.join(SCRIPTS)}}}"
    parser.add_argument("shell", nargs="?", choices=list(SCRIPTS), help="for which shell")
    parser.add_argument("--words", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--line", help=argparse.SUPPRESS)


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if args.words and args.line is not None:
        return _tell_bash(args.line, (args.rest or [""])[0], ctx)
    if args.words:
        return _tell(args.rest or [], ctx)
    if args.shell is None:
        raise UsageError(f"name the shell: {', '.join(SCRIPTS)}")
    ctx.out.piece(SCRIPTS[args.shell])
    return DONE


def _tell_bash(line: str, part: str, ctx: CommandContext) -> int:
    """Does the same as `_tell` for a line as it is typed. Readline has broken the last word at `=`, `:` and `@`: the
    text before `part` is no part of the answer."""
    from synapsectl.completing import split

    words = split(line)
    typed = "" if part in BREAKS else split(part)[-1]
    return _tell(words[1:], ctx, cut=len(words[-1]) - len(typed))


def _tell(words: list[str], ctx: CommandContext, cut: int = 0) -> int:
    """Prints a line for each possible word, without its first `cut` characters, and its description, after a tab;
    without words, the kind that the shell is to complete itself."""
    from synapsectl.completing import candidates

    found = candidates(words, ctx)
    for word, about in found.words:
        ctx.out.line(f"{harmless(word[cut:])}\t{' '.join(harmless(about).split())}")
    if found.also is not None:
        ctx.out.line(f"\t{found.also}")
    return DONE
