"""The flags of ``run`` and ``spawn`` become the spawn parameters, word for word."""

import io
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from subagents.cli.parser import parse
from subagents.cli.runs.spawn_flags import arguments, read_schema, task_text, to_spec
from subagents.cli.runs.submission import spawn
from subagents.domain.run.access import AccessLevel
from subagents.domain.run.spec import (
    Artifact,
    Backoff,
    Budget,
    Cleanup,
    Contract,
    Isolation,
    Judge,
    OnDependencyFailure,
    OnFailure,
    RunSpec,
)
from subagents.errors import NotFound, UsageError


def parsed(*argv: str) -> RunSpec:
    """What the parser makes of ``subagents spawn …``."""
    call = parse(spawn, argv)
    return to_spec(call.args, call.keywords["flags"])


@pytest.mark.requirement("cli:spawn-flags")
def test_without_flags_only_the_task_is_given() -> None:
    assert parsed("echo hello") == RunSpec(task="echo hello")


@pytest.mark.requirement("cli:spawn-flags")
def test_every_flag_reaches_its_parameter(tmp_path: Path) -> None:
    schema = tmp_path / "s.json"
    schema.write_text('{"type": "array"}')
    spec = parsed(
        *("work", "--agent", "build", "--label", "l", "--cwd", str(tmp_path), "--timeout", "5m"),
        *(
            "--verify",
            "a.json",
            "--min-items",
            "2",
            "--required-keys",
            "id",
            "--schema",
            str(schema),
        ),
        *("--verify", "b.txt", "--min-bytes", "9", "--require-report", "--on-failure", "escalate"),
        *("--retry", "3", "--backoff", "linear", "--retry-delay", "2s", "--retry-on", "net"),
        *("--retry-on", "disk", "--retry-max-time", "1m", "--after", "x", "--after", "y"),
        *("--until-verified", "4", "--retry-afresh"),
        *("--include-result", "--on-dependency-failure", "run", "--allow-tool", "Read"),
        *("--deny-tool", "Bash", "--max-cost", "1.5", "--max-tokens", "1000", "--lane", "heavy"),
        *("--max-runs", "4", "--max-time", "1h30m"),
        *("--priority", "-2", "--tag", "one", "--tag", "two", "--model", "m", "--thinking", "high"),
        *("--verify-command", "true", "--verification-timeout", "1m", "--progress"),
        *("--judge", "critic", "--judge-criteria", "it is good", "--judge-model", "big"),
        *("--judge-timeout", "2m", "--judge-access", "write"),
        *("--accept-partial", "--dependency-timeout", "1h"),
        *("--delete", "--isolation", "worktree", "--idempotency-key", "k"),
    )
    assert spec == RunSpec(
        task="work",
        agent_id="build",
        label="l",
        cwd=str(tmp_path),
        run_timeout_seconds=300,
        verification=Contract(
            artifacts=(
                Artifact(
                    path="a.json",
                    json=True,
                    min_items=2,
                    required_keys=("id",),
                    schema={"type": "array"},
                ),
                Artifact(path="b.txt", min_bytes=9),
            ),
            require_completion_report=True,
            commands=("true",),
            on_failure=OnFailure.ESCALATE,
            verification_timeout_ms=60_000,
            judge=Judge(
                agent_id="critic",
                criteria="it is good",
                model="big",
                run_timeout_seconds=120,
                access=AccessLevel.WRITE,
            ),
        ),
        progress_reporting=True,
        accept_partial_dependencies=True,
        dependency_timeout_seconds=3600,
        completion_report=True,
        retry_count=3,
        retry_backoff=Backoff.LINEAR,
        retry_delay=2000,
        retry_on=("net", "disk"),
        retry_max_time=60_000,
        retry_until_verified=4,
        retry_afresh=True,
        depends_on=("x", "y"),
        include_dependency_result=True,
        on_dependency_failure=OnDependencyFailure.RUN,
        tools_allow=("Read",),
        tools_deny=("Bash",),
        budget=Budget(max_cost_usd=1.5, max_tokens=1000, max_runs=4, max_seconds=5_400),
        lane="heavy",
        priority=-2,
        tags=("one", "two"),
        model="m",
        thinking="high",
        cleanup=Cleanup.DELETE,
        isolation=Isolation.WORKTREE,
        idempotency_key="k",
    )


@pytest.mark.requirement("spawn:declared-once", "cli:task")
def test_a_session_a_thread_a_report_and_a_silent_end_can_be_asked_for() -> None:
    spec = parsed("x", "--mode", "session", "--thread", "--no-completion-message")
    assert (spec.mode, spec.thread, spec.expects_completion_message) == ("session", True, False)
    assert parsed("x", "--completion-report").completion_report
    assert parsed("x", "--completion-message").expects_completion_message


@pytest.mark.requirement("cli:task")
def test_several_words_are_one_command_line_and_one_word_stays_as_it_is() -> None:
    assert parsed("--", "grep", "-c", "a b", "$HOME").task == "grep -c 'a b' '$HOME'"
    assert parsed("--", "wc -l /etc/passwd > out").task == "wc -l /etc/passwd > out"


@pytest.mark.requirement("files:byte-order-mark")
def test_a_byte_order_mark_before_a_task_on_stdin_is_no_part_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\ufeffwork".encode())))
    assert parsed("-").task == "work"


@pytest.mark.requirement("cli:task")
def test_the_task_dash_is_read_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("wörk\n".encode())))
    assert parsed("-").task == "wörk\n"


BAD_TASKS: list[tuple[list[str], str]] = [
    ([], "the task is missing"),
    ([""], "task must not be empty"),
    ([" \n"], "task must not be empty"),
    (["a\0b"], "task must not contain a NUL byte"),
    (["é" * 131_073], "task must be at most 262144 bytes, not 262146"),
]


@pytest.mark.requirement("cli:bad-input")
@pytest.mark.parametrize(("words", "message"), BAD_TASKS, ids=[m for _, m in BAD_TASKS])
def test_a_task_that_cannot_be_one_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        task_text(words)
    assert caught.value.details == {"field": "task"}


@pytest.mark.requirement("cli:bad-input")
def test_stdin_that_is_too_large_or_no_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * 262_145)))
    with pytest.raises(UsageError, match="task must be at most 262144 bytes"):
        task_text(["-"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ok \xff")))
    with pytest.raises(UsageError, match=r"task must be valid UTF-8 \(byte 3 of stdin is not\)"):
        task_text(["-"])


BAD_FLAGS = [
    ("--timeout soon", "--timeout must be a duration"),
    ("--timeout 31d", "--timeout must be 0 to 2592000, not 2678400.0"),
    ("--retry-delay x", "--retry-delay must be a duration"),
    ("--retry-max-time x", "--retry-max-time must be a duration"),
    ("--retry 101", "--retry must be 0 to 100, not 101"),
    ("--tag a\nb", "--tag must be one line without control characters"),
    ("--on-failure fail", "--on-failure is about the checks of a contract, and there are none"),
    ("--verification-timeout 5s", "--verification-timeout is about the checks of a contract"),
    ("--judge critic", "--judge-criteria is missing: a judge is an agent and what it judges by"),
    ("--on-dependency-failure run", "--on-dependency-failure needs --after"),
    (
        "--on-dependency-failure fallback --after x",
        '--fallback-agent and --on-dependency-failure "fallback" need each other',
    ),
    (
        "--fallback-agent other",
        '--fallback-agent and --on-dependency-failure "fallback" need each other',
    ),
    ("--mode session", "--mode session needs --thread"),
    ("--max-items 3", "--max-items needs --for-each"),
    ("--max-parallel 2", "--max-parallel needs --for-each"),
    ("--items-file a.json", "--items-file needs --for-each"),
    ("--max-cost nan", "--max-cost must be 1e-06 to 1000000, not that"),
    ("--max-cost -1", "--max-cost must be 1e-06 to 1000000, not -1.0"),
]


@pytest.mark.requirement("cli:bad-input")
@pytest.mark.parametrize(("line", "message"), BAD_FLAGS, ids=[m for _, m in BAD_FLAGS])
def test_a_flag_that_makes_no_sense_is_refused_by_name(line: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parsed("t", *line.split(" "))
    assert caught.value.message.startswith(message)
    assert line.split(" ", maxsplit=1)[0] in str(caught.value.details["field"])


@pytest.mark.requirement("cli:bad-input")
@pytest.mark.parametrize("value", ["1", "-1", "x"])
def test_every_flag_alone_is_taken_or_refused(value: str) -> None:
    for each in arguments():
        of_it = () if each.kind is bool else each.choices[:1] or (value,)
        with suppress(UsageError, NotFound):
            parsed("t", f"{each.names[0]}={of_it[0]}" if of_it else each.names[0])


@pytest.mark.requirement("cli:bad-input")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file"),
        (b"{", "no JSON Schema"),
        (b"[1]", "a JSON Schema is an object"),
        (b'"\xff"', "not valid UTF-8"),
        (b'{"x": "' + b"y" * 262_144 + b'"}', "larger than 262,144 bytes"),
    ],
    ids=["missing", "broken", "array", "not-utf-8", "large"],
)
def test_a_schema_file_that_is_no_schema_is_refused(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    file = tmp_path / "s.json"
    if content is not None:
        file.write_bytes(content)
    kind = NotFound if content is None else UsageError
    with pytest.raises(kind, match=f"--schema .*{message}"):
        read_schema(str(file))


@pytest.mark.requirement("files:byte-order-mark")
def test_a_schema_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_bytes('\ufeff{"type": "object"}'.encode())

    assert read_schema(str(tmp_path / "s.json")) == {"type": "object"}


@pytest.mark.requirement("cli:contract-flags")
def test_a_boolean_is_a_schema_too(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text("true")
    assert read_schema(str(file)) is True
