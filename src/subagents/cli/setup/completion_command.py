"""``completion``: prints the script that lets a shell complete ``subagents``."""

import sys
from typing import Annotated, Final, Literal

from subagents.cli import output
from subagents.cli.flags import Parameter
from subagents.errors import EXIT_OK

BASH: Final = r"""# bash completion for subagents
_subagents() {
    local IFS=$'\n' words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    COMPREPLY=($("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null | cut -f1))
}
complete -o default -F _subagents subagents
"""
ZSH: Final = r"""#compdef subagents
# zsh completion for subagents
_subagents() {
    local line
    local -a found
    for line in ${(f)"$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
        found+=("${line%%$'\t'*}:${line#*$'\t'}")
    done
    if (( $#found )); then _describe subagents found; else _files; fi
}
if [ "$funcstack[1]" = "_subagents" ]; then _subagents; else compdef _subagents subagents; fi
"""
FISH: Final = r"""# fish completion for subagents
function __subagents_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] __complete $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c subagents -f -a '(__subagents_complete)'
"""
SCRIPTS: Final = {"bash": BASH, "zsh": ZSH, "fish": FISH}
LOADED_BY: Final = {
    "bash": 'eval "$(subagents completion bash)"    in ~/.bashrc',
    "zsh": 'eval "$(subagents completion zsh)"     in ~/.zshrc, after compinit',
    "fish": "subagents completion fish | source     in ~/.config/fish/config.fish",
}


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="bash, zsh or fish.")], /
) -> int:
    """Print a script that completes commands, flags, runs, agents and tags. Changes no file.

    Runs, agents and tags come from the daemon if it is running; none is started for them.

    For example:

        eval "$(subagents completion bash)"    # add this to ~/.bashrc

        eval "$(subagents completion zsh)"     # to ~/.zshrc, after compinit

        subagents completion fish | source     # to ~/.config/fish/config.fish
    """
    sys.stdout.write(SCRIPTS[shell])
    if sys.stdout.isatty():
        output.note(f"\nTo load it in every shell: {LOADED_BY[shell]}")
    return EXIT_OK
