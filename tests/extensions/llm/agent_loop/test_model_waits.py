"""A model's wait goes on over the deaths of daemons."""

import pytest
from tests.client.test_waits_over_deaths import (
    LoopClient,
    answer_to,
    loop,
    on_virtual_time,
)
from tests.client.turned_clock import MortalDaemons
from tests.simulation.virtual_loop import VirtualLoop

from subagents.client.client import AsyncClient
from subagents.extensions.llm.agent_loop.tools import daemon_tools

__all__ = ["loop"]


async def is_a_model(client: AsyncClient) -> object:
    tools = daemon_tools.DaemonTools((), lambda: False)
    tools._client = lambda *_: client  # type: ignore[method-assign]
    returned, _ = await tools._answer(
        "sessions_wait", {"timeoutSeconds": 270}, "c1", may_repeat=True
    )
    return returned.text


@pytest.mark.requirement("client:waits-over-deaths")
def test_a_models_wait_survives_daemons_that_die_when_it_is_older_than_any_limit(
    loop: VirtualLoop,
) -> None:
    daemons = MortalDaemons(3, answer_to, loop.time, lives_s=50.0)
    assert on_virtual_time(is_a_model(LoopClient(daemons)), loop)
    assert len(daemons.asked) == 4
