"""Lines of ACP agents: recorded, and made up."""

from pathlib import Path

from hypothesis import strategies as st
from tests.extensions.acp.acp_folds import (
    AcpFold,
    agent_of,
    of_agent,
    recordings,
)

from subagents.extensions.acp.acp_agents import AGENTS

RECORDINGS = recordings()


def played(recording: Path, *, at_ms: int | None = 5) -> AcpFold:
    """The whole recording, heard by its agent's row."""
    is_later = ".loaded." in recording.name or ".resumed." in recording.name
    session_id = "s-old" if is_later or ".unknown-session." in recording.name else None
    deny = ("Bash",) if ".denied." in recording.name else ()
    given = of_agent(agent_of(recording), session_id=session_id, tools_deny=deny)
    fold = AcpFold(given, now_ms=at_ms)
    for line in recording.read_bytes().splitlines():
        fold.hear(line)
    fold.finish()
    return fold


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)

AGENT_NAMES = sorted(AGENTS)
