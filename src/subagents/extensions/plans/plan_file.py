"""Reads a batch of runs from a TOML, YAML or JSON file.

The file has ``runs``: tables with the spawn parameters, in snake_case or camelCase, and ``env``,
variables for the run's worker alone. Runs name each other by label in ``depends_on`` and
``chain_after``. Its ``budget`` is of all of them together, at most ``jobs`` of them work at once,
and its ``name`` is what the plan is found by: without one, that of the file. ``vars`` and each
run's ``matrix`` are put in first (``plan_expansion``).
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import to_builtins

from subagents.api.wire.decoding import decode
from subagents.api.wire.requests import FLAGS, PlanLimit, own_names, parse_spec
from subagents.cli import output
from subagents.client.spawn_request import as_written, camel_keys, json_name
from subagents.config.files import documents
from subagents.config.files.documents import BadDocument
from subagents.config.files.text_files import read_text
from subagents.config.settings import nearest
from subagents.domain.run.caller_environment import CallerEnvironment, require_usable
from subagents.domain.run.spec import BATCH_RUNS_MAX, PLAN_NAME_CHARS_MAX, RunSpec
from subagents.errors import UsageError
from subagents.extensions.plans.plan_expansion import VARS, Expansion
from subagents.extensions.plans.result_items import require_item
from subagents.text import camel

KEYS: Final = ("name", VARS, "budget", "jobs", "runs")
ENV: Final = "env"
DIGITS_MAX: Final = 15
SCHEMA: Final = "$schema"
"""Where a JSON file tells an editor what checks it."""
FILE_BYTES_MAX: Final = 2 * 1024 * 1024

PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    ".toml": documents.toml,
    ".json": documents.json,
    ".yaml": documents.yaml,
    ".yml": documents.yaml,
}


class Plan(NamedTuple):
    """What a plan file says."""

    specs: tuple[RunSpec, ...]
    """In its order."""
    name: str = ""
    environments: tuple[dict[str, str], ...] = ()
    """Variables for each of them alone, where any has some."""
    budget: PlanLimit = PlanLimit()
    """Of all of them together."""
    jobs: int | None = None
    """At most so many of them at once; None = as many as their lanes have slots."""

    def body(self) -> dict[str, object]:
        """What ``POST /v1/plans`` takes."""
        rest = {"budget": to_builtins(self.budget) or None, "jobs": self.jobs}
        own = {"stepEnvironments": list(self.environments)} if self.environments else {}
        given = {name: value for name, value in rest.items() if value is not None}
        return {"specs": list(self.specs), "name": self.name, **given, **own}


def body_of(file: Path) -> dict[str, object]:
    """The hook ``plan_files``; see ``read_plan``."""
    return read_plan(file).body()


def read_plan(file: Path, variables: Mapping[str, str] | None = None) -> Plan:
    """The runs of a plan file, and their budget.

    Args:
        file: Its name says in which language it is.
        variables: Stronger than the plan's ``vars``.

    Raises:
        UsageError: Names the file and, inside it, the field; nothing was sent.
    """
    content = _parse(
        file, read_text(file, bytes_max=FILE_BYTES_MAX, name=f"plan file {file}", field="FILE")
    )
    try:
        return _plan(file, content, variables or {})
    except RecursionError as error:
        raise UsageError(f"{file}: nested too deeply") from error


def _plan(file: Path, content: object, variables: Mapping[str, str]) -> Plan:
    where = str(file)
    expansion = Expansion(where, None, variables)
    budget, jobs, name = PlanLimit(), None, file.stem[:PLAN_NAME_CHARS_MAX]
    if isinstance(content, dict):
        for key in content:
            if key not in (*KEYS, SCHEMA):
                near = nearest(str(key), KEYS)
                guess = f"did you mean {near!r}? A plan" if near else "is it of a run? A plan"
                raise UsageError(
                    f"{where}: unknown key {str(key)[:100]!r}; {guess} has only {', '.join(KEYS)}"
                )
        expansion = Expansion(where, content.get(VARS), variables)
        if "budget" in content:
            budget = _budget(expansion.outside(content["budget"], "budget"), where)
        if "jobs" in content:
            given = expansion.outside(content["jobs"], "jobs")
            jobs = require_jobs(given, f"{where}: jobs")
        name = _name(expansion.outside(content.get("name", name), "name"), where)
        content = content.get("runs")
    if not isinstance(content, list) or not content:
        raise UsageError(
            f"{where}: `runs` must be a list of at least one run",
            hint='TOML: [[runs]] with task = "…" below, once for each run',
        )
    if len(content) > BATCH_RUNS_MAX:
        raise UsageError(
            f"{where}: runs must have at most {BATCH_RUNS_MAX} entries, not {len(content)}"
        )
    steps = expansion.steps(content)
    expansion.check_given()
    if former := _former_names(each.content for each in steps):
        output.note(f"{where}: {former}; the former names go on")
    own = [_environment(each.content, f"{where}: {each.where}.{ENV}") for each in steps]
    runs = tuple(_spec(each.content, f"{where}: {each.where}") for each in steps)
    return Plan(runs, name, tuple(own) if any(own) else (), budget, jobs)


def require_jobs(content: object, where: str) -> int:
    """How many runs of a plan may work at once.

    Args:
        content: As it was given: a whole number, or the text of one.
        where: The flag or key, for messages.

    Raises:
        UsageError: It is no number from 1 to ``BATCH_RUNS_MAX``.
    """
    text = str(content)
    is_number = not isinstance(content, bool) and text.isascii() and text.isdigit()
    if not is_number or not 1 <= int(text[:DIGITS_MAX]) <= BATCH_RUNS_MAX:
        raise UsageError(
            f"{where} must be a number from 1 to {BATCH_RUNS_MAX}, not {text[:40]!r}",
            details={"field": where.rpartition(": ")[2]},
        )
    return int(text)


def _name(content: object, where: str) -> str:
    if not isinstance(content, str) or not 1 <= len(content) <= PLAN_NAME_CHARS_MAX:
        raise UsageError(f"{where}: name must be a text of 1 to {PLAN_NAME_CHARS_MAX} characters")
    return content


def _environment(content: object, where: str) -> dict[str, str]:
    """The variables of one step: a table of names and texts."""
    found = content.get(ENV) if isinstance(content, dict) else None
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise UsageError(f'{where} must be a table of texts, such as {{ CI = "1" }}')
    given = {str(name): each for name, each in found.items()}
    try:
        require_usable(CallerEnvironment(given=given))
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", hint=error.hint) from error
    return given


def _budget(content: object, where: str) -> PlanLimit:
    if not isinstance(content, dict):
        raise UsageError(f"{where}: budget must be a table, not {_shown(content)}")
    try:
        return decode(camel_keys(content), PlanLimit)
    except UsageError as error:
        raise UsageError(f"{where}: budget: {error.message}") from error


def _parse(file: Path, text: str) -> object:
    suffix = file.suffix.lower()
    parse = PARSERS.get(suffix)
    if parse is None:
        raise UsageError(
            f"{file}: a plan is .toml, .yaml, .yml or .json, not {suffix or 'without suffix'}"
        )
    try:
        return parse(text)
    except BadDocument as error:
        raise UsageError(error.at(str(file))) from error


def _former_names(contents: Iterable[object]) -> str:
    """``retry_count is retry now``, … for the parameters that have the names of flags now."""
    flags = {name: flag for flag, own in FLAGS.items() for name in (own, camel(own))}
    used = {name for each in contents if isinstance(each, dict) for name in each}
    return ", ".join(
        f"{name} is {flags[name]} now" for name in sorted(used & flags.keys(), key=str)
    )


def _spec(content: object, where: str) -> RunSpec:
    if not isinstance(content, dict):
        raise UsageError(f"{where} must be a table, not {_shown(content)}")
    said = {str(name): v for name, v in content.items() if name != ENV}
    try:
        parameters = camel_keys(own_names(said, json_name))
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}") from error
    except RecursionError as error:
        raise UsageError(f"{where} is nested too deeply") from error
    with as_written([said]):
        spec = parse_spec(parameters, at=f"{where}.")
    if spec.for_each is not None:
        require_item(spec, f"{where}: ")
    return spec


def _shown(value: object) -> str:
    """What it is; never what it says, which may be somebody's secret in the wrong place."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "a table" if isinstance(value, dict) else "something else"
