"""Write the flags of the frequent commands as plain values: src/subagents/cli/flag_table.py.

    python -m scripts.flag_table [--check]

``--check`` changes nothing and exits with 1 when it is out of date. They are read from what the
parser knows, so there is one declaration of each; flags of which the parser must say more than
their own value decides are left out, and with them a command line goes to the parser.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from cyclopts.argument import Argument
from msgspec import inspect

from subagents.cli.parser import application
from subagents.cli.runs.contract_flags import flag_of
from subagents.cli.runs.spawn_flags import FLAGS, Flag
from subagents.domain.run.parameter import Parameter, parameters
from subagents.domain.run.spec import PATH_BYTES_MAX, Artifact

MODULE: Final = Path("src/subagents/cli/flag_table.py")
COMMANDS: Final = (
    *("run", "spawn", "list", "status", "wait", "inbox", "serve"),
    *("report", "progress", "notify", "ask"),
)
HIDDEN: Final = {"background_child"}
"""Flags that no help shows, with which programs of ours start others."""
SPAWNING: Final = ("run", "spawn")
WITH_RULES: Final = {"mode", "thread", "onDependencyFailure", "fallbackAgentId"}
"""Spawn parameters of which one decides whether another one is allowed."""
OF_CONTRACTS: Final = ("verification.artifacts", "verification.judge.")
"""Files of a contract have a table of their own, and judges rules."""
HEADER: Final = '''\
"""The frequent commands' words and flags as plain values; written by ``make docs``.

They are those of the declarations that the parser reads, which take longer to import than most
commands take. What is missing here is left to the parser.
"""

from typing import Any, Final

'''
WORDS_DOC: Final = (
    '''"""Of each command: what a word is called, its kind, and whether it must be there."""'''
)
FLAGS_DOC: Final = (
    '''"""Of each command and flag: what it sets, its kind, and the choices or the value."""'''
)
DEFAULTS_DOC: Final = '''"""Of each command: what is not given is this."""'''
SPAWN_DOC: Final = (
    '''"""Of each flag of a spawn: parameter, unit, form, bounds, most characters or entries."""'''
)
CHECKS_DOC: Final = '''"""Of the flags about one file of a contract: field and kind."""'''
KINDS: Final = {str: "text", int: "int", float: "float"}


def module() -> str:
    """The whole module, formatted."""
    collected = {
        name: list(application()[name].assemble_argument_collection()) for name in COMMANDS
    }
    tables = {
        ("WORDS", "tuple[tuple[str, str, bool], ...]", WORDS_DOC): {
            name: tuple(_words(each)) for name, each in collected.items()
        },
        ("FLAGS", "dict[str, tuple[str, str, Any]]", FLAGS_DOC): {
            name: dict(_flags(name, each)) for name, each in collected.items()
        },
        ("DEFAULTS", "dict[str, Any]", DEFAULTS_DOC): {
            name: dict(_defaults(each)) for name, each in collected.items() if name not in SPAWNING
        },
        ("CHECKS", "tuple[str, str]", CHECKS_DOC): {
            flag_of(each.name): (each.name, _kind_of(each)) for each in parameters(Artifact)
        },
        ("SPAWN", "tuple[Any, ...]", SPAWN_DOC): dict(map(_spawn, filter(_is_plain, FLAGS))),
    }
    text = HEADER
    for (name, kind, doc), table in tables.items():
        text += f"{name}: Final[dict[str, {kind}]] = {table!r}\n{doc}\n"
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def _is_taken(argument: Argument) -> bool:
    return bool(argument.show) or argument.field_info.name in HIDDEN


def _words(arguments: Sequence[Argument]) -> Iterator[tuple[str, str, bool]]:
    for each in arguments:
        if each.index is not None and each.parse:
            is_required = each.field_info.default is each.field_info.empty
            many = each.field_info.kind is each.field_info.VAR_POSITIONAL
            yield str(each.field_info.name), _kind(each.hint)[0], is_required and not many


def _flags(name: str, arguments: Sequence[Argument]) -> Iterator[tuple[str, tuple[str, str, Any]]]:
    plain = {flag.attribute: flag for flag in FLAGS if _is_plain(flag)}
    for each in arguments:
        attribute = str(each.field_info.name)
        if each.index is not None or not each.parse or not _is_taken(each):
            continue
        if name in SPAWNING and attribute not in {*plain, "detach", "json"}:
            continue
        kind, choices = _kind(each.hint)
        flag = plain.get(attribute) if name in SPAWNING else None
        opposite = () if flag is None or not flag.opposite else (flag.opposite,)
        for spelled in (*(each.parameter.name or ()), *opposite):
            if kind != "set":
                yield spelled, (attribute, kind, choices)
            elif flag is not None and flag.parameter.choices:
                yield spelled, (attribute, kind, flag.parameter.choices[spelled in opposite])
            else:
                yield spelled, (attribute, kind, spelled not in opposite)


def _kind(hint: Any) -> tuple[str, tuple[str, ...]]:
    kinds = [each for each in get_args(hint) if each is not type(None)] or [hint]
    if get_origin(hint) is tuple:
        return "texts", ()
    if get_origin(hint) is Literal:
        return "choice", get_args(hint)
    if get_origin(kinds[0]) is Literal:
        return "choice", get_args(kinds[0])
    if kinds[0] is bool:
        return "set", ()
    return KINDS[kinds[0]], ()


def _defaults(arguments: Sequence[Argument]) -> Iterator[tuple[str, Any]]:
    for each in arguments:
        if _is_taken(each) and each.field_info.default is not each.field_info.empty:
            yield str(each.field_info.name), each.field_info.default
        elif each.field_info.kind is each.field_info.VAR_POSITIONAL:
            yield str(each.field_info.name), ()


def _kind_of(check: Parameter) -> str:
    if check.is_list:
        return "texts"
    kinds = {inspect.BoolType: "set", inspect.IntType: "int"}
    return kinds.get(type(check.type), "text")


def _is_plain(flag: Flag) -> bool:
    """Whether its value alone says if it is right."""
    name = flag.parameter.name
    return name not in WITH_RULES and not name.startswith(OF_CONTRACTS)


def _spawn(flag: Flag) -> tuple[str, tuple[Any, ...]]:
    each = flag.parameter
    most = each.items_max if each.is_list else each.chars_max
    if each.form == "path":
        most = PATH_BYTES_MAX
    return flag.attribute, (each.name, each.unit, each.form, each.low, each.high, most)


def main(arguments: Sequence[str]) -> int:
    """Write it, or check it."""
    text = module()
    if "--check" in arguments:
        if MODULE.read_text(encoding="utf-8") == text:
            return 0
        print(f"{MODULE} is out of date: make docs", file=sys.stderr)
        return 1
    MODULE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
