"""The flags of ``run`` and ``spawn``, and the ``RunSpec`` they come to.

Source: 5-surfaces §2, §7.
"""

import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from cyclopts import Parameter

from subagents.cli.connection import caller_cwd
from subagents.cli.output import note
from subagents.cli.runs.contract_flags import ArtifactFlags
from subagents.domain.run.spec import (
    TASK_BYTES_MAX,
    Artifact,
    Backoff,
    Budget,
    Cleanup,
    Contract,
    Isolation,
    OnDependencyFailure,
    OnFailure,
    RunSpec,
)
from subagents.errors import UsageError
from subagents.text import parse_duration

SCHEMA_BYTES_MAX: Final = 256 * 1024
CONTRACT_OPTION: Final = "--contract-flags"
"""How ``contract_flags.extract``'s answer passes the parser; nobody types it."""

Texts = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SpawnFlags:
    """Everything but the task."""

    agent: Annotated[
        str | None,
        Parameter(name=["--agent", "-a"], help="Agent from the configuration. Default: command."),
    ] = None
    label: Annotated[
        str | None, Parameter(name=["--label", "-l"], help="Name of the run, for people.")
    ] = None
    cwd: Annotated[
        str | None, Parameter(help="Working directory. Default: this one.", metavar="DIR")
    ] = None
    timeout: Annotated[
        str | None, Parameter(help="Deadline of each attempt, such as 5m.", metavar="DURATION")
    ] = None

    verify: Annotated[
        Texts,
        Parameter(
            help="A file the work must leave behind. Repeatable; the next five flags describe the "
            "--verify before them.",
            metavar="PATH",
        ),
    ] = ()
    verify_json: Annotated[bool, Parameter(help="The file is JSON.")] = False
    min_items: Annotated[
        int | None, Parameter(help="The file is a JSON array of at least N items.", metavar="N")
    ] = None
    required_keys: Annotated[
        str | None, Parameter(help="Keys that the object, or each item, has.", metavar="A,B")
    ] = None
    min_bytes: Annotated[
        int | None, Parameter(help="The file has at least N bytes.", metavar="N")
    ] = None
    schema: Annotated[
        str | None, Parameter(help="The file fits the JSON Schema in FILE.", metavar="FILE")
    ] = None
    contract_flags: Annotated[str | None, Parameter(name=CONTRACT_OPTION, show=False)] = None
    require_report: Annotated[
        bool, Parameter(help="The worker must end with a completion report.")
    ] = False
    on_failure: Annotated[
        Literal["fail", "retry_once", "escalate"] | None,
        Parameter(help="When the verification fails. Default: fail."),
    ] = None

    retry: Annotated[
        int, Parameter(help="Attempts after a failed one. Default: 0.", metavar="N")
    ] = 0
    backoff: Annotated[
        Literal["exponential", "linear", "fixed"],
        Parameter(help="How the delay grows. Default: exponential."),
    ] = "exponential"
    retry_delay: Annotated[
        str, Parameter(help="Delay before the first retry. Default: 1s.", metavar="DURATION")
    ] = "1s"
    retry_on: Annotated[
        Texts, Parameter(help="Retry only errors with this text. Repeatable.", metavar="TEXT")
    ] = ()
    retry_max_time: Annotated[
        str | None, Parameter(help="No retry later than this.", metavar="DURATION")
    ] = None

    after: Annotated[
        Texts, Parameter(help="Start when this run has ended. Repeatable.", metavar="RUN")
    ] = ()
    include_result: Annotated[
        bool, Parameter(help="Put the results of --after before the task.")
    ] = False
    on_dependency_failure: Annotated[
        Literal["cancel", "run"] | None,
        Parameter(help="When a run of --after fails. Default: cancel."),
    ] = None

    allow_tool: Annotated[
        Texts, Parameter(help="Only these tools. Repeatable.", metavar="TOOL")
    ] = ()
    deny_tool: Annotated[Texts, Parameter(help="Not this tool. Repeatable.", metavar="TOOL")] = ()
    max_cost: Annotated[
        float | None, Parameter(help="Budget with all descendants.", metavar="USD")
    ] = None
    max_tokens: Annotated[
        int | None, Parameter(help="Budget with all descendants.", metavar="N")
    ] = None
    max_runs: Annotated[
        int | None, Parameter(help="The run and all its descendants together.", metavar="N")
    ] = None
    max_time: Annotated[
        str | None,
        Parameter(
            help="Budget with all descendants, retries and waits included.", metavar="DURATION"
        ),
    ] = None
    lane: Annotated[str | None, Parameter(help="Lane whose slots it waits for.")] = None
    priority: Annotated[
        int, Parameter(help="Higher starts sooner in its lane. Default: 0.", metavar="N")
    ] = 0
    tag: Annotated[Texts, Parameter(help="A word to find it by. Repeatable.", metavar="WORD")] = ()
    model: Annotated[str | None, Parameter(help="Model, where the runtime has models.")] = None
    thinking: Annotated[str | None, Parameter(help="Thinking level.")] = None
    keep: Annotated[
        bool,
        Parameter(negative="--delete", help="Keep the worker's session at the end, or not."),
    ] = True
    isolation: Annotated[
        Literal["none", "worktree"], Parameter(help="A git worktree of its own.")
    ] = "none"
    idempotency_key: Annotated[
        str | None,
        Parameter(help="The same key within 24 h gives the same run again.", metavar="KEY"),
    ] = None


def to_spec(words: Sequence[str], flags: SpawnFlags) -> RunSpec:
    """The spawn parameters; reads stdin for the task ``-`` and the files of ``--schema``.

    Raises:
        UsageError: Names the flag and what is allowed; nothing was sent.
    """
    if flags.on_dependency_failure is not None and not flags.after:
        raise UsageError(
            "--on-dependency-failure needs --after", details={"field": "--on-dependency-failure"}
        )
    contract = _contract(flags)
    return RunSpec(
        task=task_text(words),
        label=flags.label,
        agent_id=flags.agent,
        model=flags.model,
        thinking=flags.thinking,
        run_timeout_seconds=_seconds("--timeout", flags.timeout),
        cwd=None if flags.cwd is None else absolute(flags.cwd),
        cleanup=Cleanup.KEEP if flags.keep else Cleanup.DELETE,
        depends_on=flags.after,
        include_dependency_result=flags.include_result,
        on_dependency_failure=OnDependencyFailure(flags.on_dependency_failure or "cancel"),
        retry_count=flags.retry,
        retry_delay=parse_duration(flags.retry_delay, field="--retry-delay"),
        retry_backoff=Backoff(flags.backoff),
        retry_on=flags.retry_on,
        retry_max_time=_milliseconds("--retry-max-time", flags.retry_max_time),
        verification=contract,
        completion_report=flags.require_report,
        tools_allow=flags.allow_tool or None,
        tools_deny=flags.deny_tool,
        budget=_budget(flags),
        lane=flags.lane,
        priority=flags.priority,
        tags=flags.tag,
        isolation=Isolation(flags.isolation),
        idempotency_key=flags.idempotency_key,
    )


def task_text(words: Sequence[str]) -> str:
    """One word as it is, ``-`` = stdin, several as one shell command line.

    Raises:
        UsageError: Empty, a NUL byte, not UTF-8 or over 256 KiB.
    """
    if not words:
        raise UsageError(
            "the task is missing",
            hint="subagents run 'wc -l README.md', or `-` to read it from stdin",
            details={"field": "task"},
        )
    if list(words) == ["-"]:
        text = _stdin_text()
    else:
        text = words[0] if len(words) == 1 else shlex.join(words)
    problem = None
    if not text.strip():
        problem = "must not be empty"
    elif "\0" in text:
        problem = "must not contain a NUL byte"
    elif len(text.encode()) > TASK_BYTES_MAX:
        problem = f"must be at most {TASK_BYTES_MAX} bytes, not {len(text.encode())}"
    if problem:
        raise UsageError(f"task {problem}", details={"field": "task"})
    return text


def _stdin_text() -> str:
    if sys.stdin.isatty():
        note("Reading the task from the terminal; end it with Ctrl-D.")
    content = sys.stdin.buffer.read(TASK_BYTES_MAX + 1)
    if len(content) > TASK_BYTES_MAX:
        raise UsageError(
            f"task must be at most {TASK_BYTES_MAX} bytes",
            hint="put the text into a file and name it in the task",
            details={"field": "task"},
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"task must be valid UTF-8 (byte {error.start} of stdin is not)",
            details={"field": "task"},
        ) from error


def absolute(directory: str) -> str:
    """A directory as the caller means it."""
    return str(Path(caller_cwd(), Path(directory).expanduser()))


def _contract(flags: SpawnFlags) -> Contract | None:
    found = msgspec.json.decode(flags.contract_flags or "[]", type=list[ArtifactFlags])
    if not found and not flags.require_report:
        if flags.on_failure is not None:
            raise UsageError(
                "--on-failure says what follows a failed verification, and there is none",
                hint="add --verify PATH or --require-report",
                details={"field": "--on-failure"},
            )
        return None
    return Contract(
        artifacts=tuple(_artifact(each) for each in found),
        require_completion_report=flags.require_report,
        on_failure=OnFailure(flags.on_failure or "fail"),
    )


def _artifact(flags: ArtifactFlags) -> Artifact:
    return Artifact(
        path=flags.path,
        json=flags.json,
        min_items=flags.min_items,
        required_keys=flags.required_keys,
        min_bytes=flags.min_bytes,
        schema=None if flags.schema_file is None else read_schema(flags.schema_file),
        sha256=flags.sha256,
    )


def read_schema(name: str) -> dict[str, object] | bool:
    """Read a JSON Schema.

    Raises:
        UsageError: No such file, too large, not JSON, or neither object nor boolean.
    """
    file = Path(name).expanduser()
    details = {"field": "--schema"}
    try:
        if not file.is_file():
            raise UsageError(f"--schema {name}: there is no such file", details=details)
        if file.stat().st_size > SCHEMA_BYTES_MAX:
            raise UsageError(
                f"--schema {name}: must be at most {SCHEMA_BYTES_MAX} bytes", details=details
            )
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"--schema {name}: {error.strerror}", details=details) from error
    try:
        return msgspec.json.decode(content, type=dict[str, object] | bool)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--schema {name}: not a JSON Schema: {error}", details=details) from error


def _budget(flags: SpawnFlags) -> Budget | None:
    limits = (flags.max_cost, flags.max_tokens, flags.max_runs, flags.max_time)
    if all(limit is None for limit in limits):
        return None
    if flags.max_cost is not None and not (math.isfinite(flags.max_cost) and flags.max_cost >= 0):
        raise UsageError(
            f"--max-cost must be an amount in USD, 0 or more, not {flags.max_cost}",
            details={"field": "--max-cost"},
        )
    return Budget(
        max_cost_usd=flags.max_cost,
        max_tokens=flags.max_tokens,
        max_runs=flags.max_runs,
        max_seconds=_seconds("--max-time", flags.max_time),
    )


def _seconds(flag: str, text: str | None) -> float | None:
    return None if text is None else parse_duration(text, field=flag) / 1000


def _milliseconds(flag: str, text: str | None) -> int | None:
    return None if text is None else parse_duration(text, field=flag)
