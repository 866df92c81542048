"""Where agents keep their sessions, for a sandbox around them."""

import pytest

from subagents.extensions.acp.acp_agents import AGENTS
from subagents.extensions.acp.acp_places import PLACES, known, places


@pytest.mark.requirement("access:sandbox")
def test_every_agent_of_the_table_has_a_place_for_its_sessions() -> None:
    assert set(PLACES) == set(AGENTS)
    assert all(each.writable for each in PLACES.values())
    assert not known(None).stays_near


@pytest.mark.requirement("access:sandbox")
def test_places_are_those_of_the_workers_environment() -> None:
    env = {"HOME": "/home/me", "XDG_CONFIG_HOME": "/conf"}
    found = places("goose", env)
    assert found.guarded == ("/conf/goose/",)
    assert "/home/me/.local/share/goose" in found.writable
    assert places("nobody", env) == ((), ())
