"""Programs that call us when no daemon runs: they start it, have our tools at once, and end."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.scripted_model import Say, Use
from tests.real.permission_table import CALLERS, Caller, Place, call, place_of

COLD = {each.program: each for each in CALLERS if each.program}
"""One of each program; the default suite has the same of Claude Code."""

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def place() -> Iterator[Place]:
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="cold-") as directory,
        place_of(Path(directory), started=False) as found,
    ):
        yield found


@pytest.mark.requirement("real:cold-start", "daemon:outlives-its-starter")
@pytest.mark.parametrize("caller", COLD.values(), ids=COLD)
def test_the_first_turn_has_our_tools_and_the_work_outlives_the_program(
    place: Place, caller: Caller
) -> None:
    if not caller.is_here():
        pytest.skip(f"{caller.program} is not installed")
    gate = place.project / "go"
    task = f"until [ -e {gate} ]; do sleep 0.05; done; echo lived on"
    place.model.scripts["caller"] = [
        Use("sessions_spawn", {"task": task, "agentId": "sh", "label": "it"}),
        Say("it works; I leave"),
    ]

    call(caller, place)

    first = next(each for each in place.model.conversations if each.place() == ("caller", 0))
    assert any(name.endswith("sessions_spawn") for name in first.tools)
    daemon = place.home.get("/version")["pid"]
    run_id = place.home.row("it")["runId"]
    gate.touch()
    assert place.home.finish(run_id)[0]["result"].strip() == "lived on"
    assert place.home.get("/version")["pid"] == daemon
