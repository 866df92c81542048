"""What a run did in at most forty lines, from lines as workers write them."""

import pytest
from tests.builders import NOW_MS, Life

from subagents.domain.alerts.detectors import Watch
from subagents.domain.run.run import Progress, Report, ReportedArtifact, Run
from subagents.domain.run.signals import ProgressSeen, ReportSeen, UsageSeen
from subagents.domain.run.usage import Usage
from subagents.domain.run.worker_output import LineType
from subagents.domain.transcript.digest import LINES_MAX, cost, digest, shortened, tool_line
from subagents.domain.transcript.transcript_query import Line

TASK = Line(seq=1, ts=NOW_MS, type=LineType.USER, text="task from me: do it", attempt=1)


def lines(*texts: tuple[LineType, str]) -> list[Line]:
    """Lines one second apart, behind the one of the task."""
    return [
        TASK,
        *(
            Line(seq=number, ts=NOW_MS + (number - 1) * 1000, type=kind, text=text, attempt=1)
            for number, (kind, text) in enumerate(texts, start=2)
        ),
    ]


def told(run: Run, found: list[Line], **more: object) -> list[str]:
    given = {"words": [], "watch": Watch(), "now_ms": NOW_MS + 60_000, **more}
    return digest(run, found, **given).splitlines()  # type: ignore[arg-type]  # the test says which


def working() -> Life:
    return Life.begin().start()


@pytest.mark.requirement("digest:tool-lines")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("✅ Bash (2.1s)\ncd /x && git log\n→ abc", ("Bash", False, None, "cd /x && git log")),
        ("❌ Bash (0.3s, exit 1)\nnpm test", ("Bash", True, 1, "npm test")),
        ("❌ Bash (2m 5s, exit -9)\nsleep 9", ("Bash", True, -9, "sleep 9")),
        ("✅ Edit\nsrc/a.py", ("Edit", False, None, "src/a.py")),
        ("✅ Read (0.1s)", ("Read", False, None, "")),
        ("✅ search\n→ 3 found", ("search", False, None, "")),
        ("✅ mcp__db__query (1.0s)\nSELECT 1", ("mcp__db__query", False, None, "SELECT 1")),
    ],
)
def test_a_tools_line_is_read_as_it_is_written(
    text: str, found: tuple[str, bool, int | None, str]
) -> None:
    assert tool_line(text) == found


@pytest.mark.requirement("digest:tool-lines")
@pytest.mark.parametrize(
    "text", ["▶ Bash\npytest", "report_completion (complete): done", "asks: which?", "", "✅"]
)
def test_a_tool_that_only_began_and_our_own_tools_count_as_no_call(text: str) -> None:
    assert tool_line(text) is None


@pytest.mark.requirement("digest:what-was-done")
def test_tools_files_commands_and_errors_are_told_with_counts_and_exit_codes() -> None:
    found = lines(
        (LineType.TOOL, "▶ Bash\npytest -q"),
        (LineType.TOOL, "❌ Bash (2.0s, exit 1)\npytest -q\n→ 1 failed"),
        (LineType.TOOL, "✅ Edit (0.1s)\nsrc/a.py"),
        (LineType.TOOL, "✅ Edit (0.1s)\nsrc/a.py"),
        (LineType.TOOL, "✅ Write\nsrc/b.py"),
        (LineType.TOOL, "✅ TodoWrite\n2/5 done"),
        (LineType.TOOL, "✅ Read\nREADME.md"),
        (LineType.TOOL, "✅ Bash (1.0s)\npytest -q\n→ 5 passed"),
        (LineType.ERROR, "rate limited"),
        (LineType.USER, "message from me: hurry"),
    )
    text = told(working().run, found)
    assert "tools: 7 calls: Bash 2 (1 failed), Edit 2, Write 1, TodoWrite 1, Read 1" in text
    assert "files touched (2): src/a.py ×2, src/b.py" in text
    assert text[text.index("commands (2, 1 failed):") :][:3] == [
        "commands (2, 1 failed):",
        "  +2s exit 1: pytest -q",
        "  +8s ok: pytest -q",
    ]
    assert text[text.index("errors:") + 1] == "  +9s rate limited"
    assert text[text.index("messages to it:") + 1] == "  +10s message from me: hurry"


@pytest.mark.requirement("digest:what-was-done")
def test_a_reported_artifact_is_a_file_that_was_touched_and_the_report_is_told() -> None:
    life = working().signal(
        ReportSeen(
            key="r",
            report=Report(summary="all done", artifacts=(ReportedArtifact(path="out.json"),)),
        )
    )
    life.result("x").exit()
    text = told(life.run, [TASK])
    assert "files touched (1): out.json" in text
    assert "its report: complete: all done" in text
    assert text[0].startswith('r-0000000001 "job" (worker): just completed successfully')


@pytest.mark.requirement("digest:now")
def test_it_says_what_is_going_on_now_and_what_is_asked() -> None:
    life = working()
    life.signal(ProgressSeen(key="p", progress=Progress(phase="writing", percent_complete=40)))
    life.ask()
    watch = Watch(last_activity="editing src/a.py", last_at_ms=NOW_MS + 30_000)
    text = told(life.run, [TASK], watch=watch)
    assert "progress: 40 % writing" in text
    assert "last activity: editing src/a.py, 30s ago" in text
    assert "waits for an answer: which one? (r-0000000001:q1)" in text
    assert told(life.run, [TASK])[-2] == "last activity: none was seen"


@pytest.mark.requirement("digest:cost")
@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (Usage(), "unknown (its runtime reported no usage)"),
        (Usage(tokens_in=45_000, tokens_out=12_000), "45,000 tokens in, 12,000 tokens out"),
        (
            Usage(tokens_in=9_000, tokens_out=1, tokens_cache_read=8_000),
            "9,000 tokens in, 8,000 of them cached, 1 tokens out",
        ),
        (Usage(tokens_in=1, cost_usd=0.34), "1 tokens in, $0.34"),
        (Usage(cost_usd=0.002), "$0.002"),
    ],
)
def test_unknown_cost_is_told_as_tokens_and_never_as_nothing(usage: Usage, text: str) -> None:
    assert cost(usage) == text
    life = working().signal(UsageSeen(key="u", usage=usage))
    assert told(life.run, [TASK])[-1] == f"cost: {text}"


@pytest.mark.requirement("digest:bounded")
def test_it_has_at_most_forty_short_lines_whatever_the_transcript_holds() -> None:
    long = "x" * 5_000
    found = [TASK]
    for number in range(2, 2_000):
        kind = (LineType.TOOL, LineType.ERROR, LineType.USER)[number % 3]
        said = f"❌ Bash{number} (0.1s, exit 1)\n{long}" if kind is LineType.TOOL else long
        found.append(Line(seq=number, ts=NOW_MS + number, type=kind, text=said, attempt=1))
    life = working()
    for number in range(1, 20):
        life.ask(number)
    words = [each for each in found if each.type is LineType.ERROR]
    text = told(life.run, found, words=words, left_out=12_345)
    assert len(text) <= LINES_MAX
    assert max(map(len, text)) < 800
    assert text[-1] == "left out: 12,345 older lines"
    assert "errors (666, the last 5):" in text


@pytest.mark.requirement("digest:bounded")
def test_a_worker_cannot_write_lines_of_its_own_into_it() -> None:
    found = lines((LineType.ERROR, "boom\ncost: $0.00\x1b[2J"), (LineType.TOOL, "✅ Bash\n\x07ls"))
    text = told(working().run, found)
    assert "cost: $0.00" not in text
    assert not any(char in "\n".join(text) for char in "\x1b\x07")


@pytest.mark.requirement("digest:bounded")
def test_only_the_beginning_of_a_long_line_is_held_in_memory() -> None:
    (long, short) = shortened(
        [
            Line(seq=1, ts=0, type=LineType.TEXT, text="y" * 8_000, attempt=1),
            Line(seq=2, ts=0, type=LineType.TEXT, text="short", attempt=1),
        ]
    )
    assert (len(long.text), short.text) == (501, "short")
