"""The real agents that speak ACP, as workers: their models follow a script, all else is real.

One program after the other; each cell of ``runtime_cells`` that its row promises must hold.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.live_home import until
from tests.e2e.runtime_cells import CELLS, NEEDS, Place, place_of
from tests.e2e.scripted_model import Fail, Say, Use
from tests.real.acp_programs import SETUPS

from subagents.extensions.acp.acp import AcpDialect

pytestmark = pytest.mark.timeout(300)

OWN_AGENTS = {
    "cline": Use("spawn_agent", {"systemPrompt": "You work.", "task": "script:own"}),
    "copilot": Use(
        "task",
        {
            "agent_type": "general-purpose",
            "name": "own",
            "description": "as told",
            "prompt": "script:own",
            "mode": "sync",
        },
    ),
}
LEFT_BEHIND = "setsid tail -f /dev/null & echo $! > child.pid; tail -f /dev/null"


@pytest.fixture(scope="module", params=sorted(SETUPS))
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    setup = SETUPS[request.param]
    why_not = setup.missing()
    if why_not is not None:
        pytest.skip(why_not)
    with place_of(setup, tmp_path_factory.mktemp(setup.name)) as found:
        yield found


def abilities(place: Place) -> dict[str, Any]:
    able = AcpDialect().abilities_of({"agent": place.setup.name})
    return {name: getattr(able, name) for name in able.__struct_fields__}


@pytest.mark.requirement("acp:real:cells")
@pytest.mark.parametrize("cell", CELLS)
def test_each_agent_does_what_its_row_promises(place: Place, cell: str) -> None:
    needs = NEEDS.get(cell, ())
    if needs and not any(abilities(place)[each] for each in needs):
        pytest.skip(f"{place.setup.name} promises no {cell}")

    found = CELLS[cell](place)

    if cell == "steer":
        assert found == ("same turn" if abilities(place)["steer"] else "next turn")


@pytest.mark.requirement("acp:real:own-agents")
def test_what_is_denied_is_not_done_by_an_agent_of_the_programs_own(place: Place) -> None:
    if place.setup.name not in OWN_AGENTS:
        pytest.skip(f"{place.setup.name}: not tried")
    tried = place.path("forbidden-too")
    denied = place.setup.shell(f"touch {tried}")
    forced = Use(denied.tool, denied.arguments, is_declared=False)
    place.model.scripts["own"] = [forced, Say("tried")]
    place.model.scripts["asks-own"] = [OWN_AGENTS[place.setup.name], Say("asked")]

    done = place.finished("asks-own", toolsDeny=[place.setup.shell_tool])

    assert done["outcome"]["status"] == "ok", done["outcome"]
    assert not tried.exists()


@pytest.mark.requirement("acp:real:left-behind")
def test_a_child_in_a_session_of_its_own_does_not_outlive_a_cancelled_run(place: Place) -> None:
    place.path("child.pid").unlink(missing_ok=True)
    place.model.scripts["leaves"] = [place.setup.shell(LEFT_BEHIND), Say("never said")]
    run_id = place.spawn("leaves")
    until(lambda: place.path("child.pid").exists(), what="the child", within_s=90)
    child = int(until(lambda: place.path("child.pid").read_text().strip(), what="its id"))

    place.home.post(f"/v1/runs/{run_id}/cancel")

    until(lambda: not Path(f"/proc/{child}").exists(), what="the end of the child", within_s=15)
    until(lambda: not place.home.of_run(run_id), what="no process left", within_s=15)


@pytest.mark.requirement("acp:real:failure")
def test_a_request_that_the_provider_refuses_is_an_error_of_the_run(place: Place) -> None:
    place.model.scripts["refused"] = [Fail(400, times=None), Say("never")]

    outcome = place.finished("refused")["outcome"]

    assert outcome["status"] == "error", outcome
    # pi-acp keeps the reason to itself.
    why = "no answer" if place.setup.name == "pi-acp" else "the script says no"
    assert why in outcome["error"], outcome
