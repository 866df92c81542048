"""Commands that only look: plain text, and one JSON document."""

import re

import pytest
from tests.cli.cli_home import Home, gate, until

from subagents.api.wire.run_answers import RunPage, RunRow
from subagents.cli.show import run_list
from subagents.cli.show.search_query import say_hidden
from subagents.client.client import Client
from subagents.config.paths import Paths

LOOKS = [
    "list",
    "list phase:completed",
    "list tree:last",
    "tree",
    "tree last",
    "status last",
    "show last",
    "result last",
    "log last",
    "timeline last",
    "why last",
    "attention",
    "agents list",
    "agents show command",
    "agents suggest",
    "config show",
    "config validate",
    "config schema",
    "inbox --all",
    "up",
]


@pytest.fixture(scope="module")
def seen(shared: Home) -> Home:
    """The shared home with a run that ended."""
    shared.ok("run", "echo seen", "--label", "seen")
    return shared


def check_look(home: Home, line: str) -> None:
    """It is one JSON document, and also plain text."""
    done = home.ok(*line.split(), "--json")
    assert done.json
    assert done.out.count("\n") == 1
    plain = home.ok(*line.split())
    assert plain.out or "Nothing needs you" in plain.err
    assert "\x1b" not in plain.out + plain.err


@pytest.mark.requirement("cli:json")
@pytest.mark.parametrize("line", LOOKS)
def test_every_look_is_one_json_document_and_also_plain_text(seen: Home, line: str) -> None:
    check_look(seen, line)


@pytest.mark.requirement("cli:look:hidden")
def test_a_list_too_long_to_count_says_that_there_is_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [RunRow(run_id=f"r-{n}") for n in range(50)]
    for page in (
        RunPage(runs=rows, total=1_000, total_is_bound=True, hidden=1_000, hidden_is_bound=True),
        RunPage(runs=rows, total=72, offset=20, hidden=1),
        RunPage(runs=rows, total=70, offset=20),
    ):
        run_list._say_more(page)
        say_hidden(page)

    assert capsys.readouterr().err.splitlines() == [
        f"50 of more than 1,000 runs{run_list.MORE}",
        "more than 1000 archived runs not shown: --archived",
        f"2 more runs{run_list.MORE}",
        "1 archived run not shown: --archived",
    ]


@pytest.mark.requirement("cli:look:hidden")
def test_what_is_not_shown_is_counted_and_only_an_empty_database_has_no_runs(home: Home) -> None:
    start = "No runs. Start one"
    home.ok("up")
    assert start in home.ok("list", "--label", "x").err
    assert start in home.ok("list", "--tree").err

    home.environ["SUBAGENTS_AGENTS__DEFAULTS__SUBAGENTS__ARCHIVE_AFTER_MINUTES"] = "0"
    home.down()
    home.ok("run", "true", "--label", "read")
    unread = home.spawn("false", "--label", "unread")
    until(lambda: home.field(unread, "phase") == "completed", "it ended")
    # From the next millisecond on, what was read is archived.
    with Client(Paths.resolve(home.env()).socket) as client:
        until(lambda: client.post("/v1/sweep")["archived"], "one is archived")

    for command in ("list", "tree"):
        seen = home.ok(command)
        assert "unread" in seen.out
        assert "1 archived run not shown: --archived" in seen.err
        whole = home.ok(command, "--archived")
        assert "unread" in whole.out
        assert "not shown" not in whole.err
        assert len(whole.out.splitlines()) == len(seen.out.splitlines()) + 1
    assert "1 archived run not shown" in home.ok("list", "--label", "read").err
    assert "No run fits: subagents list" in home.ok("list", "--label", "nobody").err
    assert (
        "No tree fits: subagents list --tree" in home.ok("list", "--tree", "--session", "web").err
    )


@pytest.mark.requirement("cli:search")
def test_runs_are_found_by_what_a_person_remembers_of_them(shared: Home) -> None:
    place = shared.work / "remembered" / "deep"
    place.mkdir(parents=True)
    task = "echo Remembered words"
    flags = ("--label", "rem", "--tag", "left", "--tag", "right", "--cwd", str(place))
    shared.ok("run", task, *flags)
    run = shared.field("rem", "runId")
    working = shared.spawn(gate("remembered"), *flags[2:], "--label", "rem2")

    def ids(*line: str, command: str = "list", name: str = "runs") -> list[str]:
        return [row["runId"] for row in shared.ok(command, *line, "--json").rows(name)]

    both = [working, run]
    assert ids("--dir", str(place.parent)) == both
    assert ids(f"dir:{place}") == ids("tag:left") == ids("--tag", "left", "--tag", "right") == both
    assert ids("tag:left", "--outcome", "ok") == ids("--text", "REMEMBERED words") == [run]
    assert ids("tag:left", "--since", "2099-01-01") == ids("tag:left", "--until", "1h") == []
    assert ids("tag:left", "--session", "nobody") == []
    assert ids("tag:left", "--mine") == both
    assert ids("--tag", "left", "--dir", str(place), command="tree", name="roots") == both[::-1]
    assert ids("--tag", "left", command="status") == [working]
    assert working in shared.ok("list", "--now").out
    assert "No active runs" in shared.ok("list", "--now", "--text", "nobody wrote this").err
    assert ids("--once", "--tag", "left", command="watch") == [working]
    shared.ok("cancel", "tag:right", "--yes")
    shared.cli("wait", working)
    assert ids("tag:right", "--outcome", "cancelled") == [working]
    assert ids("tag:right", "--state", "cancelled") == [working]
    assert ids(str(working), str(run)) == [working, run]
    shown = shared.ok("list", "--state", "ok,cancelled", "--tag", "left").out.splitlines()
    assert [line.split()[:2] for line in shown[1:]] == [[working, "cancelled"], [run, "ok"]]


@pytest.mark.requirement("cli:search")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("list --mine --session x", "--mine and --session exclude each other"),
        ("list seen --roots", "--roots is about a search"),
        ("list tag:", "tag: needs a name: tag:NAME"),
        ("status seen --tag x", "name runs or search for them, not both"),
        ("watch seen --tag x", "name runs or search for them, not both"),
        ("tree seen --tag x", "name runs or search for them, not both"),
        ("list --outcome good", "outcome must be"),
        ("list --since soon", "--since must be today, yesterday, a duration"),
        ("list --until soon", "--until must be today"),
        ("stats --since soon", "--since must be today"),
        ("stats --attempts --since 2020-01-01", "--since with --attempts must be one of the last"),
        ("stats --attempts --since today --days 2", "--days and --since: give one of them"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(seen: Home, line: str, said: str) -> None:
    done = seen.cli(*line.split())
    assert done.code == 2
    assert said in done.err


@pytest.mark.requirement("cli:look")
def test_what_a_run_did_can_be_read_step_by_step(shared: Home) -> None:
    run = shared.spawn("echo out; echo err >&2; exit 1", "--retry", "1", "--retry-delay", "10ms")
    shared.cli("wait", run)
    said = shared.ok("log", run, "--type", "text").out.splitlines()
    assert sorted(line.split()[1] for line in said) == ["err", "err", "out", "out"]
    assert len(shared.ok("log", run, "--type", "text", "--attempt", "1").out.splitlines()) == 2
    assert shared.ok("result", run).out == "out\n"
    timeline = shared.ok("why", "--verbose", run).out
    assert "Spawned" in timeline.splitlines()[0]
    assert "+0.000s" in timeline.splitlines()[0]
    assert "RetryDue" in timeline or "retry" in timeline.lower()
    told = [line.split(maxsplit=1)[1] for line in shared.ok("why", run).out.splitlines()[1:]]
    assert told == [
        'spawned by main for agent "command"',
        "retry 1 of 1 due in 10ms because: exit code 1: err",
        "failed: exit code 1: err",
        "its result was fetched",
    ]


@pytest.mark.requirement("cli:look")
def test_a_long_story_is_told_in_eight_lines(shared: Home) -> None:
    run = shared.spawn("exit 3", "--retry", "7", "--retry-delay", "1ms", "--backoff", "fixed")
    shared.cli("wait", run)
    first, *told = shared.ok("why", run).out.splitlines()
    assert first.startswith(f"exit 3 ({run}): failed: exit code 3")
    assert len(told) == 7
    assert re.search(r"… +\d+ more: subagents why -v r-", told[2])
    assert told[-2].endswith("failed: exit code 3")


@pytest.mark.requirement("cli:look")
def test_a_log_can_be_followed_over_a_retry_to_the_end(shared: Home) -> None:
    task = f"echo one; {gate('followed')}; echo two; test -e again || {{ touch again; exit 1; }}"
    run = shared.spawn(task, "--retry", "1", "--retry-delay", "10ms")
    following = shared.start("log", run, "--follow", "--type", "text")
    try:
        assert following.stdout is not None
        assert following.stdout.readline().endswith("   one\n")
        (shared.work / "followed").touch()
        rest, _ = following.communicate(timeout=90)
    finally:
        following.kill()
        following.communicate()
    assert [line.split()[-1] for line in rest.splitlines()] == ["two", "one", "two"]


@pytest.mark.requirement("cli:list:sort")
def test_a_list_by_end_leaves_out_what_has_not_ended(shared: Home) -> None:
    first = shared.spawn("true", "--tag", "by-end")
    shared.ok("wait", first)
    second = shared.spawn("true", "--tag", "by-end")
    shared.ok("wait", second)
    open_one = shared.spawn("sleep 600", "--tag", "by-end")
    for sort, wanted in (("ended", [second, first]), ("ended_oldest", [first, second])):
        done = shared.ok("list", "tag:by-end", "--sort", sort, "--json")
        assert [row["runId"] for row in done.rows("runs")] == wanted
    shared.ok("cancel", open_one, "--yes")
