"""What is asked about worktrees over HTTP."""

import asyncio
import socket
from pathlib import Path

import pytest
from tests.api.home_daemon import DEADLINE_S, Home, play


@pytest.mark.requirement("worktree:diff")
def test_whoever_leaves_before_a_diff_is_there_leaves_nobody_looking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(home: Home) -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def far_away(*_: object) -> None:
            begun.set()
            try:
                await asyncio.Future()
            finally:
                ended.set()

        monkeypatch.setattr(home.services.engine.workspaces, "diff", far_away)
        run_id = (await home.spawn("hang"))["runId"]
        with socket.socket(socket.AF_UNIX) as gone:
            gone.connect(str(home.services.paths.socket))
            gone.sendall(f"GET /v1/runs/{run_id}/diff HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            await asyncio.wait_for(begun.wait(), DEADLINE_S)
        await asyncio.wait_for(ended.wait(), DEADLINE_S)

    play(tmp_path, scenario)
