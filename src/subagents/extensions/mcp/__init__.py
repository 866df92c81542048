"""MCP: the daemon's endpoint, and the bridge that clients start to reach it."""

# `subagents mcp` starts through this package, with every session of every client, and counts
# milliseconds: what the extension adds is imported when somebody asks for it.


def __getattr__(name: str) -> object:
    if name != "extension":
        raise AttributeError(name)
    from subagents.extensions.mcp.what_it_adds import extension  # noqa: PLC0415  see above

    return extension
