"""``subagents log`` and ``subagents list --now``: what a person sees, and what a program gets."""

import json
import os
import re
import signal
from collections.abc import Iterator

import pytest
from tests.cli.cli_home import Home, temporary_home, until

WORKER = """\
import json, sys, time
from pathlib import Path

def say(**event):
    print(json.dumps(event), flush=True)

for number in range(int(sys.argv[1])):
    failed = number % 4 == 3
    say(
        subagents="tool",
        name="Bash",
        input={"command": f"pytest part{number}"},
        output="1 failed" if failed else "3 passed",
        exitCode=int(failed),
        durationMs=2100,
    )
    say(subagents="text", text=f"part {number} is done\\n  more of it")
say(subagents="error", text="rate limited", api=True, retry="2/5")
say(subagents="usage", tokensIn=45000, tokensOut=12000)
say(subagents="progress", phase="waiting", percentComplete=80)
while len(sys.argv) > 2 and not Path(sys.argv[2]).exists():
    time.sleep(0.05)
say(subagents="text", text="the last word")
"""
LINE: re.Pattern[str] = re.compile(r"(?:\d\d-\d\d )?\d\d:\d\d:\d\d [ ~+!>-] ?.*")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with temporary_home(tmp_path_factory.mktemp("log")) as found:
        found.ok("up")
        (found.work / "worker.py").write_text(WORKER)
        yield found


@pytest.fixture(scope="module")
def worked(shared: Home) -> Home:
    """The shared home with a run that ended, labelled ``X``."""
    shared.ok("run", "python3 worker.py 40", "--label", "X")
    return shared


def texts(out: str) -> list[str]:
    return [line["text"] for line in json.loads(out)["lines"]]


@pytest.mark.requirement("cli:log", "cli:log:forms")
def test_the_newest_fifty_lines_come_with_time_sign_and_text(worked: Home) -> None:
    done = worked.ok("log", "X")
    shown = done.out.splitlines()
    assert all(LINE.fullmatch(line) or line.startswith(" " * 11) for line in shown), shown
    heads = [line for line in shown if LINE.fullmatch(line)]
    assert len(heads) == 50
    assert any(line.endswith(" + ✅ Bash (2.1s)") for line in heads)
    assert any(line.endswith(" + ❌ Bash (2.1s, exit 1)") for line in heads)
    assert any(line.endswith(" ! rate limited") for line in heads)
    assert heads[-1].endswith("run ended: ok")
    assert " - " in heads[-1]
    assert "of 86: --limit, --offset" in done.err


@pytest.mark.requirement("cli:log", "cli:log:forms")
def test_each_documented_form_gives_what_its_page_says(worked: Home) -> None:
    whole = texts(worked.ok("log", "X", "--limit", "1000", "--json").out)
    assert len(whole) == 86
    window = worked.ok("log", "X", "--offset", "60", "--limit", "20", "--json").out
    assert texts(window) == whole[60:80]
    assert texts(worked.ok("log", "X", "--offset", "100", "--limit", "20", "--json").out) == []
    found = texts(worked.ok("log", "X", "--grep", "error|fail", "--json").out)
    assert found == [text for text in whole if re.search("error|fail", text)]
    calls = texts(worked.ok("log", "X", "--grep", "tool_use", "--limit", "10", "--json").out)
    assert calls == [text for text in whole if "Bash" in text][-10:]
    assert texts(worked.ok("log", "X", "--since", "5m", "--tail", "200", "--json").out) == whole
    summary = worked.ok("log", "X", "--summary").out
    assert "tools: 40 calls: Bash 40 (10 failed)" in summary
    assert "cost: 45,000 tokens in, 12,000 tokens out" in summary
    assert "$0.00" not in summary
    assert len(summary.splitlines()) <= 40


@pytest.mark.requirement("cli:log")
def test_types_and_the_newest_lines_can_be_chosen(worked: Home) -> None:
    both = json.loads(worked.ok("log", "X", "-t", "error", "-t", "user", "--json").out)
    assert [line["type"] for line in both["lines"]] == ["user", "error"]
    assert texts(worked.ok("log", "X", "-n", "1", "--json").out)[0].endswith("run ended: ok")
    last = worked.ok("log", "X", "--type", "text", "--tail", "1").out
    assert last.endswith("  the last word\n")
    two = worked.ok("log", "X", "--grep", "part 39 is done").out.splitlines()
    assert two[1] == " " * 11 + "  more of it"


@pytest.mark.requirement("cli:log:refusals", "cli:exit-codes")
@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("--limit 0", "limit must be a whole number from 1 to 10000"),
        ("--limit 10001", "limit must be a whole number from 1 to 10000"),
        ("--offset -1", "offset must be"),
        ("--tail 3 --offset 3", "tail and offset exclude each other"),
        ("--since soon", "--since must be today, yesterday, a duration"),
        ("--type errors", 'did you mean "error"?'),
        ("--grep [", "grep"),
        ("--follow --offset 3", "--follow and --offset exclude each other"),
        ("--follow --summary", "--follow and --summary exclude each other"),
        ("--summary --grep x", "grep and summary exclude each other"),
    ],
)
def test_what_is_wrong_is_named_and_ends_with_2(worked: Home, line: str, named: str) -> None:
    done = worked.cli("log", "X", *line.split())
    assert (done.code, done.out) == (2, "")
    assert named in done.err
    as_json = worked.cli("log", "X", *line.split(), "--json").json
    assert as_json["code"] == "invalid"


@pytest.mark.requirement("cli:log:refusals", "cli:exit-codes")
def test_an_attempt_that_never_was_ends_with_3(worked: Home) -> None:
    done = worked.cli("log", "X", "--attempt", "7")
    assert done.code == 3
    assert "has 1 attempts, no attempt 7" in done.err


@pytest.mark.requirement("cli:log:follow")
def test_a_log_is_followed_to_the_end_also_over_a_kill_of_the_daemon(shared: Home) -> None:
    run = shared.spawn("python3 worker.py 2 go", "--label", "followed")
    following = shared.start("log", run, "--follow", "--type", "text")
    try:
        assert following.stdout is not None
        seen = [following.stdout.readline() for _ in range(4)]
        assert seen[2].endswith("part 1 is done\n")
        shared.kill_daemon()
        (shared.work / "go").touch()
        rest, err = following.communicate(timeout=60)
    finally:
        following.kill()
        following.communicate()
    assert rest.endswith("  the last word\n"), err
    assert len(rest.splitlines()) == 1
    assert following.returncode == 0


@pytest.mark.requirement("cli:log:follow", "cli:json")
def test_following_as_json_gives_one_document_per_page_and_no_line_twice(shared: Home) -> None:
    run = shared.spawn("python3 worker.py 30", "--label", "pages")
    done = shared.ok("log", run, "--follow", "--json", "--tail", "0")
    pages = [json.loads(line) for line in done.out.splitlines()]
    numbers = [line["seq"] for page in pages for line in page["lines"]]
    assert numbers == sorted(set(numbers))
    assert pages[-1]["ended"]
    assert not any(page["ended"] for page in pages[:-1])


@pytest.mark.requirement("cli:log:follow", "cli:exit-codes")
def test_ctrl_c_ends_following_with_130_and_the_run_goes_on(shared: Home) -> None:
    run = shared.spawn("echo begun; sleep 30")
    following = shared.start("log", run, "-f", "-t", "text")
    try:
        assert following.stdout is not None
        assert following.stdout.readline().endswith("begun\n")
        os.kill(following.pid, signal.SIGINT)
        following.communicate(timeout=90)
    finally:
        following.kill()
        following.communicate()
    assert following.returncode == 130
    assert shared.field(run, "phase") == "running"
    shared.ok("cancel", run)


@pytest.mark.requirement("cli:harmless")
def test_what_a_worker_prints_cannot_steer_the_terminal(shared: Home) -> None:
    shared.ok("run", r"printf 'a\033[2Jb\033]0;title\007c\001d\n'", "--label", "hostile")
    for line in ("log hostile", "log hostile --summary", "status hostile", "watch hostile"):
        done = shared.ok(*line.split())
        assert not set(done.out) & {"\x1b", "\x07", "\x01"}, line


@pytest.mark.requirement("cli:status", "status:fields")
def test_status_shows_what_counts_on_two_lines(shared: Home) -> None:
    run = shared.spawn("python3 worker.py 4 status-go", "--label", "counted")
    until(lambda: shared.field(run, "latestProgress"), "it told of its progress")
    until(lambda: shared.field(run, "tokensIn"), "it told of its usage")
    first, second = shared.ok("list", "--now", run).out.splitlines()
    assert first.startswith(f"▶ {run}  counted  working  ")
    assert "57k tokens" in first
    assert "$" not in first
    assert "80% waiting" in second
    assert re.search(r", \d+s ago", second)
    (shared.work / "status-go").touch()
    shared.ok("wait", run)
    assert shared.ok("list", "--now", run).out.startswith(f"✔ {run}  counted  ok  ")
    both = shared.ok("list", "--now", run, "counted", "--json").json
    assert isinstance(both["runs"], list)


@pytest.mark.requirement("progress:shown")
def test_every_view_shows_the_latest_progress(shared: Home) -> None:
    run = shared.spawn("python3 worker.py 1 shown-go", "--label", "shown")
    until(lambda: shared.field(run, "latestProgress"), "it told of its progress")
    for line in ("list", "tree", "status shown", "show shown", "watch shown --once"):
        assert "80% waiting" in shared.ok(*line.split()).out, line
    (shared.work / "shown-go").touch()
    shared.ok("wait", run)
