"""What is shown is harmless, plain where nobody looks, and says how a run ended."""

import msgspec
import pytest

from subagents.api.wire.message_answers import Progress
from subagents.api.wire.run_answers import (
    Check,
    Outcome,
    RunNode,
    RunResult,
    RunRow,
    RunState,
    Verification,
    WaitError,
    WaitResult,
)
from subagents.api.wire.usage_answers import Usage
from subagents.cli import output
from subagents.cli.ending import exit_code
from subagents.cli.show import render
from subagents.errors import UsageError
from subagents.text import harmless


@pytest.mark.requirement("cli:plain")
def test_a_table_without_a_terminal_is_aligned_columns(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["run", "label"], [["r-1", "日本"], ["r-222", "a\nb"]])
    assert capsys.readouterr().out == "RUN    LABEL\nr-1    日本\nr-222  a b\n"


@pytest.mark.requirement("cli:colour")
@pytest.mark.parametrize(
    ("flag", "environ", "is_coloured"),
    [
        ("auto", {}, False),
        ("auto", {"FORCE_COLOR": "1"}, True),
        ("auto", {"FORCE_COLOR": "0"}, False),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_a_table_in_a_pipe_is_coloured_when_asked_for_and_aligned_all_the_same(
    flag: str,
    environ: dict[str, str],
    is_coloured: bool,  # noqa: FBT001  a row of the table above
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    output.set_colour(flag)
    try:
        output.table(["run", "state", "x"], [["r-1", "ok", "y"]], styles={1: 1})
    finally:
        output.set_colour("auto")
    state = "\x1b[32mok\x1b[0m" if is_coloured else "ok"
    assert capsys.readouterr().out == f"RUN  STATE  X\nr-1  {state}     y\n"


@pytest.mark.requirement("cli:plain")
def test_a_long_cell_is_cut_with_a_sign(capsys: pytest.CaptureFixture[str]) -> None:
    """The last one has more room: nothing stands behind it."""
    output.table(["x", "y"], [["x" * 300, "y" * 400]])
    assert capsys.readouterr().out.splitlines()[1] == f"{'x' * 71}…  {'y' * 299}…"


@pytest.mark.requirement("cli:json", "cli:harmless")
def test_json_escapes_c1_and_bidirectional_controls_and_means_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "a\x9b31m\x85\x7f\u202eb\u2066\u200f\u061c\u2028 é日"
    output.document({"text": text})
    shown = capsys.readouterr().out
    assert msgspec.json.decode(shown) == {"text": text}
    assert harmless(shown) == shown
    assert shown.count("\\u") == 8
    assert "é日" in shown


@pytest.mark.requirement("cli:json")
def test_a_document_in_a_pipe_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.document({"a": [1, None], "b": "é\n"})
    assert capsys.readouterr().out == '{"a":[1,null],"b":"é\\n"}\n'


def node(label: str, *children: RunNode, **fields: object) -> RunNode:
    values = {"run_id": f"r-{label}", "agent_id": "command", "phase": "running", **fields}
    return RunNode(label=label, children=list(children), **values)  # type: ignore[arg-type]


@pytest.mark.requirement("cli:tree")
def test_a_tree_shows_each_run_below_the_one_that_spawned_it() -> None:
    root = node("root", node("a", node("deep")), node("b"), elapsed_ms=1200)
    rows = render.tree_rows([root])
    assert [each.indent + each.text.split()[0] for each in rows] == [
        *("root", "├ a", "│ └ deep", "└ b"),
    ]
    assert {len(each.indent) + each.text.index("r-") for each in rows} == {10}


@pytest.mark.requirement("cli:tree")
def test_on_a_narrow_terminal_labels_give_way_and_ids_stay_whole() -> None:
    label = "rewrite the whole of the front page of the shop"
    (row,) = render.tree_rows([node(label, run_id="r-0123456789")], 80)
    (wide,) = render.tree_rows([node(label, run_id="r-0123456789")], 200)
    assert row.text.startswith("rewrite the whole of the front…   r-0123456789  working  command")
    assert len(row.text) + 2 <= 80
    assert wide.text.startswith("rewrite the whole of the front page of…  r-0123456789")


@pytest.mark.requirement("cli:narrow-terminals")
def test_what_a_run_says_stands_whole_below_it_where_its_line_would_be_cut() -> None:
    asked = "asks: shall I drop the column that three reports still read?"
    waits = node("migrate the schema", run_id="r-0123456789", pending_request_count=1, why=asked)
    (row,) = render.tree_rows([waits], 40)
    first, *below = row.lines(40)
    assert first.startswith("? migrate the…  r-0123456789  needs you")
    assert " ".join(each.strip() for each in below) == asked
    assert max(map(len, (first, *below))) <= 40
    assert row.lines(200) == row.lines(None)
    assert row.lines(200)[0].endswith(f"command  {asked}")


@pytest.mark.requirement("cli:columns")
def test_on_a_terminal_words_go_on_behind_the_head_of_their_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output.hanging("  +1s  ", "one two three four five six seven")
    monkeypatch.setattr(output, "columns", lambda: 30)
    output.hanging("  +1s  ", "one two three four five six seven")
    assert capsys.readouterr().out.splitlines() == [
        "  +1s  one two three four five six seven",
        "  +1s  one two three four five",
        "       six seven",
    ]


@pytest.mark.requirement("cli:columns")
def test_why_something_is_as_it_is_stands_whole_below_a_row_that_is_too_narrow_for_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [["r-1", "failed", "the whole disk is full"], ["r-2", "failed", "exit 1"]]
    for width in (31, 26):
        monkeypatch.setattr(output, "columns", lambda width=width: width)
        output.table(["run", "state", "now"], rows, why=(2,))
    assert capsys.readouterr().out.splitlines() == [
        *("RUN  STATE   NOW", "r-1  failed", "    the whole disk is full", "r-2  failed  exit 1"),
        *("RUN  STATE", "r-1  failed", "    the whole disk is full", "r-2  failed", "    exit 1"),
    ]


@pytest.mark.requirement("cli:columns")
def test_a_mark_before_the_head_of_a_line_counts_as_part_of_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "columns", lambda: 33)
    output.hanging("  ", "report: Sort the report by-size or by-name?", mark="question", word="red")
    assert capsys.readouterr().out.splitlines() == [
        "question  report: Sort the report",
        "          by-size or by-name?",
    ]


@pytest.mark.requirement("cli:columns")
@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("abcdef", None, "abcdef"),
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("ab cdef", 4, "ab…"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
    ],
)
def test_what_is_too_long_for_its_room_ends_with_a_mark(
    text: str, room: int | None, shown: str
) -> None:
    assert output.within(text, room) == shown


STATES = [
    (node("x", elapsed_ms=2000), "working  command  2s"),
    (
        node("x", latest_progress=Progress(phase="reading", percent_complete=40)),
        "working  command  40% reading",
    ),
    (
        node("x", phase="queued", why="lane heavy is full", elapsed_ms=10),
        "waiting  command  lane heavy is full",
    ),
    (
        node("x", pending_request_count=1, why="asks: sure?"),
        "needs you  command  asks: sure?",
    ),
    (
        node("x", outcome=Outcome(status="ok"), verification="passed", elapsed_ms=1000),
        "ok  command  1s  verified",
    ),
    (
        node("x", outcome=Outcome(status="error", reason="verification_failed", error="o: 0 B")),
        "failed  command  o: 0 B",
    ),
]


@pytest.mark.requirement("cli:tree")
@pytest.mark.parametrize(("each", "text"), STATES, ids=[text for _, text in STATES])
def test_a_line_of_the_tree_says_what_the_run_does_or_why_it_does_not(
    each: RunNode, text: str
) -> None:
    assert "  ".join(filter(None, (render.node_text(each), render.node_said(each)))) == text


@pytest.mark.requirement("cli:plain")
def test_the_last_line_says_how_it_ended_and_what_it_took() -> None:
    item = RunResult(
        run_id="r-1",
        label="tests",
        outcome=Outcome(status="error", reason="verification_failed", error="o.json: empty"),
        verification=Verification(
            status="failed",
            checks=[Check(target="o.json", reason="empty"), Check(passed=True)],
        ),
        usage=Usage(tokens=3_200, tokens_in=3_000, tokens_out=200),
    )
    text = render.summary(item, elapsed_ms=1500)
    said = "failed (its contract is not met) · 1.5s · verified 1/2 · 3.2k tokens"
    assert text == f"tests: {said} · r-1"
    assert render.error_lines(item.outcome, item.verification) == ["o.json: empty"]
    stopped = Outcome(status="error", error="stopped after attempt 2: 1 retry used: o.json: empty")
    assert render.error_lines(stopped, item.verification) == [
        "stopped after attempt 2: 1 retry used",
        "o.json: empty",
    ]


OK = RunResult(run_id="r-1", outcome=Outcome(status="ok"))
PARTIAL = RunResult(run_id="r-2", outcome=Outcome(status="partial", reason="reported_partial"))
LOST = RunResult(run_id="r-3", outcome=Outcome(status="lost"))
UNMET = RunResult(run_id="r-4", outcome=Outcome(status="error", reason="verification_failed"))
OPEN = RunState(run_id="r-5")
UNKNOWN = WaitError(run_id="x", error="no run x")
EXITS = [
    (WaitResult(), 0),
    (WaitResult(completed=[OK]), 0),
    (WaitResult(completed=[OK, PARTIAL]), 5),
    (WaitResult(completed=[LOST]), 5),
    (WaitResult(completed=[OK, UNMET]), 6),
    (WaitResult(completed=[UNMET, LOST]), 5),
    (WaitResult(completed=[LOST], pending=[OPEN]), 8),
    (WaitResult(completed=[OK], pending=[OPEN], errors=[UNKNOWN]), 3),
]


@pytest.mark.requirement("cli:exit-codes")
@pytest.mark.parametrize(("waited", "code"), EXITS)
def test_the_exit_code_tells_the_worst_of_several_runs(waited: WaitResult, code: int) -> None:
    assert exit_code(waited) == code


@pytest.mark.requirement("cli:tree")
def test_a_row_is_its_outcome_once_there_is_one() -> None:
    assert RunRow(run_id="r", phase="running").shown_state == "running"
    assert RunRow(run_id="r", phase="running", pending_request_count=1).shown_state == "blocked"
    assert RunRow(run_id="r", phase="completed", outcome=Outcome(status="ok")).shown_state == "ok"
    unmet = Outcome(status="error", reason="verification_failed")
    assert RunRow(run_id="r", outcome=unmet).shown_state == "failed"


@pytest.mark.requirement("cli:confirm")
def test_without_a_terminal_nothing_destructive_happens_unasked() -> None:
    with pytest.raises(UsageError, match="Cancel 3 runs") as caught:
        output.is_confirmed("Cancel 3 runs?", yes=False)
    assert caught.value.hint == "confirm with --yes"
    assert output.is_confirmed("Cancel 3 runs?", yes=True)


@pytest.mark.requirement("cli:narrow-terminals")
@pytest.mark.parametrize(
    ("room", "given"),
    [
        (200, [12, 41, 7, 30]),  # as each would like
        (80, [12, 34, 7, 21]),  # both a part of what there is
        (60, [12, 21, 7, 14]),
        (50, [12, 27, 7, 0]),  # nothing of the last could be read
        (30, [12, 16, 7, 0]),  # what is never cut stays whole
    ],
)
def test_only_the_columns_that_may_be_cut_are_the_most_important_last(
    room: int, given: list[int]
) -> None:
    assert output.fitted([12, 41, 7, 30], (1, 3), room) == given


@pytest.mark.requirement("cli:narrow-terminals")
@pytest.mark.parametrize(
    ("widths", "room", "given"),
    [
        ([12, 7, 12, 0, 9], 44, [12, 7, 10, 0, 9]),  # what may be cut gives way
        ([12, 7, 12, 0, 9], 43, [12, 7, 10, 0, 0]),  # no further than it can be read
        ([12, 7, 12, 0, 0], 30, [12, 7, 7, 0, 0]),  # but for the first two
        ([12, 1, 9, 0, 0], 5, [12, 1, 1, 0, 0]),
    ],
)
def test_what_may_not_be_cut_is_whole_or_left_out(
    widths: list[int], room: int, given: list[int]
) -> None:
    assert output.squeezed(widths, [2], room) == given


@pytest.mark.requirement("cli:few-lines")
@pytest.mark.parametrize(
    ("said", "lines"),
    [
        ([], []),
        ([("a", "hot")], ["warning: a: hot"]),
        ([("a", "hot"), ("b", "hot")], ["warning: a (and 1 other): hot"]),
        (
            [("a", "hot"), ("b", "wet"), ("c", "hot"), ("d", "hot")],
            ["warning: a (and 2 others): hot", "warning: b: wet"],
        ),
        ([("a", "hot"), ("a", "wet")], ["warning: a: hot", "warning: a: wet"]),
    ],
)
def test_the_same_warning_of_many_runs_is_one_line(
    capsys: pytest.CaptureFixture[str], said: list[tuple[str, str]], lines: list[str]
) -> None:
    output.warnings(said)
    assert capsys.readouterr().err.splitlines() == lines


@pytest.mark.requirement("cli:plain-words")
@pytest.mark.parametrize(
    ("said", "spoken"),
    [
        ("retryDelay (--retry-delay) has no effect", "--retry-delay has no effect"),
        ("unchanged: fresh: false (--verify-existing)", "unchanged: --verify-existing"),
        (
            "once with onFailure: retry_once (--on-failure retry_once)",
            "once with --on-failure retry_once",
        ),
        ("only maxTokens can be kept", "only --max-tokens can be kept"),
        ("at its deadline (runTimeoutSeconds)", "at its deadline (--timeout)"),
        (
            "sessions_spawn is not allowed at this depth",
            "subagents spawn is not allowed at this depth",
        ),
        (
            'no run "maxTokens"; lines of JSON {"tokensIn":1}',
            'no run "maxTokens"; lines of JSON {"tokensIn":1}',
        ),
    ],
)
def test_people_read_flags_where_the_api_has_names(said: str, spoken: str) -> None:
    assert output.spoken(said) == spoken
