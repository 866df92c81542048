"""``plan``: started, shown, waited for, cancelled and retried on a real daemon."""

import json

import pytest
from tests.cli.cli_home import Home

FILE = """
[[runs]]
label = "build-{0}"
task = "echo built for $WHO"
env = {{ WHO = "me" }}
[[runs]]
label = "test-{0}"
task = "test -e fixed-{0} || {{ echo broken; exit 3; }}"
depends_on = ["build-{0}"]
[[runs]]
label = "ship-{0}"
task = "echo shipped for $WHO"
depends_on = ["test-{0}"]
"""


def plan_file(home: Home, name: str) -> str:
    path = home.work / f"{name}.toml"
    path.write_text(FILE.format(name))
    return str(path)


@pytest.mark.requirement("cli:plan", "plan:retry", "plan:environment")
def test_a_plan_ends_with_a_summary_and_what_failed_is_retried_by_its_name(shared: Home) -> None:
    done = shared.cli("plan", "run", plan_file(shared, "release"), "--env", "WHO=all")
    assert done.code == 5
    assert "built for me" in done.out
    assert "plan release (r-" in done.err
    assert "1 of 3 ok, 2 failed · " in done.err
    assert "to start again what failed: subagents retry plan:r-" in done.err

    shown = shared.ok("show", "plan:release").out
    assert "release (r-" in shown.splitlines()[0]
    assert [line.split()[2] for line in shown.splitlines()[2:]] == [
        *("build-release", "test-release", "ship-release"),
    ]

    (shared.work / "fixed-release").touch()
    again = shared.ok("retry", "plan:release", "--wait")
    assert "shipped for all" in again.out
    assert "built for" not in again.out
    assert "3 of 3 ok · " in again.err
    assert "retry" not in again.err
    refused = shared.cli("retry", "plan:release")
    assert refused.code == 1
    assert "nothing to retry" in refused.err
    assert "2 retried" in shared.ok("show", "plan:last").out
    shared.ok("run", "true", "--label", "beside")
    both = shared.ok("wait", "plan:release", "beside", "--json").rows("completed")
    assert len(both) == 4


@pytest.mark.requirement("cli:plan", "cli:version-skew")
def test_a_daemon_of_another_version_is_told_of(
    shared: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subagents.cli.connection.__version__", "99.0")
    assert "this command 99.0" in shared.ok("plan", "list").err


@pytest.mark.requirement("cli:plan", "plan:once", "plan:cancel")
def test_a_detached_plan_is_waited_for_cancelled_and_started_once_under_its_key(
    shared: Home,
) -> None:
    path = shared.work / "long.yaml"
    runs = "- {label: l1, task: sleep 60}\n- {label: l2, task: echo two}\n"
    path.write_text(f"name: long one\nruns:\n{runs}")
    flags = ("--detach", "--key", "once")
    first = shared.ok("plan", "run", str(path), *flags)
    again = shared.ok("plan", "run", str(path), *flags)
    assert first.out == again.out
    assert len(first.out.splitlines()) == 2
    assert "to wait for it: subagents wait plan:r-" in first.err
    ids = {row["runId"] for row in shared.ok("list", "plan:long one", "--json").rows("runs")}
    assert ids == set(first.out.split())

    assert shared.cli("cancel", "plan:long one").code == 2
    cancelled = shared.ok("cancel", "plan:long one", "--yes")
    assert "long one (r-" in cancelled.out
    waited = shared.cli("wait", "plan:long one")
    assert waited.code == 5
    assert "1 of 2 ok, 1 cancelled" in waited.err


@pytest.mark.requirement("cli:plan", "cli:renamed")
def test_commands_about_a_plan_are_still_taken_by_their_earlier_names(shared: Home) -> None:
    path = shared.work / "earlier.toml"
    path.write_text('runs = [{ task = "test -e mended || exit 3" }]\n')
    assert shared.cli("plan", "run", str(path)).code == 5
    assert "0 of 1 ok, 1 failed" in shared.ok("plan", "show", "earlier").out
    (shared.work / "mended").touch()
    again = shared.ok("plan", "retry", "--json", "earlier")
    assert [each["outcome"]["status"] for each in again.rows("completed")] == ["ok"]
    assert shared.cli("plan", "retry", "earlier", "--detach").code == 1
    assert shared.ok("plan", "wait", "--jq", ".completed[].outcome.status", "earlier").out == "ok\n"
    assert "1 of 1 ok" in shared.ok("plan", "wait", "earlier").err
    assert "1 of 1 ok" in shared.ok("plan", "cancel", "--reason", "late", "earlier").out


@pytest.mark.requirement("cli:plan")
def test_what_a_plan_does_not_take_is_refused(shared: Home) -> None:
    path = shared.work / "one.toml"
    path.write_text('runs = [{ task = "true" }]\n')
    shared.ok("plan", "run", str(path))
    assert "is about one run" in shared.cli("show", "plan:one", "--verbose").err
    assert "no plan" in shared.cli("retry", "plan:nowhere").err
    assert "needs a name" in shared.cli("plan", "wait").err


@pytest.mark.requirement("cli:plan")
def test_plans_are_listed_with_what_their_steps_came_to(shared: Home) -> None:
    path = shared.work / "tiny.json"
    path.write_text('{"runs": [{"task": "true"}, {"task": "true"}]}')
    shared.ok("plan", "run", str(path), "--name", "tiny plan")
    newest = shared.ok("plan", "list").out.splitlines()[1]
    assert "tiny plan" in newest
    assert "2 of 2 ok" in newest
    page = shared.ok("plan", "list", "--json").rows("plans")
    assert page[0]["states"] == {"ok": 2}
    assert "--since must be today" in shared.cli("plan", "list", "--since", "soon").err
    assert "tiny plan" in shared.ok("plan", "list", "--since", "today").out
    assert "No plans." in shared.ok("plan", "list", "--dir", "/nowhere").err


@pytest.mark.requirement("cli:plan")
def test_a_plan_runs_in_the_order_of_its_dependencies(shared: Home) -> None:
    (shared.work / "p.toml").write_text(
        '[[runs]]\nlabel = "first"\ntask = "echo 1 > order"\n'
        '[[runs]]\nlabel = "second"\ntask = "echo 2 >> order; cat order"\ndepends_on = "first"\n'
    )
    done = shared.ok("plan", "run", "p.toml", "--json")
    results = {each["label"]: each["result"] for each in done.rows("completed")}
    assert results["second"].split() == ["1", "2"]


@pytest.mark.requirement("cli:plan", "cli:exit-codes")
def test_a_plan_with_one_wrong_run_starts_none(shared: Home) -> None:
    (shared.work / "bad.json").write_text(
        '[{"task": "touch started"}, {"task": "t", "dependsOn": "nowhere"}]'
    )
    done = shared.cli("plan", "run", "bad.json")
    assert done.code == 3
    assert "bad.json: Dependency run not found: nowhere" in done.err
    assert not (shared.work / "started").exists()


@pytest.mark.requirement("spawn:children:operator")
def test_a_persons_jobs_and_plans_are_never_too_many(shared: Home) -> None:
    key = "SUBAGENTS_AGENTS__DEFAULTS__SUBAGENTS__MAX_CHILDREN_PER_AGENT"
    first = shared.spawn("sleep 60")
    steps = [{"task": f"echo {n}", "label": f"step-{n}"} for n in range(12)]
    (shared.work / "twelve.json").write_text(json.dumps(steps))
    done = shared.ok("plan", "run", "twelve.json", "--json", env={key: "1"})
    assert len(done.rows("completed")) == 12
    shared.ok("cancel", first)
