"""Structured events: what they mean as evidence, and what they say."""

import pytest

from subagents.domain.run.run import Confidence, Progress, Report, ReportedArtifact, ReportStatus
from subagents.domain.run.signals import (
    ProgressSeen,
    ReportSeen,
    ResultSeen,
    Signal,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.run.usage import Usage
from subagents.domain.run.worker_output import (
    ApiError,
    ContextUse,
    LineType,
    OutputItem,
)
from subagents.runtimes.output.worker_events import (
    LINE_BYTES_MAX,
    event_of,
    output_item_of,
    signal_of,
)

EVENTS: list[tuple[str, Signal]] = [
    ('{"subagents":"result","text":"42"}', ResultSeen(key="k", text="42")),
    (
        '  {"text":"no","isError":true,"error":"quota","subagents":"result"} ',
        ResultSeen(key="k", text="no", is_error=True, error="quota"),
    ),
    ('{"subagents":"result","text":"a\\u0000b"}', ResultSeen(key="k", text="a\ufffdb")),
    ('{"subagents":"result","text":"a\\\\u0000b"}', ResultSeen(key="k", text="a\\u0000b")),
    (
        (
            '{"subagents":"report","summary":"s","status":"partial","confidence":"low",'
            '"artifacts":[{"path":"a.json","description":"d"}],"blockers":["b"],"warnings":["w"]}'
        ),
        ReportSeen(
            key="k",
            report=Report(
                summary="s",
                status=ReportStatus.PARTIAL,
                confidence=Confidence.LOW,
                artifacts=(ReportedArtifact(path="a.json", description="d"),),
                blockers=("b",),
                warnings=("w",),
            ),
        ),
    ),
    ('{"subagents":"report","summary":"s"}', ReportSeen(key="k", report=Report(summary="s"))),
    (
        '{"subagents":"usage","tokensIn":10,"tokensOut":2,"costUsd":0.5}',
        UsageSeen(key="k", usage=Usage(tokens_in=10, tokens_out=2, cost_usd=0.5)),
    ),
    (
        '{"subagents":"usage","tokensIn":10,"tokensCacheRead":7,"tokensCacheWrite":2}',
        UsageSeen(key="k", usage=Usage(tokens_in=10, tokens_cache_read=7, tokens_cache_write=2)),
    ),
    ('{"subagents":"usage","tokensIn":10}', UsageSeen(key="k", usage=Usage(tokens_in=10))),
    (
        '{"subagents":"progress","phase":"reading","percentComplete":40}',
        ProgressSeen(key="k", progress=Progress(phase="reading", percent_complete=40.0)),
    ),
    ('{"subagents":"tool","name":"Bash","input":{"x":1}}', ToolSeen(key="k", name="Bash")),
]

PLAIN = [
    b"",
    b"plain text",
    b'say "subagents" to it',
    b'{"other":1}',
    b'{"subagents":"unheard-of","text":"x"}',
    b'{"subagents":1}',
    b'{"subagents":"result"}',
    b'{"subagents":"result","text":5}',
    b'{"subagents":"result","text":"cut',
    b'["subagents"]',
    b'{"subagents":"result","text":"\xff\xfe"}',
    b'{"subagents":"result","text":"a\x00b"}',
    b'{"subagents":"report","summary":"s","status":"finished"}',
    b'{"subagents":"usage","tokensIn":-1}',
    b'{"subagents":"usage","costUsd":1e999}',
    b'{"subagents":"progress","phase":"p","percentComplete":101}',
    b'{"subagents":"tool","name":"x","in":' + b"[" * 500_000 + b"]" * 500_000 + b"}",
    b'{"subagents":"result","text":"' + b"x" * LINE_BYTES_MAX + b'"}',
]


@pytest.mark.requirement("runtimes:structured-events")
@pytest.mark.parametrize(("line", "signal"), EVENTS)
def test_a_structured_line_is_the_signal_it_names(line: str, signal: Signal) -> None:
    assert signal_of(event_of(line.encode()), key="k") == signal


@pytest.mark.requirement("runtimes:malformed-events-are-text")
@pytest.mark.parametrize("line", PLAIN, ids=lambda line: line[:50].decode("latin-1"))
def test_a_malformed_or_unknown_line_is_plain_text(line: bytes) -> None:
    assert event_of(line) is None
    assert signal_of(event_of(line), key="k") is None


SAID: list[tuple[str, OutputItem]] = [
    ('"text","text":"two\\nlines\\n"', OutputItem(type=LineType.TEXT, text="two\nlines")),
    ('"text","text":"\\u001b[1mbold\\u001b[0m"', OutputItem(type=LineType.TEXT, text="bold")),
    ('"thinking","text":"hm"', OutputItem(type=LineType.THINKING, text="hm")),
    ('"system","text":"compacted"', OutputItem(type=LineType.SYSTEM, text="compacted")),
    ('"error","text":"no file"', OutputItem(type=LineType.ERROR, text="no file")),
    ('"error","text":"no","api":"yes"', OutputItem(type=LineType.ERROR, text="no")),
    (
        '"error","text":"rate limited","api":true,"retry":"2/5"',
        OutputItem(
            type=LineType.ERROR,
            text="rate limited",
            api_error=ApiError(message="rate limited", retry="2/5"),
        ),
    ),
    (
        '"error","text":"refused","api":true,"retry":3',
        OutputItem(
            type=LineType.ERROR,
            text="refused",
            api_error=ApiError(message="refused", retry="3"),
        ),
    ),
    (
        '"context","tokens":150000,"window":200000,"model":"m"',
        OutputItem(
            type=LineType.SYSTEM,
            context=ContextUse(tokens=150_000, window=200_000, model="m"),
        ),
    ),
    (
        '"context","tokens":1,"window":-4,"model":5',
        OutputItem(type=LineType.SYSTEM, context=ContextUse(tokens=1)),
    ),
    ('"result","text":"42"', OutputItem(type=LineType.TEXT, text="42")),
    ('"result","text":"so far","isError":true', OutputItem(type=LineType.ERROR, text="so far")),
    (
        '"result","text":"","isError":true,"error":"quota"',
        OutputItem(type=LineType.ERROR, text="quota"),
    ),
]


@pytest.mark.requirement("transcript:structured-events-are-said")
@pytest.mark.parametrize(("form", "output"), SAID)
def test_a_structured_line_says_what_it_names(form: str, output: OutputItem) -> None:
    event = event_of(f'{{"subagents":{form}}}'.encode())
    assert event is not None
    assert output_item_of(event) == output


@pytest.mark.requirement("transcript:structured-events-are-said")
@pytest.mark.parametrize(
    "form",
    ['"progress","phase":"p"', '"usage","tokensIn":1', '"report","summary":"s"'],
)
def test_what_the_journal_tells_has_no_second_line_and_still_counts_as_activity(form: str) -> None:
    event = event_of(f'{{"subagents":{form}}}'.encode())
    assert event is not None
    assert output_item_of(event) == OutputItem(type=LineType.SYSTEM)


@pytest.mark.requirement("runtimes:one-use-one-signal")
@pytest.mark.parametrize(
    ("status", "is_signal"),
    [('"started"', False), ('"ended"', True), ("null", True), ('"odd"', True), ("7", True)],
)
def test_a_tool_is_one_signal_when_it_ends(status: str, *, is_signal: bool) -> None:
    line = f'{{"subagents":"tool","name":"Bash","id":"c1","status":{status}}}'
    expected = ToolSeen(key="k", name="Bash") if is_signal else None
    assert signal_of(event_of(line.encode()), key="k") == expected


@pytest.mark.requirement("transcript:structured-events-are-said")
@pytest.mark.parametrize(
    "odd",
    ['"id":{}', '"input":5', '"output":[1]', '"exitCode":"1"', '"isError":1', '"durationMs":-1'],
)
def test_an_odd_field_of_a_tool_is_taken_for_absent(odd: str) -> None:
    event = event_of(f'{{"subagents":"tool","name":"Bash",{odd}}}'.encode())
    assert event is not None
    output = output_item_of(event)
    assert output.tool is not None
    assert (output.tool.call_id, output.tool.exit_code, output.tool.is_error) == (None, None, False)
    assert output.tool.duration_ms is None
    assert output.text.startswith("✅ Bash")
