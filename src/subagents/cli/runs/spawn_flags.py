"""The flags of every command that spawns, and the spawn parameters that they come to.

What flags there are is written by ``make docs`` from ``RunSpec`` into spawn_flags.json: the domain
and msgspec take longer to import than a spawn takes.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from subagents.cli.connection import caller_cwd
from subagents.cli.flags import Annotated, Argument, Together, flag_names, refusal, spawn_rows
from subagents.cli.output import note
from subagents.errors import UsageError
from subagents.text import parse_duration

if TYPE_CHECKING:
    from subagents.domain.run.spec import RunSpec

TASK_BYTES_MAX: Final = 256 * 1024
"""The domain's bound, which takes longer to import than to ask the daemon; a test compares them."""
SCHEMA_BYTES_MAX: Final = 256 * 1024
ARTIFACTS: Final = "verification.artifacts[]."
EVERYDAY: Final = frozenset(
    (
        *("--label", "--agent", "--model", "--tag"),
        *("--verify", "--min-items", "--verify-cmd", "--until-verified", "--retry", "--after"),
        *("--timeout", "--access", "--max-tokens", "--max-cost"),
        *("--cwd", "--isolation", "--env"),
    )
)
"""What ``--help`` shows of them."""
CHECKS: Final = "checks"
"""What sets the flags about files of a contract, whose order counts."""
NAME_CHARS_MAX: Final = 255
"""The length of an entry of a list."""
HAS_CHECKS: Final = frozenset(
    ("artifacts", "commands", "judge", "mustChange", "mustNotChange", "requireCompletionReport")
)
"""Parts of a contract that ask for something."""
WITH_RULES: Final = frozenset(("fallbackAgentId", "onDependencyFailure"))
"""Parameters of which one decides whether another one is allowed."""
KINDS: Final = {"bool": bool, "int": int, "float": float}
DIGITS_MAX: Final = 15
VERIFY: Final = "--verify"
EXISTING: Final = "--verify-existing"
_IMPLIES: Final = {"minItems": "json", "requiredKeys": "json", "minTests": "junit"}

Check = dict[str, Any]
"""One ``--verify`` with its modifiers, named as in ``Artifact``; ``schema`` is the name of a file
that was not opened yet."""
Given = Mapping[str, Any]
"""Values by the name of their parameter, as JSON spells it: ``budget.maxTokens``."""


def arguments() -> list[Argument]:
    """The flags as the parser takes them."""
    return [
        Argument(
            attribute=CHECKS if name.startswith(ARTIFACTS) else name,
            names=tuple(row["names"]),
            opposite=row.get("opposite", ""),
            kind=KINDS.get(row.get("kind", ""), str),
            choices=tuple(row.get("choices", ())),
            sets=row.get("sets", (True, False)),
            is_list=row.get("is_list", False),
            is_ordered=name.startswith(ARTIFACTS),
            help=row["help"],
            metavar=row.get("metavar", ""),
            group=row["group"],
            is_everyday=row["names"][0] in EVERYDAY,
        )
        for name, row in spawn_rows().items()
    ]


Flags = Annotated[Given, Together(dict, arguments)]
NO_FLAGS: Final[Given] = {}


def spec_of(words: Sequence[str], given: Given) -> dict[str, Any]:
    """The spawn parameters as a document; reads stdin for the task ``-`` and JSON Schemas.

    Raises:
        UsageError: Names the flag and what is allowed; nothing was sent.
    """
    spec: dict[str, Any] = {"task": task_text(words)}
    is_certain = not WITH_RULES & given.keys()
    for name, value in given.items():
        if name == CHECKS:
            continue
        row = spawn_rows()[name]
        found = _value_of(value, row)
        _put(spec, name, found)
        is_certain = is_certain and _is_within(found, row)
    if CHECKS in given:
        _put(spec, "verification.artifacts", checks(given[CHECKS]))
    _add_contract(spec)
    if "onDependencyFailure" in spec and "dependsOn" not in spec:
        raise refusal("--on-dependency-failure", "needs --after")
    if (each := spec.get("forEach")) and "run" not in each:
        raise refusal(flag_names()[f"forEach.{next(iter(each))}"], "needs --for-each")
    if spec.get("mode") == "session" and not spec.get("thread"):
        raise UsageError(
            "--mode session needs --thread: its session stays bound to a thread",
            details={"field": "--mode"},
        )
    # The daemon checks all of it again; here only so that what is wrong is said before it starts.
    if not is_certain:
        _check(spec)
    return spec


def to_spec(words: Sequence[str], given: Given) -> "RunSpec":
    """The same as the domain has it."""
    import msgspec  # noqa: PLC0415  who only starts a run needs none of it

    from subagents.domain.run.spec import RunSpec  # noqa: PLC0415

    return msgspec.convert(spec_of(words, given), RunSpec)


def _check(spec: Mapping[str, Any]) -> None:
    """Have the domain say what is wrong, if anything is."""
    import msgspec  # noqa: PLC0415  most flags are plain to see to be right

    from subagents.domain.rules.parameter_checks import check_spec  # noqa: PLC0415
    from subagents.domain.run.spec import RunSpec  # noqa: PLC0415

    names = flag_names()
    found = msgspec.convert(spec, RunSpec)
    check_spec(found, field=lambda parameter: names.get(parameter.name, parameter.name))


def _is_within(value: object, row: Mapping[str, Any]) -> bool:
    """Whether it is plain to see that a value is within its bounds."""
    low, high, most = row.get("low"), row.get("high"), row.get("most")
    match value:
        case bool():
            return True
        case int() | float():
            return low is None or high is None or low <= value <= high
        case str() if row.get("form") == "path":
            return len(value.encode()) <= (most or 0)
        case str():
            return most is None or (len(value) <= most and _is_name(value))
        case tuple():
            return len(value) <= (most or 0) and all(
                len(each) <= NAME_CHARS_MAX and _is_name(each) for each in value
            )
    return False


def _is_name(text: str) -> bool:
    return text.isprintable() and not text.isspace() and bool(text)


def _add_contract(spec: dict[str, Any]) -> None:
    contract = spec.get("verification")
    if contract is None:
        return
    for each in contract.get("artifacts", ()):
        if "schema" in each:
            each["schema"] = read_schema(each["schema"])
    _check_judge(contract.get("judge"))
    # A report that is required has to be asked for.
    if contract.get("requireCompletionReport"):
        spec["completionReport"] = True
    if not any(contract.get(name) for name in HAS_CHECKS):
        name = next(iter(contract))
        flag = flag_names()[f"verification.{name}"]
        raise refusal(
            flag,
            "is about the checks of a contract, and there are none",
            hint="add --verify PATH, --must-change PATH, --verify-cmd COMMAND or --require-report",
        )


def _check_judge(judge: Mapping[str, Any] | None) -> None:
    """What a judge needs, in the words of flags."""
    if judge is None or {"agentId", "criteria"} <= judge.keys():
        return
    flag = "--judge-criteria" if "agentId" in judge else "--judge"
    raise refusal(
        flag,
        "is missing: a judge is an agent and what it judges by",
        hint="--judge AGENT --judge-criteria TEXT",
    )


def read_schema(name: str) -> dict[str, object] | bool:
    """Read a JSON Schema.

    Raises:
        NotFound: No such file.
        UsageError: Too large, not JSON, or neither object nor boolean.
    """
    from pathlib import Path  # noqa: PLC0415  who has a schema

    from subagents.config.files import documents  # noqa: PLC0415
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


# -- the task and the values ---------------------------------------------------------------------


def task_text(words: Sequence[str]) -> str:
    """One word as it is, ``-`` = stdin, several as one shell command line.

    Raises:
        UsageError: Empty, a NUL byte, not UTF-8 or over 256 KiB.
    """
    if not words:
        raise UsageError(
            "the task is missing",
            hint="give it as one argument, such as 'wc -l README.md', or `-` to read it from stdin",
            details={"field": "task"},
        )
    if list(words) == ["-"]:
        text = _stdin_text()
    elif len(words) == 1:
        text = words[0]
    else:
        import shlex  # noqa: PLC0415

        text = shlex.join(words)
    if not text.strip():
        raise refusal("task", "must not be empty")
    if "\0" in text:
        raise refusal("task", "must not contain a NUL byte")
    if (size := len(text.encode())) > TASK_BYTES_MAX:
        raise refusal("task", f"must be at most {TASK_BYTES_MAX} bytes, not {size}")
    return text


def _stdin_text() -> str:
    if sys.stdin.isatty():
        note("Reading the task from the terminal; end it with Ctrl-D.")
    content = sys.stdin.buffer.read(TASK_BYTES_MAX + 1)
    if len(content) > TASK_BYTES_MAX:
        raise refusal(
            "task",
            f"must be at most {TASK_BYTES_MAX} bytes",
            hint="put the text into a file and name it in the task",
        )
    try:
        # Editors of some systems begin a file with a byte order mark, which is no part of it.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refusal(
            "task", f"must be valid UTF-8 (byte {error.start} of stdin is not)"
        ) from error


def _value_of(value: Any, row: Mapping[str, Any]) -> object:
    """What a flag's value comes to in a document: a duration is a number, a path absolute.

    Raises:
        UsageError: It is no duration.
    """
    unit = row.get("unit")
    if unit in {"seconds", "milliseconds"}:
        milliseconds = parse_duration(value, field=row["names"][0])
        return milliseconds / 1000 if unit == "seconds" else milliseconds
    if row.get("form") != "path":
        return value
    from pathlib import Path  # noqa: PLC0415

    # The daemon works elsewhere.
    return str(Path(caller_cwd(), Path(value).expanduser()))


def _put(document: dict[str, Any], path: str, value: object) -> None:
    """Set what stands at ``budget.maxTokens``; the objects on the way are made."""
    *tables, last = path.split(".")
    for name in tables:
        document = document.setdefault(name, {})
    document[last] = value


# -- the flags about files of a contract ----------------------------------------------------------


def checks(given: Iterable[tuple[str, str | None]]) -> list[Check]:
    """What the flags come to, an entry for each ``--verify``.

    ``--min-items 3`` belongs to the last ``--verify`` before it; ``--verify-existing`` before any
    holds for all. ``--min-items``, ``--required-keys`` and ``--schema`` make a check a JSON check
    by themselves, ``--min-tests`` one of JUnit XML. Reads no file.

    Args:
        given: Each flag with its value, in their order; without one None.

    Raises:
        UsageError: A modifier stands before any ``--verify``, or a value is none of its kind.
            Names the flag.
    """
    fields = {
        row["names"][0]: (name.removeprefix(ARTIFACTS), row.get("kind"))
        for name, row in spawn_rows().items()
        if name.startswith(ARTIFACTS)
    }
    found: list[Check] = []
    all_of_them: Check = {}
    for flag, value in given:
        name, kind = fields[flag]
        if flag == VERIFY:
            found.append({name: value, **all_of_them})
        elif kind == "bool" and value is not None:
            raise refusal(flag, "takes no value")
        elif flag == EXISTING and not found:
            all_of_them[name] = False
        elif not found:
            raise refusal(
                flag,
                f"describes the file of a {VERIFY} before it, and there is none",
                hint=f"write: {VERIFY} out.json {flag} …",
            )
        elif kind == "bool":
            found[-1][name] = flag != EXISTING
        else:
            _modify(found[-1], flag, name, _parsed(kind, flag, value or ""))
    if all_of_them and not found:
        raise refusal(
            EXISTING,
            f"is about the files of {VERIFY}, and there is none",
            hint=f"write: {VERIFY} out.json {EXISTING}",
        )
    return found


def _modify(check: Check, flag: str, name: str, value: object) -> None:
    if name in check:
        raise refusal(flag, f"stands twice after {VERIFY} {check['path']}")
    check[name] = value
    if name in _IMPLIES:
        check[_IMPLIES[name]] = True


def _parsed(kind: str | None, flag: str, value: str) -> object:
    if kind == "int":
        if not (value.isascii() and value.isdigit() and len(value) <= DIGITS_MAX):
            raise refusal(flag, f"must be a whole number, 0 or more, not {value!r}")
        return int(value)
    if kind == "list":
        keys = [key.strip() for key in value.split(",")]
        if not all(keys):
            raise refusal(flag, f"must be keys separated by commas, not {value!r}")
        return keys
    if not value:
        raise refusal(flag, "must not be empty")
    return value
