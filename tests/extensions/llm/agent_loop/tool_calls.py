"""Calls of the worker's own tools, as its model makes them."""

import asyncio

from subagents.extensions.llm.agent_loop.tools.loop_tools import LoopTool, own_tools
from subagents.extensions.llm.agent_loop.tools.path_bounds import PathBounds, ToolRefused
from subagents.extensions.llm.agent_loop.tools.shell_tool import (
    Shell,
)

BOUND_S = 60.0


def tool(bounds: PathBounds, name: str) -> LoopTool:
    return own_tools([name], bounds, Shell(str(bounds.root), ()), shell_timeout_s=5)[0]


def call(bounds: PathBounds, name: str, **arguments: object) -> str:
    """What a tool says, or refuses with."""
    try:
        return asyncio.run(_run(tool(bounds, name), arguments))
    except ToolRefused as refusal:
        return f"refused: {refusal}"


async def _run(made: LoopTool, arguments: dict[str, object]) -> str:
    return (await made.run(arguments, "c1")).text
