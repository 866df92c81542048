"""What a worker wrote becomes signals: the same ones whenever and however it is read."""

import asyncio
import os
from pathlib import Path

import pytest

from subagents.domain.model import (
    Confidence,
    Progress,
    Report,
    ReportedArtifact,
    ReportStatus,
    Usage,
)
from subagents.domain.signals import (
    ProgressSeen,
    ReportSeen,
    ResultSeen,
    Signal,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.values import AttemptId
from subagents.runtimes.output import (
    LINE_BYTES_MAX,
    POLL_MAX_S,
    RESULT_BYTES_MAX,
    Lines,
    Output,
    Poller,
    _Followed,
    clean,
    decode,
)

ATTEMPT = AttemptId("r-a#1")

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
    b'{"subagents":"text","text":"said in passing"}',
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
    b'{"subagents":"tool","name":"x","in":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"subagents":"result","text":"' + b"x" * LINE_BYTES_MAX + b'"}',
]


@pytest.mark.requirement("runtimes:structured-events")
@pytest.mark.parametrize(("line", "signal"), EVENTS)
def test_a_structured_line_is_the_signal_it_names(line: str, signal: Signal) -> None:
    assert decode(line.encode(), key="k") == signal


@pytest.mark.requirement("runtimes:malformed-events-are-text")
@pytest.mark.parametrize("line", PLAIN, ids=lambda line: line[:50].decode("latin-1"))
def test_a_malformed_or_unknown_line_is_plain_text(line: bytes) -> None:
    assert decode(line, key="k") is None


def _written(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "out"
    path.write_bytes(data)
    return str(path)


def _read(output: Output) -> list[tuple[Signal, int]]:
    found, more = output.read()
    while more:
        pairs, more = output.read()
        found += pairs
    return found + output.finish()


@pytest.mark.requirement("runtimes:signal-keys-repeat")
def test_reading_on_from_any_cursor_repeats_the_same_keys_and_nothing_else(tmp_path: Path) -> None:
    data = (
        b'noise\n{"subagents":"tool","name":"one"}\nmore\n'
        b'{"subagents":"tool","name":"two"}\n{"subagents":"result","text":"r"}\n'
        b'{"subagents":"tool","name":"unterminated"}'
    )
    path = _written(tmp_path, data)
    whole = _read(Output(path, ATTEMPT, cursor=0))

    assert [signal.key for signal, _ in whole] == [
        f"{ATTEMPT}:out:{data.index(needle)}"
        for needle in (
            b'{"subagents":"tool","name":"one"',
            b'{"subagents":"tool","name":"two"',
            b'{"subagents":"result"',
            b'{"subagents":"tool","name":"unt',
        )
    ]
    assert whole[-1][1] == len(data)
    for index, (_, cursor) in enumerate(whole):
        assert _read(Output(path, ATTEMPT, cursor=cursor)) == whole[index + 1 :]


@pytest.mark.requirement("runtimes:signal-keys-repeat")
def test_lines_are_found_however_the_bytes_are_cut_into_chunks() -> None:
    data = (
        b'x\n{"subagents":"tool"}\n\n {"subagents" y\nz "subagents"\n{} "subagents"\n{"subagents"'
    )
    whole = Lines(7)
    expected = whole.feed(data) + whole.finish()
    assert [line.data for line in expected] == [
        b'{"subagents":"tool"}',
        b' {"subagents" y',
        b'{} "subagents"',
        b'{"subagents"',
    ]
    for size in range(1, len(data)):
        lines = Lines(7)
        found = [
            line
            for start in range(0, len(data), size)
            for line in lines.feed(data[start : start + size])
        ]
        assert found + lines.finish() == expected
        assert lines.position == 7 + len(data)


@pytest.mark.requirement("runtimes:bounded-memory")
def test_a_line_over_a_mebibyte_is_skipped_and_the_next_one_is_read() -> None:
    lines = Lines(0)
    long = b'{"subagents":"result","text":"' + b"x" * LINE_BYTES_MAX
    found = [
        line
        for chunk in (long, long, b'"}\n{"subagents":"tool","name":"n"}\n')
        for line in lines.feed(chunk)
    ]

    assert [line.data for line in found] == [b'{"subagents":"tool","name":"n"}']
    assert found[0].start == 2 * len(long) + 3
    assert found[0].end == lines.position


@pytest.mark.requirement("runtimes:result-is-the-tail")
def test_without_a_result_event_the_result_is_the_last_32_kib_cut_between_characters(
    tmp_path: Path,
) -> None:
    text = "a" + "\N{SNOWMAN}" * 20_000 + "\n"
    path = _written(tmp_path, text.encode())
    [(signal, cursor)] = _read(Output(path, ATTEMPT, cursor=0))

    assert isinstance(signal, ResultSeen)
    assert signal.key == f"{ATTEMPT}:result"
    assert set(signal.text) == {"\N{SNOWMAN}"}
    assert RESULT_BYTES_MAX - 4 < len(signal.text.encode()) + 1 <= RESULT_BYTES_MAX
    assert signal.bytes_total == cursor == len(text.encode())


@pytest.mark.requirement("runtimes:result-is-the-tail")
def test_the_tail_shows_text_events_as_text_and_no_other_events(tmp_path: Path) -> None:
    path = _written(
        tmp_path,
        b'before\n{"subagents":"usage","tokensIn":1}\n{"subagents":"text","text":"said"}\n'
        b'{"subagents":"broken"}\nafter\n\n',
    )
    result = _read(Output(path, ATTEMPT, cursor=0))[-1][0]

    assert isinstance(result, ResultSeen)
    assert result.text == 'before\nsaid\n{"subagents":"broken"}\nafter'
    assert result.bytes_total == 0


@pytest.mark.requirement("runtimes:result-event-beats-tail")
@pytest.mark.parametrize("ending", [b"\n", b""], ids=["terminated", "unterminated"])
def test_a_result_event_before_the_cursor_still_keeps_the_tail_from_being_the_result(
    tmp_path: Path, ending: bytes
) -> None:
    data = b'{"subagents":"result","text":"the answer"}' + ending
    path = _written(tmp_path, data)

    assert _read(Output(path, ATTEMPT, cursor=len(data))) == []


@pytest.mark.requirement("runtimes:broken-bytes")
def test_invalid_utf8_and_nul_are_replaced() -> None:
    assert clean(b"a\xffb\x00c\r\n\n") == "a\ufffdb\ufffdc\r"


@pytest.mark.requirement("runtimes:flood-is-coalesced")
def test_a_flood_of_progress_and_usage_yields_only_the_newest_of_a_turn(tmp_path: Path) -> None:
    lines = [
        f'{{"subagents":"progress","phase":"p{n}"}}\n{{"subagents":"usage","tokensIn":{n}}}\n'
        for n in range(10_000)
    ]
    path = _written(tmp_path, "".join(lines).encode() + b'{"subagents":"tool","name":"t"}\n')
    signals = [signal for signal, _ in _read(Output(path, ATTEMPT, cursor=0))]

    assert [type(each) for each in signals] == [ProgressSeen, UsageSeen, ToolSeen, ResultSeen]
    assert isinstance(signals[1], UsageSeen)
    assert signals[1].usage.tokens_in == 9_999


@pytest.mark.requirement("runtimes:idle-costs-nothing")
def test_200_quiet_files_wake_the_loop_at_most_four_times_a_second(tmp_path: Path) -> None:
    path = _written(tmp_path, b"quiet")
    files = [_Followed(path, asyncio.Event()) for _ in range(200)]
    for index, followed in enumerate(files):
        followed.due = index * 0.037  # they started at different times
    looks: list[float] = []
    now = 0.0
    while now < 40:
        now = min(each.due for each in files)
        looks.append(now)
        for each in files:
            if each.due <= now:
                each.look(now)
    steady = [at for at in looks if 30 <= at < 40]

    assert len(steady) <= 10 * 4
    assert all(each.due - now <= POLL_MAX_S * 1.5 for each in files)


@pytest.mark.requirement("runtimes:output-is-followed")
def test_growth_is_told_and_a_poller_without_files_keeps_no_timer(tmp_path: Path) -> None:
    path = tmp_path / "out"

    async def go() -> None:
        poller, news = Poller(), asyncio.Event()
        with poller.follow(str(path), news):
            path.write_bytes(b"x")
            await asyncio.wait_for(news.wait(), 10)
            news.clear()
            with path.open("ab") as file:
                os.write(file.fileno(), b"y")
            await asyncio.wait_for(news.wait(), 10)
        assert poller._timer is None

    asyncio.run(go())
