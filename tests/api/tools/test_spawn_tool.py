"""``sessions_spawn``: receipts, batches, refusals, and that one call never spawns twice."""

import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.api.tools.tool_callers import CONFIG, ToolCaller, play

from subagents.api.tools.tool import ANSWER_CHARS_MAX

RECEIPT = {
    *("status", "childSessionKey", "runId", "mode", "label", "phase"),
    *("resolvedModel", "effectiveTools", "access", "warnings", "note"),
}


@pytest.mark.requirement("tools:spawn:receipt")
async def test_a_spawn_answers_with_exactly_the_documented_receipt(desk: ToolCaller) -> None:
    # One that does not end: its announcement would be in the inbox, and that in the receipt.
    answer = await desk.call("sessions_spawn", task="work", agentId="hang", label="first")

    assert set(answer.structured) == {*RECEIPT, "wake"} - {"threadId"}
    assert answer.structured["status"] == "accepted"
    assert answer.structured["label"] == "first"
    assert answer.structured["mode"] == "run"
    assert str(answer.structured["runId"]) in answer.text.splitlines()[0]
    assert answer.offered == ()


@pytest.mark.requirement("tools:spawn:receipt")
async def test_what_was_really_resolved_and_what_to_mind_is_in_the_receipt(
    desk: ToolCaller,
) -> None:
    (Path(desk.home.cwd) / "there.txt").write_text("x")
    found = await desk.ok(
        "sessions_spawn",
        task="work",
        agentId="hang",
        toolsAllow=["Read", "Bash"],
        toolsDeny=["Bash"],
        verification={"artifacts": [{"path": "there.txt"}], "fresh": False},
    )

    assert found["effectiveTools"] == ["Read"]
    assert "vacuous" in found["warnings"][0]


@pytest.mark.requirement("tools:spawn:receipt")
async def test_the_receipt_of_a_session_in_a_thread_names_the_thread(desk: ToolCaller) -> None:
    answer = await desk.call("sessions_spawn", task="w", agentId="quick", thread=True)

    found = answer.structured
    assert found["threadId"] == found["runId"]
    assert f"; thread {found['threadId']};" in answer.text


@pytest.mark.requirement("tools:spawn:batch")
async def test_a_batch_is_spawned_together_and_its_runs_name_each_other_by_label(
    desk: ToolCaller,
) -> None:
    found = await desk.ok(
        "sessions_spawn",
        agentId="shell",
        includeDependencyResult=True,
        batch=[
            {"task": "echo one", "label": "a"},
            {"task": "echo two", "label": "b"},
            {"task": "cat", "label": "sum", "dependsOn": ["a", "b"]},
            {"task": "work", "label": "own", "agentId": "quick", "chainAfter": "sum"},
        ],
    )

    assert set(found) == {"status", "receipts", "wake"}
    assert [each["label"] for each in found["receipts"]] == ["a", "b", "sum", "own"]
    assert all(set(each) == RECEIPT for each in found["receipts"])
    assert found["receipts"][2]["phase"] == "waiting"
    waited = await desk.ok("sessions_wait", runIds=["own"], timeoutSeconds=15)
    assert waited["completed"][0]["outcome"]["status"] == "ok"


@pytest.mark.requirement("tools:spawn:batch")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"batch": []}, "batch must be a list of 1 to 1000 runs, not 0"),
        ({"batch": [{"task": "x"}] * 1001}, "batch must be a list of 1 to 1000 runs, not 1001"),
        ({"batch": "x"}, "batch must be a list of 1 to 1000 runs, not none"),
        ({"batch": ["x"]}, "batch[0] must be an object of spawn parameters"),
        ({"batch": [{"task": "x"}, {"label": "y"}]}, "batch[1].task is required"),
        ({"batch": [{"task": "x", "batch": []}]}, 'unknown parameter "batch[0].batch"'),
        (
            {"batch": [{"task": "x", "retrycount": 1}]},
            'unknown parameter "batch[0].retrycount": did you mean "retryCount"?',
        ),
        ({"batch": [{"task": "x"}], "idempotencyKey": 5}, "idempotencyKey must be text"),
        ({"batch": [{"task": "x"}], "idempotencyKey": ""}, "idempotencyKey must not be empty"),
        ({"batch": [{"task": "x"}], "task": "y"}, "task and batch exclude each other"),
        ({"batch": [{"task": "x"}], "label": "y"}, "label and batch exclude each other"),
        (
            {
                "agentId": "quick",
                "batch": [
                    {"task": "x", "label": "a", "dependsOn": "b"},
                    {"task": "x", "label": "b", "dependsOn": "a"},
                ],
            },
            "Circular dependency: a → b → a",
        ),
        (
            {"agentId": "quick", "batch": [{"task": "x", "chainAfter": "nobody"}]},
            "Dependency run not found: nobody",
        ),
        (
            {"agentId": "quick", "batch": [{"task": "x"}, {"task": "y", "agentId": "hidden"}]},
            'agent "main" may not spawn "hidden"',
        ),
    ],
)
async def test_a_batch_with_one_fault_stores_nothing_and_says_where_it_is(
    desk: ToolCaller, arguments: dict[str, Any], says: str
) -> None:
    answer = await desk.refused("sessions_spawn", **arguments)

    assert says in str(answer.structured["error"])
    assert says in answer.text
    assert (await desk.ok("sessions_list"))["total"] == 0


@pytest.mark.requirement("tools:spawn:refused")
@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        ({}, "error", "task is required"),
        ({"task": ""}, "error", "task must not be empty"),
        ({"task": "a\0b"}, "error", "task must not contain a NUL byte"),
        ({"task": "x" * (256 * 1024 + 1)}, "error", "task must be at most 262144 bytes"),
        ({"task": "é" * 131_073}, "error", "task must be at most 262144 bytes"),
        ({"task": "\ud800"}, "error", "task must be valid UTF-8"),
        ({"task": 5}, "error", "task must be text, not an integer"),
        ({"task": "x", "agentid": "quick"}, "error", 'did you mean "agentId"?'),
        ({"task": "x", "mode": "sesion"}, "error", 'did you mean "session"?'),
        ({"task": "x", "mode": "session"}, "error", 'mode="session" requires thread=true'),
        ({"task": "x", "retryCount": -1}, "error", "retryCount must be 0 to 100"),
        ({"task": "x", "label": "a\nb"}, "error", "label must be one line"),
        ({"task": "x", "label": "x" * 81}, "error", "label must have at most 80 characters"),
        ({"task": "x", "cwd": "not/absolute"}, "error", "cwd must be absolute"),
        ({"task": "x", "cwd": "/not/there"}, "error", 'cwd "/not/there" is not a directory'),
        ({"task": "x", "agentId": "nobody"}, "forbidden", "agents.main.subagents.allow_agents"),
        ({"task": "x", "agentId": "hidden"}, "forbidden", "agents.main.subagents.allow_agents"),
        ({"task": "x", "model": "m"}, "error", 'runtime "scripted" takes no model'),
        ({"task": "x", "lane": "fast"}, "error", "no lane 'fast' is configured"),
        ({"task": "x", "verification": {}}, "error", "verification has nothing to check"),
        (
            {"task": "x", "verification": {"artifacts": [{"path": "a", "minItems": 1}]}},
            "error",
            "verification.artifacts[0].minItems needs json",
        ),
        (
            {"task": "x", "verification": {"commands": ["true"]}},
            "error",
            "dangerously_allow_validation_commands",
        ),
        ({"task": "x", "dependsOn": "gone"}, "error", "Dependency run not found: gone"),
        (
            {"task": "x", "agentId": "shell", "toolsDeny": ["Bash"]},
            "forbidden",
            'runtime "command" cannot enforce tool scoping',
        ),
    ],
)
async def test_a_refused_spawn_names_the_parameter_and_stores_nothing(
    desk: ToolCaller, arguments: dict[str, Any], status: str, says: str
) -> None:
    given = {"agentId": "quick", **arguments} if "agentid" not in arguments else arguments
    answer = await desk.refused("sessions_spawn", **given)

    assert answer.structured["status"] == status
    assert says in str(answer.structured["error"])
    assert says in answer.text
    assert (await desk.ok("sessions_list"))["total"] == 0


@pytest.mark.requirement("tools:spawn:refused")
def test_the_limit_of_active_children_is_refused_with_its_key(tmp_path: Path) -> None:
    async def scenario(desk: ToolCaller) -> None:
        await desk.spawn("hang")
        await desk.spawn("hang")
        answer = await desk.refused("sessions_spawn", task="third", agentId="hang")

        assert answer.structured["status"] == "forbidden"
        assert answer.structured["details"] == {"guardrail": "children"}
        assert "(2/2; agents.defaults.subagents.max_children_per_agent)" in answer.text
        assert answer.text.splitlines()[1].startswith("hint: ")

    limit = "max_children_per_agent = "
    play(tmp_path, scenario, CONFIG.replace(f"{limit}60", f"{limit}2"))


@pytest.mark.requirement("tools:spawn:once")
async def test_a_call_that_a_client_repeats_spawns_once(desk: ToolCaller) -> None:
    first = await desk.call("sessions_spawn", "call-1", task="x", agentId="hang")
    again = await desk.call("sessions_spawn", "call-1", task="x", agentId="hang")
    other = await desk.call("sessions_spawn", "call-2", task="x", agentId="hang")

    assert again.structured["runId"] == first.structured["runId"]
    assert "nothing new was started" in str(again.structured["note"])
    assert other.structured["runId"] != first.structured["runId"]


@pytest.mark.requirement("tools:spawn:once")
async def test_a_batch_that_a_client_repeats_spawns_once_and_an_own_key_wins(
    desk: ToolCaller,
) -> None:
    batch = [{"task": "x"}, {"task": "y", "idempotencyKey": "mine"}, {"task": "z"}]
    first = await desk.call("sessions_spawn", "call-1", agentId="hang", batch=batch)
    again = await desk.call("sessions_spawn", "call-1", agentId="hang", batch=batch)
    single = await desk.ok("sessions_spawn", task="y", agentId="hang", idempotencyKey="mine")
    keyed = await desk.ok(
        "sessions_spawn", agentId="hang", idempotencyKey="k", batch=[{"task": "x"}] * 2
    )
    keyed_again = await desk.ok(
        "sessions_spawn", agentId="hang", idempotencyKey="k", batch=[{"task": "x"}] * 2
    )

    other = await desk.refused("sessions_spawn", task="x", agentId="hang", idempotencyKey="mine")

    assert f"stands for run {single['runId']}" in other.text
    assert "differs from the one that made it in task" in other.text
    assert ids(again.structured) == ids(first.structured)
    assert single["runId"] == ids(first.structured)[1]
    assert len(set(ids(keyed))) == 2
    assert ids(keyed_again) == ids(keyed)
    assert (await desk.ok("sessions_list"))["total"] == 5


@pytest.mark.requirement("tools:spawn:batch")
def test_the_largest_batch_is_answered_in_a_size_that_a_context_bears(tmp_path: Path) -> None:
    async def scenario(desk: ToolCaller) -> None:
        (Path(desk.home.cwd) / "there.txt").write_text("x")
        met = {"artifacts": [{"path": "there.txt", "fresh": False}]}
        batch: list[dict[str, Any]] = [{"task": "x", "label": f"n{n}"} for n in range(999)]
        batch.append({"task": "x", "label": "last one", "verification": met})
        answer = await desk.call("sessions_spawn", agentId="hang", lane="narrow", batch=batch)
        receipts = answer.structured["receipts"]

        assert isinstance(receipts, list)
        assert len({each["runId"] for each in receipts}) == 1000
        assert set(receipts[0]) == {"status", "runId", "label", "phase"}
        assert "vacuous" in receipts[-1]["warnings"][0]
        assert len(msgspec.json.encode(answer.structured)) < 90_000
        assert len(answer.text) <= ANSWER_CHARS_MAX

    limit = "max_children_per_agent = "
    play(tmp_path, scenario, CONFIG.replace(f"{limit}60", f"{limit}1000"))


def ids(document: Any) -> list[str]:
    return [each["runId"] for each in document["receipts"]]


@pytest.mark.requirement("tools:spawn:cwd")
async def test_a_run_works_where_its_caller_stands_unless_it_is_told_otherwise(
    desk: ToolCaller, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "other").mkdir()
    here = desk.elsewhere("p", cwd=str(tmp_path / "project"))
    await here.ok("sessions_spawn", task="pwd", agentId="shell", label="here")
    await here.ok(
        "sessions_spawn",
        task="pwd",
        agentId="shell",
        label="there",
        cwd=str(tmp_path / "other"),
    )
    waited = await here.ok("sessions_wait", until="all", timeoutSeconds=15)
    results = {each["label"]: each["result"].strip() for each in waited["completed"]}

    assert results == {
        "here": str(tmp_path / "project"),
        "there": str(tmp_path / "other"),
    }
    nowhere = desk.elsewhere("n", cwd=None)
    refused = await nowhere.refused("sessions_spawn", task="pwd", agentId="shell")
    assert "cwd is required" in refused.text


@pytest.mark.requirement("tools:spawn:cwd")
async def test_a_workers_child_works_where_the_worker_was_put(
    desk: ToolCaller, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    boss = await desk.worker("boss", cwd=str(tmp_path / "project"))
    child = await boss.spawn("quick")

    assert (await desk.home.services.engine.queries.run(child)).resolved.cwd == str(  # type: ignore[arg-type]  # an id from the wire
        tmp_path / "project"
    )


@pytest.mark.requirement("tools:spawn:nested")
async def test_a_worker_spawns_as_deep_as_it_may_and_is_told_the_depth_beyond(
    desk: ToolCaller,
) -> None:
    boss = await desk.worker("boss")
    leaf = await boss.worker("hang")
    refused = await leaf.refused("sessions_spawn", task="x")
    looking = await leaf.refused("sessions_list")

    assert refused.structured["status"] == "forbidden"
    assert refused.structured["details"] == {"guardrail": "depth"}
    assert (
        "sessions_spawn is not allowed at this depth (current depth: 2, max: 2; "
        "agents.defaults.subagents.max_spawn_depth)" in refused.text
    )
    assert looking.structured["details"] == {"guardrail": "depth"}
    not_allowed = await boss.refused("sessions_spawn", task="x", agentId="shell")
    assert 'agent "boss" may not spawn "shell" (allowed: hang, quick' in not_allowed.text


@pytest.mark.requirement("tools:unicode")
async def test_a_task_in_any_script_comes_to_the_worker_letter_by_letter(desk: ToolCaller) -> None:
    text = "naïve 🦉 — “quoted” \u2028 日本語 `$HOME`"
    label = "名前 🦉 né"
    run_id = await desk.spawn("shell", task=f"printf %s {shlex.quote(text)}", label=label)
    waited = await desk.ok("sessions_wait", runIds=[label], timeoutSeconds=15)

    assert waited["completed"][0]["runId"] == run_id
    assert waited["completed"][0]["label"] == label
    assert waited["completed"][0]["result"] == text
