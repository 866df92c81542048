"""The socket on which a supervising program hears of runs and acts on them."""

from subagents.extension import Extension

extension = Extension(
    name="supervisor",
    listeners="subagents.extensions.supervisor.supervisor_socket:listeners",
)
