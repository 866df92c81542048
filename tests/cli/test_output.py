"""What is shown is harmless, plain where nobody looks, and says how a run ended."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.cli import output
from subagents.cli.runs.follow import exit_code
from subagents.cli.show import render
from subagents.cli.show.views import (
    CheckView,
    ErrorView,
    Item,
    Node,
    OutcomeView,
    PendingView,
    ProgressView,
    Row,
    UsageView,
    VerificationView,
    Waited,
)
from subagents.errors import UsageError

HARMLESS = {
    "plain\ttext\n": "plain\ttext\n",
    "\x1b[31mred\x1b[0m": "red",
    "\x1b]0;title\x07x": "]0;titlex",
    "\x1b]52;c;aGk=\x1b\\": "]52;c;aGk=\\",
    "over\rwrite": "overwrite",
    "\x9b2J": "2J",
    "\u202eevil": "evil",
    "\x1b": "",
    "\x1b[?25l": "",
}


@pytest.mark.requirement("cli:harmless")
@pytest.mark.parametrize(("text", "shown"), HARMLESS.items(), ids=map(repr, HARMLESS))
def test_a_workers_text_cannot_drive_the_terminal(text: str, shown: str) -> None:
    assert output.harmless(text) == shown


@pytest.mark.requirement("cli:harmless")
@given(st.text(alphabet=st.sampled_from("\x1b[]0;mHJ\x07\r\n\t\x9bab?"), max_size=40))
def test_no_escape_survives_whatever_is_mixed(text: str) -> None:
    assert not set(output.harmless(text)) & set("\x1b\x9b\x07\r")


@pytest.mark.requirement("cli:plain")
def test_a_table_without_a_terminal_is_aligned_columns(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["run", "label"], [["r-1", "日本"], ["r-222", "a\nb"]])
    assert capsys.readouterr().out == "RUN    LABEL\nr-1    日本\nr-222  a b\n"


@pytest.mark.requirement("cli:plain")
def test_a_long_cell_is_cut_with_a_sign(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["x"], [["y" * 200]])
    assert capsys.readouterr().out == f"X\n{'y' * 71}…\n"


@pytest.mark.requirement("cli:json")
def test_a_document_in_a_pipe_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.document({"a": [1, None], "b": "é\n"})
    assert capsys.readouterr().out == '{"a":[1,null],"b":"é\\n"}\n'


DURATIONS = {
    0: "0.0s",
    -5: "0.0s",
    420: "0.4s",
    9_940: "9.9s",
    9_990: "10s",
    59_700: "1m 00s",
    61_000: "1m 01s",
    3_599_600: "1h 00m",
    7_800_000: "2h 10m",
    200_000_000: "2d 7h",
}


@pytest.mark.requirement("cli:plain")
@pytest.mark.parametrize(("milliseconds", "text"), DURATIONS.items())
def test_times_are_shown_as_precisely_as_they_matter(milliseconds: int, text: str) -> None:
    assert render.duration(milliseconds) == text


def node(label: str, *children: Node, **fields: object) -> Node:
    values = {"run_id": f"r-{label}", "agent_id": "command", "phase": "running", **fields}
    return Node(label=label, children=list(children), **values)  # type: ignore[arg-type]


@pytest.mark.requirement("cli:tree")
def test_a_tree_shows_each_run_below_the_one_that_spawned_it() -> None:
    root = node("root", node("a", node("deep")), node("b"), elapsed_ms=1200)
    drawn = [f"{line.indent}{line.name}" for line in render.tree_lines(root)]
    assert drawn == ["root", "├ a", "│ └ deep", "└ b"]
    columns = {
        len(line.indent) + len(line.name) for line in render.aligned(render.tree_lines(root))
    }
    assert columns == {8}


STATES = [
    (node("x", elapsed_ms=2000), "command  running  2.0s"),
    (
        node("x", latest_progress=ProgressView(phase="reading", percent_complete=40)),
        "command  running  40% reading",
    ),
    (
        node("x", phase="queued", why="lane heavy is full", elapsed_ms=10),
        "command  queued  lane heavy is full",
    ),
    (
        node("x", pending_request_count=1, why="asks: sure?"),
        "command  blocked  asks: sure?",
    ),
    (
        node("x", outcome=OutcomeView(status="ok"), verification="passed", elapsed_ms=1000),
        "command  ok  1.0s  verified",
    ),
    (
        node(
            "x", outcome=OutcomeView(status="error", reason="verification_failed", error="o: 0 B")
        ),
        "command  verification failed  o: 0 B",
    ),
]


@pytest.mark.requirement("cli:tree")
@pytest.mark.parametrize(("each", "text"), STATES, ids=[text for _, text in STATES])
def test_a_line_of_the_tree_says_what_the_run_does_or_why_it_does_not(
    each: Node, text: str
) -> None:
    assert render.node_text(each) == text


@pytest.mark.requirement("cli:plain")
def test_the_last_line_says_how_it_ended_and_what_it_took() -> None:
    item = Item(
        run_id="r-1",
        label="tests",
        outcome=OutcomeView(status="error", reason="verification_failed", error="o.json: empty"),
        verification=VerificationView(
            status="failed",
            checks=[CheckView(target="o.json", reason="empty"), CheckView(passed=True)],
        ),
        usage=UsageView(tokens_in=3_000, tokens_out=200),
    )
    text = render.summary(item, elapsed_ms=1500)
    assert text == "tests: error (verification_failed) · 1.5s · verified 1/2 · 3.2k tokens · r-1"
    assert render.error_lines(item.outcome, item.verification) == ["o.json: empty"]


OK = Item(run_id="r-1", outcome=OutcomeView(status="ok"))
PARTIAL = Item(run_id="r-2", outcome=OutcomeView(status="partial", reason="reported_partial"))
LOST = Item(run_id="r-3", outcome=OutcomeView(status="lost"))
UNMET = Item(run_id="r-4", outcome=OutcomeView(status="error", reason="verification_failed"))
OPEN = PendingView(run_id="r-5")
UNKNOWN = ErrorView(run_id="x", error="no run x")
EXITS = [
    (Waited(), 0),
    (Waited(completed=[OK]), 0),
    (Waited(completed=[OK, PARTIAL]), 5),
    (Waited(completed=[LOST]), 5),
    (Waited(completed=[OK, UNMET]), 6),
    (Waited(completed=[UNMET, LOST]), 5),
    (Waited(completed=[LOST], pending=[OPEN]), 8),
    (Waited(completed=[OK], pending=[OPEN], errors=[UNKNOWN]), 3),
]


@pytest.mark.requirement("cli:exit-codes")
@pytest.mark.parametrize(("waited", "code"), EXITS)
def test_the_exit_code_tells_the_worst_of_several_runs(waited: Waited, code: int) -> None:
    assert exit_code(waited) == code


@pytest.mark.requirement("cli:tree")
def test_a_row_is_its_outcome_once_there_is_one() -> None:
    assert Row(run_id="r", phase="running").state == "running"
    assert Row(run_id="r", phase="running", pending_request_count=1).state == "blocked"
    assert Row(run_id="r", phase="completed", outcome=OutcomeView(status="ok")).state == "ok"
    unmet = OutcomeView(status="error", reason="verification_failed")
    assert Row(run_id="r", outcome=unmet).state == "failed"


@pytest.mark.requirement("cli:confirm")
def test_without_a_terminal_nothing_destructive_happens_unasked() -> None:
    with pytest.raises(UsageError, match="Cancel 3 runs") as caught:
        output.is_confirmed("Cancel 3 runs?", yes=False)
    assert caught.value.hint == "say so: --yes"
    assert output.is_confirmed("Cancel 3 runs?", yes=True)
