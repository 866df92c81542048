"""``plan run --dry-run``, ``--schema`` and ``map``, as they are typed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.cli_home import Home
from tests.cli.show.test_live_screen import on_terminal
from tests.cli.test_standard_streams import CONDITIONS, check_fates

from subagents.cli.main import main
from subagents.errors import EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE

MATRIX = """
name = "ci-${{ vars.branch }}"
vars = { branch = "main" }
budget = { max_tokens = 2000 }
[[runs]]
label = "test"
task = "echo ${{ matrix.n }} ${{ vars.branch }}"
matrix = { n = [1, 2] }
env = { TOKEN = "${{ vars.branch }}-value" }
[[runs]]
label = "report"
task = "echo both"
depends_on = ["test", "before"]
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "ci.toml"
    path.write_text(MATRIX)
    return str(path)


@pytest.mark.requirement("plan:dry-run")
def test_a_dry_run_shows_what_would_start_and_starts_nothing(shared: Home, tmp_path: Path) -> None:
    path = tmp_path / "ci.toml"
    path.write_text(MATRIX.replace(', "before"', ""))
    before = shared.ok("list", "--archived", "--json").json["total"]
    done = shared.ok("plan", "run", "--dry-run", str(path), "--var", "branch=next")
    assert [line.split() for line in done.out.splitlines()] == [
        ["#", "LABEL", "AGENT", "STARTS", "TASK"],
        ["1", "test", "(1)", "command", "at", "once", "echo", "1", "next"],
        ["2", "test", "(2)", "command", "at", "once", "echo", "2", "next"],
        ["3", "report", "command", "after", "2", "runs", "echo", "both"],
    ]
    assert done.err.splitlines()[-1] == (
        "plan ci-next: 3 runs, at most 2,000 tokens together; nothing was started"
    )
    assert shared.ok("list", "--archived", "--json").json["total"] == before


@pytest.mark.requirement("plan:dry-run")
def test_a_dry_run_in_json_names_variables_without_their_values(
    shared: Home, tmp_path: Path
) -> None:
    path = tmp_path / "ci.toml"
    path.write_text(MATRIX.replace(', "before"', ""))
    done = shared.ok("plan", "run", "--dry-run", str(path), "--json")
    assert [row["environment"] for row in done.rows("runs")] == [["TOKEN"], ["TOKEN"], []]
    assert done.json["maxTokens"] == 2000
    assert "main-value" not in done.out


@pytest.mark.requirement("plan:dry-run")
@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (
            "- {label: a, task: t, depends_on: b}\n- {label: b, task: t, depends_on: a}",
            "Circular dependency: ",
        ),
        ("- {label: a, task: t}\n- {label: a, task: t}", 'label "a" is used twice in this batch'),
        ("- {label: a, task: t, depends_on: nobody}", "Dependency run not found: nobody"),
        ("- {label: a, task: t, agent_id: nobody}", "no agent 'nobody' is configured"),
    ],
)
def test_a_dry_run_refuses_what_could_not_start(
    shared: Home, tmp_path: Path, runs: str, message: str
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(runs)
    done = shared.cli("plan", "run", "--dry-run", str(path))
    assert done.code != EXIT_OK
    assert message in done.err


@pytest.mark.requirement("run:dry-run")
@pytest.mark.parametrize("command", ["run", "spawn"])
def test_a_dry_run_of_one_run_says_how_it_would_be_run(shared: Home, command: str) -> None:
    before = shared.ok("list", "--archived", "--json").json["total"]
    done = shared.ok(command, "--dry-run", "echo hi", "--label", "greet", "--max-tokens", "10")
    assert done.out.splitlines()[1].split() == [
        *("1", "greet", "command", "at", "once", "echo", "hi")
    ]
    assert "1 run, at most 10 tokens" in done.err
    assert shared.ok("list", "--archived", "--json").json["total"] == before


@pytest.mark.requirement("plan:variables")
@pytest.mark.parametrize("given", ["branch", "=x"])
def test_a_variable_is_a_name_and_a_value(
    file: str, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    assert main(["plan", "run", "--dry-run", file, "--var", given]) == EXIT_USAGE
    assert f"--var {given!r} is not NAME=VALUE" in capsys.readouterr().err


@pytest.mark.requirement("plan:schema")
def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "run", "--schema"]) == EXIT_OK
    assert '"subagents plan"' in capsys.readouterr().out


@pytest.mark.requirement("map:items")
def test_a_dry_map_takes_items_of_a_file_and_of_the_command_line(
    shared: Home, tmp_path: Path
) -> None:
    (tmp_path / "items").write_text("two words\r\n\n-x\n")
    flags = ["--each", str(tmp_path / "items"), "--verify", "{}.out", "--min-bytes", "1"]
    done = shared.ok("map", "echo {}", "a", *flags, "--dry-run")
    lines = [line.split()[1:] for line in done.out.splitlines()[1:]]
    assert lines == [
        ["a", "command", "at", "once", "echo", "a"],
        ["two", "words", "command", "at", "once", "echo", "'two", "words'"],
        ["-x", "command", "at", "once", "echo", "-x"],
    ]


@pytest.mark.requirement("map:items")
@pytest.mark.parametrize(
    ("content", "message", "code"),
    [
        (None, "there is no such file", EXIT_NOT_FOUND),
        (b"\xff", ":1: not valid UTF-8 (byte 0xff)", EXIT_USAGE),
        (b"\n", "there are no items", EXIT_USAGE),
    ],
)
def test_items_that_cannot_be_read_are_said(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: bytes | None,
    message: str,
    code: int,
) -> None:
    path = tmp_path / "items"
    if content is not None:
        path.write_bytes(content)
    assert main(["map", "echo {}", "--each", str(path)]) == code
    assert message in capsys.readouterr().err


@pytest.mark.requirement("plan:matrix", "plan:variables")
def test_the_runs_of_a_matrix_run_before_what_waits_for_all(shared: Home, tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text(MATRIX.replace(', "before"', "").replace("max_tokens", "max_cost_usd"))
    done = shared.ok("plan", "run", str(path), "--var", "branch=next")
    assert "1 next" in done.out
    assert "2 next" in done.out
    assert "plan ci-next (r-" in done.err
    assert "3 of 3 ok" in done.err


@pytest.mark.requirement("map:items", "map:quoting")
def test_a_map_is_a_plan_of_its_items_and_started_once_under_its_key(shared: Home) -> None:
    flags = ("--name", "both", "--idempotency-key", "map-key", "--json")
    done = shared.ok("map", "echo got {}", "one two", "$HOME", *flags)
    results = [row["result"] for row in done.rows("completed")]
    assert sorted(str(each).strip() for each in results) == ["got $HOME", "got one two"]
    again = shared.ok("map", "echo got {}", "one two", "$HOME", *flags)
    ids = [{row["runId"] for row in each.rows("completed")} for each in (done, again)]
    assert ids[0] == ids[1]
    assert "2 of 2 ok" in shared.ok("plan", "show", "both").out


@pytest.mark.requirement("cli:results-on-stdout")
@pytest.mark.parametrize(
    ("items", "task"),
    [
        (2, "echo {}"),
        (3, "echo {}; echo said >&2"),
        (2, "echo {}; exit 3"),
        (2, "true {}"),
        (21, "echo {}"),
        (22, "echo {}; test {} != 5"),
    ],
)
def test_of_several_runs_stdout_has_the_results_alone(shared: Home, items: int, task: str) -> None:
    words = [str(each) for each in range(items)]
    done = shared.cli("map", task, *words)
    assert sorted(done.out.split(), key=int) == ([] if task.startswith("true") else words)
    assert f" of {items} ok" in done.err
    plan = shared.ok("plan", "list", "--limit", "1", "--json").rows("plans")[0]["planId"]
    assert shared.cli("wait", f"plan:{plan}").out == done.out
    runs = [str(row["runId"]) for row in shared.ok("show", "plan:last", "--json").rows("runs")]
    assert shared.cli("wait", *runs).out == done.out


@pytest.mark.requirement("cli:few-lines")
@pytest.mark.parametrize(("items", "lines_max"), [(21, 14), (60, 14)])
def test_a_large_map_says_in_few_lines_how_it_goes(
    shared: Home, items: int, lines_max: int
) -> None:
    done = shared.cli("map", "echo {}; test {} != 7", *map(str, range(items)), "--name", "many")
    said = done.err.splitlines()
    assert len(said) <= lines_max
    assert f"{items} runs accepted; to see each: subagents show plan:r-" in said[0]
    assert any("7: failed" in line for line in said)
    assert f"{items - 1} of {items} ok, 1 failed" in done.err
    assert f"{items - 1} runs ended ok" in done.err


@pytest.mark.requirement("map:jobs")
@pytest.mark.parametrize("flags", [["-j", "1"], ["--jobs", "1"], ["--jobs=1"], ["-j1"]])
def test_a_map_works_at_so_many_items_at_once(shared: Home, flags: list[str]) -> None:
    task = "mkdir at-work && sleep 0.05 && rmdir at-work && echo {}"
    done = shared.ok("map", task, "1", "2", "3", *flags)
    assert sorted(done.out.split()) == ["1", "2", "3"]
    assert shared.ok("show", "plan:last", "--json").json["jobs"] == 1


@pytest.mark.requirement("cli:few-lines", "cli:live-tree")
def test_a_large_map_is_one_line_that_is_kept_up_to_date(shared: Home) -> None:
    words = [str(each) for each in range(21)]
    code, shown = on_terminal(shared, "map", "sleep 1; echo result {}", *words, "--name", "many")
    assert code == 0
    assert "plan many (r-" in shown
    assert " of 21 ok, " in shown
    assert "is spawning" not in shown
    assert "r-" not in shown.partition("plan many (r-")[0].partition("show plan:r-")[0]
    assert shown.count("result 20") == 1
    assert "21 of 21 ok" in shown.splitlines()[-1]


@pytest.mark.requirement("cli:standard-streams")
@pytest.mark.parametrize(("numbers", "kind"), CONDITIONS)
def test_what_becomes_of_a_map_is_its_exit_code_whatever_can_be_written(
    shared: Home, numbers: Sequence[int], kind: str
) -> None:
    check_fates(shared, {"map": (0, ("map", "echo {} >> map", "x"))}, numbers, kind)


@pytest.mark.requirement("cli:few-lines", "cli:worker-verbs")
def test_of_a_large_map_any_question_is_passed_on(shared: Home) -> None:
    task = "test {} != 25 || subagents ask 'which of them?' --timeout 60s"
    words = [str(each) for each in range(26)]
    waiting = shared.start("map", task, *words, "--name", "asking")
    try:
        assert waiting.stderr is not None
        while "25 asks: which of them?" not in waiting.stderr.readline():
            assert waiting.poll() is None
        _, _, command = waiting.stderr.readline().partition("subagents ")
        shared.ok(*command.split()[:2], "that one")
        out, _ = waiting.communicate(timeout=60)
    finally:
        waiting.kill()
        waiting.communicate()
    assert (waiting.returncode, out) == (0, "that one\n")


@pytest.mark.requirement("map:jobs", "plan:jobs")
@pytest.mark.parametrize("jobs", ["0", "-1", "x", "1.5", "1001", "", "9" * 5000])
def test_jobs_are_a_number_of_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], jobs: str
) -> None:
    assert main(["map", "echo {}", "1", f"--jobs={jobs}"]) == EXIT_USAGE
    assert "--jobs must be a number from 1 to 1000, not" in capsys.readouterr().err
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"jobs": jobs, "runs": [{"task": "t"}]}))
    assert main(["plan", "run", str(path)]) == EXIT_USAGE
    assert "p.json: jobs must be a number from 1 to 1000, not" in capsys.readouterr().err


@pytest.mark.requirement("map:budget")
def test_the_time_of_a_map_is_one_for_all_its_runs(shared: Home) -> None:
    flags = ("--max-time", "0.1s", "--name", "timed")
    done = shared.cli("map", "exec sleep {}", "60", "61", *flags)
    assert done.code == 5
    assert "0 of 2 ok, 2 cancelled" in done.err
    told = [line for line in done.err.splitlines() if "over" in line or "why" in line]
    assert [line.partition(" · ")[0] for line in told] == ["■ 60: cancelled", "■ 61: cancelled"]


@pytest.mark.requirement("map:budget")
@pytest.mark.parametrize(
    ("flags", "most", "each"),
    [
        (["--max-cost", "1"], "at most $1.00 together", None),
        (["--max-tokens", "50"], "at most 50 tokens together", None),
        (["--max-cost=2", "--max-tokens=9"], "at most 9 tokens and $2.00 together", None),
        (["--max-cost", "1", "--max-time", "1m"], "at most $1.00 and 1m together", None),
        (["--max-runs", "3"], "3 runs; nothing", {"maxRuns": 3}),
        ([], "3 runs; nothing", None),
    ],
)
def test_a_cap_of_a_map_is_for_all_its_runs_together(
    shared: Home, flags: list[str], most: str, each: dict[str, object] | None
) -> None:
    words = ("map", "echo {}", "1", "2", "3", *flags, "--dry-run")
    assert most in shared.ok(*words).err
    for row in shared.ok(*words, "--json").rows("runs"):
        found = row["budget"]
        given = {name: value for name, value in (found or {}).items() if value}
        assert given == (each or {})


@pytest.mark.requirement("for-each:map")
def test_map_takes_its_items_from_a_run_that_goes_on_and_says_what_is_not_known(
    shared: Home,
) -> None:
    source = shared.ok("spawn", "until [ -e listed ]; do sleep 0.05; done; printf 'a b\\n-x.py'")
    run_id = source.out.strip()
    command = ("map", "echo {}+{.}", "--for-each", run_id, "--name", "from-a-run", "-j", "1")
    planned = shared.ok(*command, "--dry-run", "--max-items", "7").out.splitlines()[1]
    assert " ".join(planned.split()).endswith(": 0 to 7 runs echo ${{ item }}+${{ item{.} }}")
    assert shared.cli(*command, "c").code == EXIT_USAGE

    shared.ok(*command, "--detach")
    (shared.work / "listed").touch()
    found = shared.ok("wait", "plan:from-a-run")
    assert "a b+a b" in found.out
    assert "-x.py+-x" in found.out
    rows: Any = shared.ok("show", "plan:from-a-run", "--json").json["runs"]
    assert [each["label"] for each in rows] == ["from-a-run", "from-a-run a b", "from-a-run -x.py"]
