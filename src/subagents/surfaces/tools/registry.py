"""Every tool by name: who sees which, and one call from argument to answer.

Source: 3-tools "Who is calling".
"""

from collections.abc import Mapping
from typing import Final

from subagents.surfaces.call import Caller, Services
from subagents.surfaces.tools.tool import Answer, Call, Tool

TOOLS: Final[Mapping[str, Tool]] = {}


def visible(used: Services, caller: Caller) -> tuple[Tool, ...]:
    """The tools this caller is shown, always in the same order."""
    raise NotImplementedError


async def call_tool(name: str, call: Call) -> Answer:
    """Run one tool; refusals are answers with ``is_error``, not exceptions.

    Raises:
        NotFound: No tool of that name is visible to the caller.
    """
    raise NotImplementedError
