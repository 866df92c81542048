"""Codex's own sandbox is the ceiling of what it spawns; as Codex 0.169 says it with each call."""

from pathlib import Path
from typing import Any

import pytest
from tests.api.home_daemon import Home
from tests.extensions.mcp.mcp_clients import Wire, play

from subagents.domain.run.access import AccessLevel
from subagents.domain.run.values import RunId
from subagents.extensions.codex.codex_sandbox import CAPABILITY, TURN, ceiling_of

ROOT: dict[str, Any] = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}
WORK: dict[str, Any] = {"path": {"type": "path", "path": "/work"}, "access": "write"}


def meta(mode: str | None, *entries: object, network: str = "restricted") -> dict[str, object]:
    """What comes with a call; with no entries the profile is that of no sandbox."""
    profile: dict[str, object] = {"type": "disabled"}
    if entries:
        system = {"type": "restricted", "entries": list(entries)}
        profile = {"type": "managed", "file_system": system, "network": network}
    state = {"permissionProfile": profile, "sandboxCwd": "file:///my%20work"}
    turn = {} if mode is None else {TURN: {"sandbox_mode": mode}}
    return {**turn, CAPABILITY: state}


@pytest.mark.requirement("access:caller-is-ceiling")
@pytest.mark.parametrize(
    ("said", "level", "below", "network"),
    [
        (meta("read-only", ROOT), "read", None, False),
        (meta("workspace-write", ROOT, WORK), "write", "/my work", False),
        (meta("workspace-write", ROOT, WORK, network="enabled"), "write", "/my work", True),
        (meta("danger-full-access"), "full", None, True),
        (meta(None, ROOT), "read", None, False),
        (meta(None, ROOT, WORK), "write", "/my work", False),
        (meta(None), "full", None, True),
        ({TURN: {"sandbox_mode": "workspace-write"}}, "write", "/cwd", False),
        (meta("of-next-year", ROOT), "read", None, False),
        ({CAPABILITY: {"permissionProfile": {"type": "managed"}}}, "read", None, False),
        ({CAPABILITY: {"permissionProfile": {"network": {}}}}, "read", None, False),
        (
            {TURN: {"sandbox_mode": "workspace-write"}, CAPABILITY: {"sandboxCwd": "file://["}},
            *("write", "/cwd", False),
        ),
    ],
)
def test_its_sandbox_is_a_ceiling(
    said: dict[str, object],
    level: str,
    below: str | None,
    network: bool,  # noqa: FBT001
) -> None:
    found = ceiling_of(said, cwd="/cwd")
    assert found is not None
    assert (found.level, found.below, found.network) == (AccessLevel(level), below, network)
    assert "Codex" in found.source


@pytest.mark.requirement("access:caller-is-ceiling")
@pytest.mark.parametrize("said", [None, {}, {"progressToken": 1}, {TURN: "odd"}, {TURN: {}}])
def test_whoever_says_nothing_has_no_known_ceiling(said: dict[str, object] | None) -> None:
    assert ceiling_of(said, cwd="/cwd") is None


@pytest.mark.requirement("access:caller-is-ceiling")
def test_codex_spawns_below_its_sandbox_by_a_call_and_by_a_task(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        for wire in (Wire(home), Wire(home, tasks=False)):
            said = {
                "name": "sessions_spawn",
                "arguments": {"task": "work", "agentId": "quick"},
                "_meta": meta("read-only", ROOT),
            }
            answer = await wire.ok("tools/call", **said)
            run_id = answer.get("taskId") or answer["structuredContent"]["runId"]
            run = await home.services.engine.queries.run(RunId(run_id))
            access = run.resolved.access
            assert access is not None
            assert access.level == AccessLevel.READ
            assert access.narrowed is not None
            assert access.narrowed.startswith('Codex in its sandbox "read-only" may')

    play(tmp_path, scenario)
