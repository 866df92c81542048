"""``plan dry-run``, ``plan schema`` and ``map``, as they are typed."""

from pathlib import Path

import pytest
from tests.cli.cli_home import Home

from subagents.cli.main import main
from subagents.errors import EXIT_OK, EXIT_USAGE

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
def test_a_dry_run_shows_what_would_start(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "dry-run", file, "--var", "branch=next"]) == EXIT_OK
    said = capsys.readouterr()
    assert [line.split() for line in said.out.splitlines()] == [
        ["#", "LABEL", "AGENT", "AFTER", "TASK"],
        ["1", "test", "(1)", "default", "-", "echo", "1", "next"],
        ["2", "test", "(2)", "default", "-", "echo", "2", "next"],
        ["3", "report", "default", "3", "runs", "echo", "both"],
    ]
    assert said.err.splitlines() == [
        "plan ci-next: 3 runs, at most 2,000 tokens together; nothing was started",
        "  before is no label of this plan: it must be a run that exists by then",
    ]


@pytest.mark.requirement("plan:dry-run")
def test_a_dry_run_in_json_names_variables_without_their_values(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "dry-run", file, "--json"]) == EXIT_OK
    said = capsys.readouterr().out
    assert '"budget":{"maxTokens":2000}' in said.replace(" ", "").replace("\n", "")
    assert "TOKEN" in said
    assert "main-value" not in said


@pytest.mark.requirement("plan:dry-run")
@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (
            "- {label: a, task: t, depends_on: b}\n- {label: b, task: t, depends_on: a}",
            "Circular dependency: ",
        ),
        ("- {label: a, task: t}\n- {label: a, task: t}", 'label "a" is used twice in this plan'),
    ],
)
def test_a_dry_run_refuses_what_could_not_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], runs: str, message: str
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(runs)
    assert main(["plan", "dry-run", str(path)]) == EXIT_USAGE
    assert message in capsys.readouterr().err


@pytest.mark.requirement("plan:variables")
@pytest.mark.parametrize("given", ["branch", "=x"])
def test_a_variable_is_a_name_and_a_value(
    file: str, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    assert main(["plan", "dry-run", file, "--var", given]) == EXIT_USAGE
    assert f"--var {given!r} is not NAME=VALUE" in capsys.readouterr().err


@pytest.mark.requirement("plan:schema")
def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "schema"]) == EXIT_OK
    assert '"subagents plan"' in capsys.readouterr().out


@pytest.mark.requirement("map:items")
def test_a_dry_map_takes_items_of_a_file_and_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "items").write_text("two words\r\n\n-x\n")
    flags = ["--each", str(tmp_path / "items"), "--verify", "{}.out", "--min-bytes", "1"]
    assert main(["map", "echo {}", "a", *flags, "--dry-run"]) == EXIT_OK
    lines = [line.split()[1:] for line in capsys.readouterr().out.splitlines()[1:]]
    assert lines == [
        ["a", "default", "-", "echo", "a"],
        ["two", "words", "default", "-", "echo", "'two", "words'"],
        ["-x", "default", "-", "echo", "-x"],
    ]


@pytest.mark.requirement("map:items")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read"),
        (b"\xff", "is not valid UTF-8 (byte 0)"),
        (b"\n", "there are no items"),
    ],
)
def test_items_that_cannot_be_read_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, message: str
) -> None:
    path = tmp_path / "items"
    if content is not None:
        path.write_bytes(content)
    assert main(["map", "echo {}", "--each", str(path)]) == EXIT_USAGE
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
