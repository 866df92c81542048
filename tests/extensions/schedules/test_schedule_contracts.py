"""What ``schedule add`` is given holds at every time, and is shown."""

import inspect
import re
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
from tests.cli.cli_home import Home

from subagents.extensions.schedules import schedule_commands

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs/howto/schedules.md").read_text()
SHA: Final = "ab" * 32

CONTRACTS: Final[list[tuple[str, str]]] = [
    ("--verify none.txt", "File none.txt does not exist"),
    (
        "--verify old.json --verify-json",
        "did not change; to accept it unchanged: --verify-existing (fresh: false)",
    ),
    ("--verify new.txt --verify-json", "new.txt"),
    ("--verify new.txt --min-bytes 100", "new.txt"),
    ("--verify new.txt --verify-regex ^never", "new.txt"),
    ("--verify new.txt --verify-junit", "new.txt"),
    (f"--verify new.txt --sha256 {SHA}", "new.txt"),
    ("--verify new.txt --schema schema.json", "new.txt"),
    ("--verify new*.txt --min-files 2", "new*.txt"),
    ("--must-change src", "src"),
    ("--must-not-change new.txt", "new.txt"),
    ("--verify-cmd false", "false"),
    ("--require-report", "no completion report"),
]


@pytest.fixture(scope="module")
def prepared(shared: Home) -> Home:
    (shared.work / "old.json").write_text("[]")
    (shared.work / "schema.json").write_text('{"type": "array"}')
    (shared.work / "src").mkdir()
    return shared


@pytest.mark.requirement("cli:contract-flags", "schedule:contract")
@pytest.mark.parametrize(("flags", "why"), CONTRACTS, ids=[flags for flags, _ in CONTRACTS])
def test_a_scheduled_run_that_breaks_its_contract_is_not_ok(
    prepared: Home, flags: str, why: str
) -> None:
    prepared.ok(
        *("schedule", "add", "checked", "@daily", "date +x%N > new.txt", "--replace"),
        *shlex.split(flags),
    )
    run_id = prepared.ok("schedule", "run-now", "checked").out.strip()
    done = prepared.cli("wait", run_id)
    assert done.code == 6
    assert "its contract is not met" in done.err + done.out
    assert why in done.err + done.out
    (work,) = prepared.ok("show", "schedule:checked", "--json").rows("runs")
    assert len(work["checks"]) == 1


@pytest.mark.requirement("cli:no-option-unread", "schedule:contract")
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--verify a --schema none.json", "--schema none.json: there is no such file"),
        ("--verify a --schema old.txt", "--schema old.txt: JSON is malformed"),
        ("--verify a --sha256 zz", "sha256 must be 64 hexadecimal digits"),
        ("--verify a --verify-regex (", "regex"),
        ("--verify a --min-items x", "--min-items must be a whole number"),
        ("--min-items 3", "--min-items describes the file of a --verify before it"),
        ("--verify-json", "--verify-json describes the file of a --verify before it"),
        ("--verify", "--verify needs a value"),
        ("--on-failure retry_once", "--on-failure is about the checks of a contract"),
    ],
)
def test_a_contract_that_is_wrong_stores_no_schedule(
    prepared: Home, flags: str, message: str
) -> None:
    (prepared.work / "old.txt").write_text("no schema")
    done = prepared.cli("schedule", "add", "wrong", "@daily", "true", *shlex.split(flags))
    code = 3 if "no such file" in message else 2
    assert (done.code, message in done.err) == (code, True), done.err
    assert prepared.cli("show", "schedule:wrong").code == 3


@pytest.mark.requirement("schedule:contract")
def test_a_schedule_shows_contract_retries_and_budget_of_its_run(prepared: Home) -> None:
    prepared.ok(
        *("schedule", "add", "shown", "@daily", "true", "--verify", "a.xml", "--retry", "3"),
        *("--verify-cmd", "test -e x", "--on-failure", "retry_once"),
        *("--max-cost", "0.5", "--max-tokens", "2000", "--max-time", "5m"),
    )
    shown = prepared.ok("show", "schedule:shown").out
    assert "contract artifact a.xml, command test -e x; on failure retry once" in shown
    assert "retries  3\n" in shown
    assert "budget   2,000 tokens, $0.50, 5m" in shown
    prepared.ok(
        *("schedule", "add", "again", "@daily", "true", "--verify", "a.xml"),
        *("--until-verified", "4", "--on-failure", "escalate"),
    )
    again = prepared.ok("show", "schedule:again").out
    tried = "a failed check is tried again up to 4 times; on failure escalate"
    assert f"contract artifact a.xml; {tried}" in again
    prepared.ok("schedule", "add", "plain", "@daily", "true")
    plain = prepared.ok("show", "schedule:plain").out
    assert re.findall(r"^  (contract|retries|budget) +none$", plain, re.MULTILINE) == [
        "contract",
        "retries",
        "budget",
    ]


@pytest.mark.requirement("schedule:contract", "schedule:plan")
def test_a_schedule_of_a_plan_shows_those_of_each_step(prepared: Home) -> None:
    (prepared.work / "steps.toml").write_text(
        """
        budget = {maxTokens = 1000}
        [[runs]]
        label = "a"
        task = "true"
        retryCount = 2
        verification = {artifacts = [{path = "a.txt"}]}
        [[runs]]
        label = "b"
        task = "true"
        """
    )
    prepared.ok("schedule", "add", "steps", "@daily", "--plan", "steps.toml")
    lines = prepared.ok("show", "schedule:steps").out.splitlines()
    assert "  budget   1,000 tokens" in lines
    assert [line.split() for line in lines if line.startswith(("a ", "b "))] == [
        [
            "a",
            "artifact",
            *["a.txt;", "a", "failed", "check", "is", "not", "tried", "again"],
            "2",
            "none",
        ],
        ["b", "none", "none", "none"],
    ]


@pytest.mark.requirement("schedule:named")
def test_a_scheduled_run_is_found_by_the_name_of_its_schedule(prepared: Home) -> None:
    (prepared.work / "two.toml").write_text(
        "".join(f'[[runs]]\nlabel = "two-{each}"\ntask = "true"\n' for each in "ab")
    )
    for name, label, given in (
        ("nightly", "nightly", ["python3 -m pytest -q tests || true"]),
        ("labelled", "my own", ["true", "--label", "my own"]),
        ("deleting", "deleting", ["true", "--delete"]),
        ("two", "two-b", ["--plan", "two.toml"]),
    ):
        prepared.ok("schedule", "add", name, "@daily", *given)
        run_ids = prepared.ok("schedule", "run-now", name).out.split()
        found = prepared.ok("list", "--now", name, "--json").json
        assert (found["runId"], found["label"]) == (run_ids[-1], label)
        assert run_ids[-1] in prepared.ok("why", name).out


# -- the examples, by what they do ---------------------------------------------------------------

ADDED: Final[dict[str, dict[str, Any]]] = {
    "nightly '0 3 * * *' 'make test' --retry 2 --verify report.xml": {
        "words": "At 03:00 every day",
        "task": "make test",
        "runs": [([("artifact", "report.xml")], 3)],
    },
    "sync 'every 15m' --overlap queue -- rsync -a src/ backup/": {
        "words": "every 15m",
        "overlap": "queue",
        "task": "rsync -a src/ backup/",
        "runs": [([], 1)],
    },
    "weekly '@weekly' --plan audit.yaml --zone Europe/Berlin": {
        "zone": "Europe/Berlin",
        "steps": 1,
        "runs": [([("artifact", "audit.txt")], 1)],
    },
    "nightly '0 3 * * 1-5' 'make test' --retry 2 --verify report.xml --verify-junit": {
        "words": "At 03:00 on Monday through Friday",
        "runs": [([("artifact", "report.xml")], 3)],
    },
    "sync 'every 15m' --overlap queue -- rsync -a src/ /backup/": {
        "overlap": "queue",
        "task": "rsync -a src/ /backup/",
        "runs": [([], 1)],
    },
    "audit '@weekly' --plan audit.toml --zone Europe/Berlin": {
        "zone": "Europe/Berlin",
        "steps": 1,
        "runs": [([], 1)],
    },
}
"""Of each example of ``schedule add``, in its help and on its page, what is stored."""
ADD: Final = "subagents schedule add "


def examples(text: str) -> list[str]:
    return re.findall(r"^ *(?:\$ )?(subagents schedule .*)$", text, re.MULTILINE)


def help_of(name: str) -> list[str]:
    return examples(inspect.getdoc(getattr(schedule_commands, name)) or "")


EXAMPLES: Final = [
    line.removeprefix(ADD) for line in (*help_of("add"), *examples(PAGE)) if line.startswith(ADD)
]


@pytest.mark.requirement("schedule:contract", "docs:examples")
def test_the_effect_of_every_example_of_schedule_add_is_known() -> None:
    assert len(EXAMPLES) >= 6
    assert {*EXAMPLES} == {*ADDED}


@pytest.mark.requirement("schedule:contract", "docs:examples")
@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_of_schedule_add_stores_what_it_says(prepared: Home, line: str) -> None:
    (prepared.work / "audit.yaml").write_text(
        "runs:\n- {label: a, task: audit, verification: {artifacts: [{path: audit.txt}]}}\n"
    )
    (prepared.work / "audit.toml").write_text('[[runs]]\nlabel = "a"\ntask = "pip-audit"\n')
    name, *_ = words = shlex.split(line)
    added = ["schedule", "add", "--replace", *words]
    prepared.ok(*added)
    found = prepared.ok("show", f"schedule:{name}", "--json").json
    work = [
        ([(check["type"], check["target"]) for check in each["checks"]], each["attemptsMax"])
        for each in prepared.ok("show", f"schedule:{name}", "--json").rows("runs")
    ]
    expected = ADDED[line]
    assert {**{key: found[key] for key in expected}, "runs": work} == expected


@pytest.mark.requirement("docs:examples")
def test_the_examples_of_the_other_schedule_commands_do_what_they_say(prepared: Home) -> None:
    def schedule(name: str = "nightly") -> dict[str, Any]:
        return prepared.ok("show", f"schedule:{name}", "--json").json

    def does(line: str) -> Any:
        return prepared.ok(*shlex.split(line)[1:])

    prepared.ok(
        "schedule", "add", "nightly", "0 3 * * *", "true", "--replace", "--overlap", "allow"
    )
    for line in help_of("list_"):
        assert "nightly" in does(line).out
    assert "At 03:00 every day" in does("subagents show schedule:nightly").out
    does("subagents pause schedule:nightly")
    assert schedule()["pausedAt"] is not None
    does("subagents resume schedule:nightly")
    assert schedule()["pausedAt"] is None
    started = len(schedule()["times"])
    for line in help_of("run_now"):
        if "$(" in line:
            continue  # the shell's
        does(line)
        assert len(schedule()["times"]) == (started := started + 1)
    asked, sure = help_of("remove")
    prepared.ok("schedule", "add", "sync", "@daily", "true", "--replace")
    assert prepared.cli("schedule", "remove", "nightly", "nobody", "--yes").code == 3
    assert prepared.cli(*shlex.split(asked)[1:]).code == 2, "nobody is there to be asked"
    assert schedule()["name"] == "nightly"
    does(sure)
    assert {prepared.cli("show", f"schedule:{name}").code for name in ("nightly", "sync")} == {3}
