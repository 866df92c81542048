"""The command ``subagents``, also as ``python -m subagents``.

Clients start ``subagents mcp`` with every session and count the time until it speaks. So that
command is found before anything is imported that it does not need.
"""

import sys

from subagents.cli.standard_streams import prepare

MCP_FRONT = "subagents.extensions.mcp.bridge.mcp_front"
"""Known by name, as all extensions are; the table of commands takes too long to import."""


def main() -> int:
    """Run the command that this process's arguments name; returns the exit code."""
    prepare()
    words = sys.argv[1:]
    # `mcp install` and the like are commands of their own.
    if words[:1] == ["mcp"] and (len(words) == 1 or _is_option(words[1])):
        # importlib takes as long to import as the rest of this takes together.
        code: int = __import__(MCP_FRONT, fromlist=["serve"]).serve(words[1:])
        return code
    from subagents.cli.main import main as run  # noqa: PLC0415

    return run()


def _is_option(word: str) -> bool:
    return word.startswith("--") and word != "--help"


if __name__ == "__main__":
    sys.exit(main())
