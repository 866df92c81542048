"""The flags of every command that spawns, made from the declaration of ``RunSpec``.

A parameter's flag is ``--`` and its name, without the unit at its end. Here stands only where the
command line differs: shorter names, placeholders, and the parameters that have no flag.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

import cyclopts
import msgspec
from msgspec import inspect

from subagents.cli.runs import contract_flags, spawn_values
from subagents.cli.runs.flag_help import HELP
from subagents.domain.rules.parameter_checks import check_spec
from subagents.domain.run.parameter import SECTIONS, Parameter, leaves, parameters
from subagents.domain.run.spec import Contract, RunSpec
from subagents.errors import UsageError
from subagents.text import duration

SCHEMA_BYTES_MAX: Final = 256 * 1024
CONTRACT_OPTION: Final = "--contract-flags"
"""How ``contract_flags.extract``'s answer passes the parser; nobody types it."""

NAMES: Final = {
    "agentId": ("--agent", "-a"),
    "label": ("--label", "-l"),
    "runTimeoutSeconds": ("--timeout",),
    "dependsOn": ("--after",),
    "fallbackAgentId": ("--fallback-agent",),
    "includeDependencyResult": ("--include-result",),
    "acceptPartialDependencies": ("--accept-partial",),
    "retryCount": ("--retry",),
    "retryBackoff": ("--backoff",),
    "verification.requireCompletionReport": ("--require-report",),
    "verification.commands": ("--verify-cmd", "--verify-command"),
    "verification.judge.agentId": ("--judge",),
    "verification.judge.criteria": ("--judge-criteria",),
    "verification.judge.model": ("--judge-model",),
    "verification.judge.runTimeoutSeconds": ("--judge-timeout",),
    "verification.judge.access": ("--judge-access",),
    "progressReporting": ("--progress",),
    "toolsAllow": ("--allow-tool",),
    "toolsDeny": ("--deny-tool",),
    "budget.maxSeconds": ("--max-time",),
    "tags": ("--tag",),
}
PAIRS: Final = {
    "cleanup": ("--keep", "--delete"),
    "expectsCompletionMessage": ("--completion-message", "--no-completion-message"),
}
"""A flag for each of two choices, in their order; of a switch, first for on."""
PLACEHOLDERS: Final = {
    "agentId": "AGENT",
    "fallbackAgentId": "AGENT",
    "cwd": "DIR",
    "dependsOn": "RUN",
    "toolsAllow": "TOOL",
    "toolsDeny": "TOOL",
    "tags": "WORD",
    "retryOn": "TEXT",
    "verification.commands": "COMMAND",
    "idempotencyKey": "KEY",
    "path": "PATH",
    "requiredKeys": "A,B",
    "schema": "FILE",
    "sha256": "HEX",
    "regex": "REGEX",
    "newerThan": "PATH",
    "verification.mustChange": "GLOB",
    "verification.mustNotChange": "GLOB",
    "verification.judge.agentId": "AGENT",
    "verification.judge.criteria": "TEXT",
}
WITHOUT_FLAG: Final = {
    "task": "the argument",
    "chainAfter": "`--after` with one run",
    "verification.fresh": "`--verify-existing`",
    "verification.judge.budget": "in a plan file; as `budget`",
    "verification.judge.verification": "in a plan file; as `verification`",
    "continues": "`subagents continue`",
}
"""Parameters of ``RunSpec`` that have no flag, and what stands for them; all others have one."""
ARTIFACTS: Final = "verification.artifacts[]."
"""What ``contract_flags`` reads: the parser knows these flags for its help, and reads none."""
_UNITS: Final = ("Seconds", "Ms", "Usd")
_DURATIONS: Final = ("seconds", "milliseconds")

T = TypeVar("T")


class Flag(NamedTuple):
    """One flag of the command line."""

    parameter: Parameter
    names: tuple[str, ...]
    """The first is the one that messages use."""
    opposite: str = ""
    """The flag for the other one of two choices."""

    @property
    def attribute(self) -> str:
        """Of ``SpawnFlags``."""
        return self.names[0].removeprefix("--").replace("-", "_")


def _flag(parameter: Parameter) -> Flag:
    name = parameter.name
    if name.startswith(ARTIFACTS):
        own = name.removeprefix(ARTIFACTS)
        return Flag(parameter, (contract_flags.flag_of(own),))
    if name in PAIRS:
        first, second = PAIRS[name]
        return Flag(parameter, (first,), second)
    rule = name.rpartition(".")[2]
    for unit in _UNITS:
        rule = rule.removesuffix(unit)
    return Flag(parameter, NAMES.get(name, (f"--{contract_flags.kebab(rule)}",)))


FLAGS: Final = tuple(
    _flag(each) for each in leaves(parameters(RunSpec)) if each.name not in WITHOUT_FLAG
)
GROUPS: Final = {each: cyclopts.Group.create_ordered(each) for each in SECTIONS}


def _made_of_flags(cls: type[T]) -> type[T]:
    """A dataclass with a field for each flag, as the parser wants it; None = not given."""
    made = {flag.attribute: _annotation(flag) for flag in FLAGS}
    cls.__annotations__ = {**cls.__annotations__, **made}
    for flag in FLAGS:
        setattr(cls, flag.attribute, () if flag.parameter.is_list else None)
    return dataclass(kw_only=True, repr=False, eq=False)(cls)


def _annotation(flag: Flag) -> Any:
    parameter = flag.parameter
    name = parameter.name.removeprefix(ARTIFACTS)
    placeholder = PLACEHOLDERS.get(name)
    kind: Any = str | None
    match parameter.type:
        case inspect.VarTupleType():
            kind = tuple[str, ...]
        case inspect.EnumType() if not flag.opposite:
            kind = Literal[parameter.choices] | None
        case inspect.BoolType() | inspect.EnumType():
            kind = bool | None
        case inspect.IntType() | inspect.FloatType() if parameter.unit in _DURATIONS:
            placeholder = "DURATION"
        case inspect.IntType():
            kind, placeholder = int | None, "N"
        case inspect.FloatType():
            kind, placeholder = float | None, parameter.unit
    return Annotated[
        kind,
        cyclopts.Parameter(
            name=flag.names,
            negative=flag.opposite or (),
            help=_help(parameter, HELP.get(name)),
            metavar=placeholder,
            group=GROUPS[parameter.section],
            validator=_left_over if parameter.name.startswith(ARTIFACTS) else None,
        ),
    ]


def _left_over(_type: Any, value: Any) -> None:
    """Refuse a contract flag that reached the parser: nobody would read it after that.

    Raises:
        ValueError: It was given.
    """
    if value is not None and value != ():
        raise ValueError("this command does not read the flags of a contract")


def _help(parameter: Parameter, text: str | None) -> str:
    words = [text or f"{parameter.description}."]
    if parameter.is_list and not parameter.name.startswith(ARTIFACTS):
        words.append("Repeatable.")
    elif parameter.default not in (None, ()) and not isinstance(parameter.default, bool):
        words.append(f"Default: {_shown(parameter)}.")
    return " ".join(words)


def _shown(parameter: Parameter) -> str:
    """The default as it would be typed."""
    if parameter.unit not in _DURATIONS:
        return str(parameter.default)
    value = float(str(parameter.default))
    return duration(round(value * 1000 if parameter.unit == "seconds" else value))


@_made_of_flags
class SpawnFlags:
    """What was given besides the task."""

    contract_flags: Annotated[str | None, cyclopts.Parameter(name=CONTRACT_OPTION, show=False)] = (
        None
    )


def to_spec(words: Sequence[str], given: SpawnFlags) -> RunSpec:
    """The spawn parameters; reads stdin for the task ``-`` and the files of ``--schema``.

    Raises:
        UsageError: Names the flag and what is allowed; nothing was sent.
    """
    values: dict[str, Any] = {"task": spawn_values.task_text(words)}
    for flag in FLAGS:
        value = getattr(given, flag.attribute)
        if value is None or value == () or flag.parameter.name.startswith(ARTIFACTS):
            continue
        spawn_values.put(values, flag.parameter.name, _value(flag, value))
    _add_contract(values, given)
    if "onDependencyFailure" in values and "dependsOn" not in values:
        raise UsageError(
            "--on-dependency-failure needs --after", details={"field": "--on-dependency-failure"}
        )
    if values.get("mode") == "session" and not values.get("thread"):
        raise UsageError(
            "--mode session needs --thread: its session stays bound to a thread",
            details={"field": "--mode"},
        )
    spec = msgspec.convert(values, RunSpec)
    known_as = {flag.parameter.name: flag.names[0] for flag in FLAGS}
    check_spec(spec, field=lambda parameter: known_as.get(parameter.name, parameter.name))
    return spec


def flag_names() -> dict[str, str]:
    """The flag that messages use, by the path of its parameter."""
    return {flag.parameter.name: flag.names[0] for flag in FLAGS} | {"agentId": NAMES["agentId"][0]}


def _value(flag: Flag, value: Any) -> object:
    parameter = flag.parameter
    if flag.opposite and parameter.choices:
        return parameter.choices[0 if value else 1]
    return spawn_values.value_of(
        value, unit=parameter.unit, form=parameter.form, flag=flag.names[0]
    )


def _add_contract(values: dict[str, Any], given: SpawnFlags) -> None:
    checks = msgspec.json.decode(given.contract_flags or "[]", type=list[contract_flags.Check])
    for check in checks:
        if "schema" in check:
            check["schema"] = read_schema(str(check["schema"]))
    contract = values.setdefault("verification", {}) if checks else values.get("verification")
    if contract is None:
        return
    contract |= {"artifacts": checks}
    _check_judge(contract.get("judge"))
    if contract.get("requireCompletionReport"):
        values["completionReport"] = True
    if not msgspec.convert(contract, Contract).has_checks:
        flag = next(
            each.names[0]
            for each in FLAGS
            if each.parameter.name.removeprefix("verification.") in contract
        )
        raise UsageError(
            f"{flag} is about the checks of a contract, and there are none",
            hint="add --verify PATH, --must-change PATH, --verify-cmd COMMAND or --require-report",
            details={"field": flag},
        )


def _check_judge(judge: dict[str, Any] | None) -> None:
    """What a judge needs, in the words of flags."""
    if judge is None or {"agentId", "criteria"} <= judge.keys():
        return
    flag = "--judge-criteria" if "agentId" in judge else "--judge"
    raise UsageError(
        f"{flag} is missing: a judge is an agent and what it judges by",
        hint="--judge AGENT --judge-criteria TEXT",
        details={"field": flag},
    )


def read_schema(name: str) -> dict[str, object] | bool:
    """Read a JSON Schema.

    Raises:
        NotFound: No such file.
        UsageError: Too large, not JSON, or neither object nor boolean.
    """
    from subagents.config.files import documents  # noqa: PLC0415  who has a schema
    from subagents.config.files.text_files import read_text  # noqa: PLC0415

    where, field = f"--schema {name}", "--schema"
    text = read_text(
        Path(name).expanduser(), bytes_max=SCHEMA_BYTES_MAX, name=where, field=field, streams=True
    )
    try:
        found = documents.json(text)
    except documents.BadDocument as error:
        message = f"{error.at(where)}, so it is no JSON Schema"
        raise UsageError(message, details={"field": field}) from error
    if isinstance(found, bool | dict):
        return found
    raise UsageError(
        f"{where}: a JSON Schema is an object or true or false", details={"field": field}
    )
