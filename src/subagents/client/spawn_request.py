"""What a Python program asks for when it spawns a run."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Final, Required, TypeAlias

from subagents.api.wire.requests import FLAGS, own_names
from subagents.client.spawn_keywords import SpawnParameters
from subagents.domain.run.parameter import Parameter, parameters
from subagents.domain.run.spec import RunSpec
from subagents.errors import SubagentsError, UsageError
from subagents.text import camel, parse_duration

UNIT_UNSAID: Final = ("retry_delay", "retry_max_time")
"""Durations whose names do not say of which unit a number would be."""


_FIELD: Final = re.compile(
    r"""(?<![\w/.-])(?P<lead>spec\.|(?:specs|runs)\[[0-9]+\]\.)?
    (?P<path>[a-z]\w*(?:\[[0-9]+\])?(?:\.[a-z]\w*(?:\[[0-9]+\])?)*)(?![\w/-])""",
    re.VERBOSE,
)
_WORD: Final = re.compile(r"\b[a-z]+[A-Z]\w*")
_INDEX: Final = re.compile(r"\[[0-9]+\]")

Spelling: TypeAlias = Callable[[str], str | None]
"""What was written for a field, by its path in JSON (``verification.artifacts[].minItems``); None =
nothing can have been, and it stays as it is."""


class SpawnKeywords(SpawnParameters, total=False):
    """The spawn parameters, and two by the names of their flags."""

    timeout: float | str | None
    """Deadline of each attempt, in seconds or like ``5m``; 0 = none."""
    retry: int
    """Attempts after a failed one."""


class PlanRun(SpawnKeywords, total=False):
    """One run of ``Orchestrator.plan``: what ``spawn`` takes."""

    task: Required[str]
    """What to do; 1 byte to 256 KiB."""
    agent: str | None
    """Agent id; None = ``agents.defaults.subagents.agent``, refused where that is not set."""


def spawn_document(run: Mapping[str, object]) -> object:
    """The document of one run, with the names of flags resolved.

    Raises:
        UsageError: A flag and its parameter, or a duration without a unit.
    """
    given = dict(run)
    if given.get("agent") is None:
        given.pop("agent", None)
    for name in UNIT_UNSAID:
        if isinstance(number := given.get(name), int | float):
            raise UsageError(
                f"{name} must be a text with its unit: a number was milliseconds before 0.2, and is"
                " seconds everywhere else",
                hint=f'{name}="{number}ms", or "5s"',
                details={"field": name},
            )
    if isinstance(text := given.get("timeout"), str):
        given["timeout"] = parse_duration(text, field="timeout") / 1000
    return camel_keys(own_names(given, json_name))


def json_name(name: str) -> str:
    """What a parameter of a run is called over HTTP: ``timeout`` → ``runTimeoutSeconds``."""
    return camel(FLAGS.get(name, name))


@contextmanager
def as_written(runs: Sequence[Mapping[str, object]]) -> Iterator[None]:
    """Errors about these runs name parameters as they were written here, and not as in JSON."""
    try:
        yield
    except SubagentsError as error:
        written = dict(_spellings(runs))
        reword(error, lambda path: ".".join(_part(each, written) for each in path.split(".")))
        raise


def _spellings(value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield json_name(str(name)), str(name)
            yield from _spellings(inner)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _spellings(each)


def _part(name: str, written: Mapping[str, str]) -> str:
    plain = name.removesuffix("[]")
    return written.get(plain, snake(plain)) + name[len(plain) :]


def snake(name: str) -> str:
    """``retryCount`` → ``retry_count``."""
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


def reword(error: SubagentsError, spelling: Spelling, *, where: str = "") -> None:
    """Let an error of the daemon name fields as whoever asked wrote them.

    Args:
        error: Changed in place.
        spelling: Gives what was written for a field; see ``Spelling``.
        where: What the fields are in, such as a file; put before the message unless it is there.
    """
    details = dict(error.details)
    # Of a field that is unknown: the fields that there are.
    known = details.get("known")
    names = {str(name): spelling(str(name)) for name in known} if isinstance(known, list) else {}

    def reworded(text: str) -> str:
        named = _FIELD.sub(lambda found: _written(found, spelling), text)
        return _WORD.sub(lambda found: names.get(found[0]) or found[0], named)

    if names:
        details["known"] = [new or name for name, new in names.items()]
    problems = details.get("problems")
    if isinstance(problems, list):
        named = [
            {**each, **_texts(each, reworded)} for each in problems if isinstance(each, Mapping)
        ]
        details["problems"] = named
        if where and named and "runs[" not in reworded(error.message):
            where = f"{where}: runs[{named[0].get('step')}]"
    details |= _texts(details, reworded)
    message = reworded(error.message)
    if where and where.partition(":")[0] not in message:
        message = f"{where}: {message}"
    error.message, error.details, error.args = message, details, (message,)
    error.hint = None if error.hint is None else reworded(error.hint)


def _texts(document: Mapping[str, object], reworded: Callable[[str], str]) -> dict[str, str]:
    found = {name: document.get(name) for name in ("field", "message")}
    return {name: reworded(text) for name, text in found.items() if isinstance(text, str)}


def _written(found: "re.Match[str]", spelling: Spelling) -> str:
    lead, path = found["lead"] or "", found["path"]
    bare = _INDEX.sub("[]", path)
    known = _parameters()
    is_known = bare in known or bare.removesuffix("[]") in known
    # A word such as `label` may be meant as a word; at the beginning of a message it is a field.
    is_plain = bare.islower() and "." not in bare and "[" not in bare
    if not lead and (not is_known or (is_plain and found.start() > 0)):
        return found[0]
    written = spelling(bare if bare in known else bare.removesuffix("[]")) if is_known else None
    if written is None:
        written = spelling(bare) or path
    # Places in lists, as far as the spelling has room for them; a flag has none.
    numbers = _INDEX.findall(path)
    for number in numbers[: written.count("[]")]:
        written = written.replace("[]", number, 1)
    if not written.startswith("-"):
        written += "".join(numbers[len(_INDEX.findall(written)) :])
    kept = "" if lead == "spec." or written.startswith("-") else lead.replace("specs[", "runs[")
    return f"{kept}{written}"


@cache
def _parameters() -> frozenset[str]:
    """The paths of all spawn parameters."""

    def below(declared: Sequence[Parameter]) -> Iterator[str]:
        for each in declared:
            yield each.name
            yield from below(each.inner)

    return frozenset(below(parameters(RunSpec)))


def camel_keys(value: object) -> object:
    """Parameter names of nested tables too; a JSON Schema's own keys stay as they are.

    Raises:
        UsageError: A name is given in both spellings.
    """
    if isinstance(value, Mapping):
        found: dict[str, object] = {}
        for key, inner in value.items():
            name = camel(str(key))
            if name in found:
                raise UsageError(f"{name} is given twice, in both spellings")
            found[name] = inner if name == "schema" else camel_keys(inner)
        return found
    if isinstance(value, list | tuple):
        return [camel_keys(inner) for inner in value]
    return value
