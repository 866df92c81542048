"""The methods of ``/mcp``: what a client is told when it connects, and what extensions add."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest
from tests.api.home_daemon import Home
from tests.extensions.mcp.mcp_clients import ERAS, connected, desk, each_era

from subagents import extension
from subagents.api.calls.services import Services
from subagents.extensions.mcp.mcp_methods import create_server
from subagents.extensions.mcp.mcp_server import Method
from subagents.version import __version__


@pytest.mark.requirement("extensions:mcp")
def test_each_extension_is_given_the_methods_with_those_of_the_ones_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []

    def adds(_services: Services, known: Mapping[str, Method]) -> Mapping[str, Method]:
        return {"acme/look": known["ping"]}

    def looks(_services: Services, known: Mapping[str, Method]) -> Mapping[str, Method]:
        seen.extend(known)
        return {}

    def made(hook: str, *given: Any) -> Iterator[tuple[str, Any]]:
        assert hook == "mcp"
        yield from ((each.__name__, each(*given)) for each in (adds, looks))

    monkeypatch.setattr(extension, "made", made)
    create_server(cast(Services, None))

    assert {"acme/look", "ping", "tools/call"} <= {*seen}


@pytest.mark.requirement("mcp:eras", "mcp:fleet")
@each_era
async def test_a_client_of_either_era_is_told_who_we_are_and_whom_it_may_use(
    daemon: Home, era: str
) -> None:
    async with connected(daemon, era, desk(daemon)) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == (
            "subagents",
            __version__,
        )
        told = client.instructions or ""
        assert "sessions_spawn" in told
        assert "- quick: Answers at once (fast; cost free; about 1s; No tools)" in told
        assert "hidden" not in told
        assert len(told) < 3000


@pytest.mark.requirement("mcp:fleet")
async def test_who_may_spawn_nobody_is_told_which_key_allows_it(daemon: Home) -> None:
    other = desk(daemon, "agent:nobody:desk")
    async with connected(daemon, ERAS[1], other) as client:
        assert "agents.nobody.subagents.allow_agents" in (client.instructions or "")
