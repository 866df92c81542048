"""Starts the frequent commands without the parser, which takes longer than all of their work.

What is understood here is a subset of what the parser understands, read from the table of its own
declarations. Whatever is out of the ordinary (a flag or form that the table does not have, a value
out of bounds, ``--help``) is left to the parser, which says what is to be said.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from subagents.cli.flag_table import DEFAULTS, FLAGS, SPAWN, WORDS
from subagents.errors import UsageError

DIGITS_MAX: Final = 15
NAME_CHARS_MAX: Final = 255
"""Of an entry of a list."""
VARIABLES_CHARS_MAX: Final = 64 * 1024
"""So much of the shell's variables is always taken."""
HAS_CHECKS: Final = frozenset(
    ("artifacts", "commands", "mustChange", "mustNotChange", "requireCompletionReport")
)
"""A contract with one of these asks for something."""
NUMBER: Final = frozenset("0123456789.")

Given: TypeAlias = dict[str, Any]


class _NotPlainError(Exception):
    """The parser must read this."""


def command_of(arguments: Sequence[str]) -> Callable[[], int] | None:
    """What to call for a command line; None = the parser must read it.

    Args:
        arguments: From the command's name on, which is no alias.
    """
    name, *rest = arguments
    if name not in FLAGS:
        return None
    try:
        "".join(arguments).encode()
        if name in {"run", "spawn"}:
            return _spawning(name, rest)
        return COMMANDS[name]({**DEFAULTS[name], **_given(name, rest)})
    except (_NotPlainError, UsageError, UnicodeEncodeError):
        return None


def _given(name: str, arguments: Sequence[str]) -> Given:
    """What the words and flags set.

    Raises:
        _NotPlainError: Not all of it is in the table.
    """
    given: Given = {}
    words: list[str] = []
    flags = FLAGS[name]
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            words += rest
        elif not argument.startswith("-"):
            words.append(argument)
        else:
            flag, is_one_word, value = argument.partition("=")
            attribute, kind, allowed = flags.get(flag) or _not_plain()
            if kind == "set":
                _set(given, attribute, _not_plain() if is_one_word else allowed)
                continue
            value = value if is_one_word else next(rest, "")
            if not value or (value.startswith("-") and not is_one_word):
                _not_plain()
            if kind == "texts":
                given[attribute] = (*given.get(attribute, ()), value)
            else:
                _set(given, attribute, _read(value, kind, allowed))
    return {**given, **_words(name, words)}


def _words(name: str, words: list[str]) -> Given:
    given: Given = {}
    for attribute, kind, is_required in WORDS[name]:
        if kind == "texts":
            given[attribute], words = tuple(words), []
        elif words:
            given[attribute] = _read(words.pop(0), kind, ())
        elif is_required:
            _not_plain()
    return _not_plain() if words or "" in given.values() else given


def _set(given: Given, attribute: str, value: object) -> None:
    if attribute in given:
        _not_plain()
    given[attribute] = value


def _read(text: str, kind: str, choices: Sequence[str]) -> Any:
    is_plain = {
        "text": True,
        "choice": text in choices,
        "int": text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX,
        "float": NUMBER.issuperset(text) and text.count(".") < 2 and text[:1].isdigit(),
    }[kind]
    if not is_plain:
        _not_plain()
    return int(text) if kind == "int" else float(text) if kind == "float" else text


def _not_plain() -> Any:
    raise _NotPlainError


# -- run and spawn --------------------------------------------------------------------------------


def _spawning(name: str, arguments: Sequence[str]) -> Callable[[], int]:
    from subagents.cli.runs import contract_flags, submission  # noqa: PLC0415  each command imports its own
    from subagents.cli.runs.spawn_values import put, task_text  # noqa: PLC0415

    rest, checks = contract_flags.extract(arguments)
    given = _given(name, rest)
    words = given.pop("task")
    start = submission.spawn if given.pop("detach", name == "spawn") else submission.run
    json = given.pop("json", False)
    spec: Given = {"task": task_text(words if words != ("-",) else _not_plain())}
    for attribute, value in given.items():
        put(spec, SPAWN[attribute][0], _bounded(attribute, value))
    if checks or "verification" in spec:
        _add_contract(spec, checks)
    brought = _environment(os.environ)
    return lambda: start(spec, brought, json=json)


def _add_contract(spec: Given, checks: Sequence[Mapping[str, object]]) -> None:
    contract = spec.setdefault("verification", {})
    if checks:
        contract["artifacts"] = checks
    if contract.get("requireCompletionReport"):
        spec["completionReport"] = True
    if not contract.keys() & HAS_CHECKS or any("schema" in each for each in checks):
        _not_plain()


def _bounded(attribute: str, value: Any) -> object:
    """The parameter's value, if it is plain to see that it is within its bounds."""
    from subagents.cli.runs.spawn_values import value_of  # noqa: PLC0415

    _, unit, form, low, high, most = SPAWN[attribute]
    found = value_of(value, unit=unit, form=form, flag=attribute)
    match found:
        case bool():
            is_plain = True
        case int() | float():
            is_plain = low is None or high is None or low <= found <= high
        case str() if form == "path":
            is_plain = most is not None and len(found.encode()) <= most
        case str():
            is_plain = most is None or (len(found) <= most and _is_name(found))
        case tuple():
            is_plain = len(found) <= (most or 0) and all(
                len(each) <= NAME_CHARS_MAX and _is_name(each) for each in found
            )
        case _:
            is_plain = False
    return found if is_plain else _not_plain()


def _is_name(text: str) -> bool:
    return text.isprintable() and not text.isspace()


def _environment(environ: Mapping[str, str]) -> Mapping[str, object]:
    from subagents.domain.run.shell_variables import (  # noqa: PLC0415
        provider_variables,
        shell_variables,
    )

    found, provider = shell_variables(environ), provider_variables(environ)
    chars = sum(map(len, (*found.values(), *provider.values())))
    if chars > VARIABLES_CHARS_MAX or not "".join((*found, *provider)).isidentifier():
        # Also where there are none: that is out of the ordinary.
        return _not_plain() if found else {}
    if environ.get("SUBAGENTS_RUN_ID"):
        return {}
    from subagents import process_settings  # noqa: PLC0415

    own: Given = {"shell": found, "process": process_settings.own()}
    return {**own, "provider": provider} if provider else own


# -- the others -----------------------------------------------------------------------------------


def _list(given: Given) -> Callable[[], int]:
    from subagents.cli.runs import selectors  # noqa: PLC0415
    from subagents.cli.show import run_list, search_query  # noqa: PLC0415

    selector = given.pop("selector")
    page = {
        name: given.pop(name) for name in ("archived", "limit", "offset", "roots", "sort", "json")
    }
    wanted = search_query.search_query(**given)
    wanted |= {} if selector is None else selectors.query_of(selector)
    return lambda: run_list.show_list(wanted, **page)


def _status(given: Given) -> Callable[[], int]:
    from subagents.cli.show import run_status, search_query  # noqa: PLC0415

    runs, json = given.pop("runs"), given.pop("json")
    wanted = search_query.search_query(**given)
    return lambda: run_status.show_status(runs, wanted, json=json)


def _wait(given: Given) -> Callable[[], int]:
    from subagents.cli.runs import receiving  # noqa: PLC0415

    runs, is_any = given.pop("runs"), given.pop("any_")
    return lambda: receiving.wait(runs, is_any=is_any, **given)


def _inbox(given: Given) -> Callable[[], int]:
    from subagents.cli.runs import receiving  # noqa: PLC0415

    everything = given.pop("all_")
    return lambda: receiving.inbox(everything=everything, **given)


def _serve(given: Given) -> Callable[[], int]:
    from subagents.cli import serving  # noqa: PLC0415

    return lambda: serving.serve(**given)


def _of_worker(name: str) -> Callable[[Given], Callable[[], int]]:
    def command(given: Given) -> Callable[[], int]:
        from subagents.cli.workers import worker_words  # noqa: PLC0415

        return lambda: getattr(worker_words, name)(**given)

    return command


COMMANDS: Final[Mapping[str, Callable[[Given], Callable[[], int]]]] = {
    "list": _list,
    "status": _status,
    "wait": _wait,
    "inbox": _inbox,
    "serve": _serve,
    **{name: _of_worker(name) for name in ("report", "progress", "notify", "ask")},
}
