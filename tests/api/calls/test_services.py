"""What the daemon's calls know of disks, and where they read configuration."""

import threading
from pathlib import Path
from typing import Any, Final

import pytest
from tests.api.home_daemon import Home, build, play, segment

from subagents.config.layers import Config


@pytest.mark.requirement("operations:disk")
def test_the_room_on_the_disk_that_holds_the_state_is_known(tmp_path: Path) -> None:
    assert build(tmp_path).free_bytes() > 0


READS_CONFIGURATION: Final = (
    ("POST", "/v1/runs", {"spec": {"task": "x", "agentId": "quick"}}),
    ("POST", "/v1/runs/dry-run", {"spec": {"task": "x", "agentId": "quick"}}),
    ("POST", "/v1/plans", {"specs": [{"task": "x", "agentId": "quick"}]}),
    ("POST", "/v1/plans/dry-run", {"specs": [{"task": "x", "agentId": "quick"}]}),
    ("GET", "/v1/agents?cwd={cwd}", None),
    ("GET", "/v1/agents/suggest?cwd={cwd}", None),
    ("GET", "/v1/config?cwd={cwd}", None),
)


def play_off_the_loop(
    tmp_path: Path, method: str, path: str, body: dict[str, Any] | None, *, is_operator: bool
) -> None:
    """Make a call, and see that whatever configuration it reads is read in another thread."""

    async def scenario(home: Home) -> None:
        load, on_loop = home.services.load_config, []

        def watched(*asked: Any) -> Config:
            on_loop.append(threading.current_thread() is threading.main_thread())
            return load(*asked)

        object.__setattr__(home.services, "load_config", watched)
        headers = {} if is_operator else {"X-Subagents-Caller": "agent"}
        given = None if body is None else {**body, "cwd": home.cwd}
        status, _ = await home.call(method, path.format(cwd=segment(home.cwd)), given, headers)

        assert status < 400 or not is_operator
        assert on_loop == [] if status >= 400 else on_loop and not any(on_loop)

    play(tmp_path, scenario)


@pytest.mark.requirement("config:off-the-loop")
@pytest.mark.parametrize("is_operator", [True, False], ids=["operator", "agent"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    READS_CONFIGURATION,
    ids=[f"{method} {path}" for method, path, _ in READS_CONFIGURATION],
)
def test_no_call_reads_a_projects_file_on_the_loop_that_serves_everybody(
    tmp_path: Path, method: str, path: str, body: dict[str, Any] | None, *, is_operator: bool
) -> None:
    play_off_the_loop(tmp_path, method, path, body, is_operator=is_operator)
