"""Spans of real trees of workers at a local receiver, over kills of the daemon."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.live_home import DEFAULTS, LiveHome, live_home, until, variable_of
from tests.e2e.test_nested import HOLD, SPAWN, children_of, script
from tests.otlp_receiver import Receiver, receiver

from subagents.domain.run.values import RunId
from subagents.extensions.telemetry.trace_ids import span_id, trace_id, traceparent

TOOL = '{"subagents":"tool","name":"Bash","input":{"command":"make"},"exitCode":0}'
USAGE = '{"subagents":"usage","tokensIn":700,"tokensOut":30,"costUsd":0.25}'


@contextlib.contextmanager
def observed(root: Path, *, extra: str = "") -> Iterator[tuple[LiveHome, Receiver]]:
    """A daemon that sends its spans to a receiver, and the receiver."""
    with receiver() as to:
        config = f'[telemetry]\notlp_endpoint = "{to.endpoint}"\n{extra}{DEFAULTS}'
        with live_home(root, config=config, grace_s=0.5) as home:
            yield home, to


def arrived(to: Receiver, *run_ids: str) -> None:
    until(lambda: all(to.of_run(run_id) for run_id in run_ids), what="a span of every run")


@pytest.mark.requirement("telemetry:e2e", "telemetry:tree", "telemetry:no-loss")
def test_three_levels_arrive_with_the_right_parents_although_the_daemon_was_killed_in_the_middle(
    tmp_path: Path,
) -> None:
    with observed(tmp_path) as (home, to):
        script(home, "leaf", f"{HOLD}; echo '{TOOL}'; echo '{USAGE}'; echo leaf done")
        script(home, "middle", f"{SPAWN} 'exec sh leaf' >&2; subagents wait >&2; echo middle done")
        early = home.spawn("echo early")
        home.finish(early)
        arrived(to, early)
        top = home.spawn(
            script(home, "top", f"{SPAWN} 'exec sh middle' >&2; subagents wait >&2; echo top done")
        )
        (middle,) = children_of(home, top)
        (leaf,) = children_of(home, middle)
        home.until_phase(leaf, "running")

        home.kill()
        (home.work / "go").touch()
        home.start()
        (item,) = home.finish(top)
        arrived(to, top, middle, leaf)
        home.restart_after_kill()

        assert item["outcome"]["status"] == "ok"
        found = to.by_id()
        spans = {run: found[span_id(RunId(run), 1)] for run in (top, middle, leaf)}
        assert spans[top].parent_id is None
        assert spans[middle].parent_id == spans[top].span_id
        assert spans[leaf].parent_id == spans[middle].span_id
        assert {span.trace_id for span in spans.values()} == {trace_id(RunId(top))}
        assert to.of_run(early)[0].trace_id != trace_id(RunId(top))
        for inner, outer in ((leaf, middle), (middle, top)):
            assert spans[outer].start_ms <= spans[inner].start_ms
            assert spans[inner].end_ms <= spans[outer].end_ms
        assert all("taken over after a restart" in span.events for span in spans.values())
        assert [spans[run].attributes["subagents.depth"] for run in (top, middle, leaf)] == [
            1,
            2,
            3,
        ]
        assert spans[leaf].attributes["gen_ai.usage.input_tokens"] == 700
        assert spans[leaf].attributes["subagents.cost_usd"] == 0.25
        (tool,) = to.of_run(leaf, operation="execute_tool")
        assert (tool.name, tool.parent_id) == ("execute_tool Bash", spans[leaf].span_id)
        assert "leaf done" not in repr(to.spans)
        # Nothing of it is sent under two ids, and no run is missing.
        attempts = [each for each in found.values() if each.name == "invoke_agent sh"]
        assert len(attempts) == 4


@pytest.mark.requirement("telemetry:e2e", "telemetry:receiver-down", "telemetry:no-loss")
def test_what_ended_before_a_kill_while_the_receiver_was_down_arrives_later_once(
    tmp_path: Path,
) -> None:
    with observed(tmp_path) as (home, to):
        to.down()
        runs = [home.spawn(f"echo {number}") for number in range(5)]
        home.finish(*runs)
        for run in runs:
            home.until_phase(run, "completed")
        home.kill()
        to.up()
        home.start()
        arrived(to, *runs)

        assert len(to.by_id()) == 5
        telemetry = until(
            lambda: home.get("/v1/diagnostics")["telemetry"] or None, what="diagnostics"
        )
        assert telemetry["endpoint"] == f"{to.endpoint}/v1/traces"


@pytest.mark.requirement("telemetry:e2e", "telemetry:retry-linked", "telemetry:verification-span")
def test_a_failed_contract_and_its_retry_are_two_linked_spans_each_with_its_check(
    tmp_path: Path,
) -> None:
    with observed(tmp_path) as (home, to):
        run = home.spawn(
            "[ -e once ] && echo yes > out.txt; touch once",
            verification={"artifacts": [{"path": "out.txt"}], "onFailure": "retry_once"},
        )
        home.finish(run)
        arrived(to, run)

        first, second = sorted(to.of_run(run), key=lambda span: span.start_ms)
        assert first.is_error
        assert first.attributes["error.type"] == "verification_failed"
        assert second.attributes["subagents.contract.status"] == "passed"
        assert second.links == (first.span_id,)
        checks = [span for span in to.by_id().values() if span.name == "verify"]
        assert {span.parent_id for span in checks} == {first.span_id, second.span_id}


@pytest.mark.requirement("telemetry:traceparent")
def test_a_worker_carries_the_trace_of_its_tree_so_that_its_own_telemetry_joins_it(
    tmp_path: Path,
) -> None:
    with observed(tmp_path) as (home, _):
        task = f"{SPAWN} 'echo $TRACEPARENT; {HOLD}' >&2; echo $TRACEPARENT; {HOLD}"
        top = home.spawn(task)
        (child,) = children_of(home, top)
        pid = home.worker_pid(child)
        carried = until(lambda: variable_of(pid, "TRACEPARENT"), what="the child's trace")
        home.restart_after_kill()
        (home.work / "go").touch()
        (item,) = home.finish(top)

        assert carried == traceparent(RunId(top), RunId(child), 1)
        assert traceparent(RunId(top), RunId(top), 1) in item["result"]


@pytest.mark.requirement("telemetry:off", "telemetry:traceparent")
def test_without_an_endpoint_nothing_is_sent_and_workers_are_told_of_no_trace(
    tmp_path: Path,
) -> None:
    with receiver() as to, live_home(tmp_path) as home:
        (item,) = home.finish(home.spawn('echo "trace: ${TRACEPARENT-none}"'))

        assert item["result"] == "trace: none"
        assert home.get("/v1/diagnostics")["telemetry"] is None
        assert not (home.paths.state_dir / "telemetry-cursor.json").exists()
        assert to.spans == []


@pytest.mark.requirement("telemetry:user-file-only")
def test_a_project_cannot_redirect_what_is_sent(tmp_path: Path) -> None:
    with receiver() as elsewhere, observed(tmp_path) as (home, to):
        text = f"[telemetry]\notlp_endpoint = {json.dumps(elsewhere.endpoint)}\n"
        (home.work / "subagents.toml").write_text(text)
        run = home.spawn("echo here")
        home.finish(run)
        arrived(to, run)

        assert elsewhere.spans == []


def doctor(home: LiveHome) -> str:
    argv = [sys.executable, "-m", "subagents", "doctor"]
    done = subprocess.run(argv, env=home._env, capture_output=True, text=True, check=False)
    return done.stdout


@pytest.mark.requirement("telemetry:doctor")
def test_doctor_says_whether_anything_is_sent_where_to_and_where_the_log_is(
    tmp_path: Path,
) -> None:
    with observed(tmp_path) as (home, to):
        run = home.spawn("echo here")
        home.finish(run)
        arrived(to, run)
        said = doctor(home)
        assert f"1 spans sent to {to.endpoint}/v1/traces" in said
        assert f"Spans of ended runs are sent to {to.endpoint}/v1/traces.\n" in said
        assert str(home.paths.log_file) in said

        to.down()
        home.finish(home.spawn("echo there"))
        until(
            lambda: "nothing is lost meanwhile" in doctor(home),
            what="the outage in doctor",
            pause_s=1,
        )
        to.up()
    (tmp_path / "silent").mkdir()
    with live_home(tmp_path / "silent") as home:
        assert doctor(home).endswith("the daemon knows no receiver.\n")
