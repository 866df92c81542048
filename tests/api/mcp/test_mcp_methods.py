"""The methods of ``/mcp``: those of extensions stand beside the core's, or around them."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from subagents import extension
from subagents.api.calls.services import Services
from subagents.api.mcp.mcp_methods import create_server
from subagents.api.mcp.mcp_server import Method


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
