"""The rows of ``program_setups`` for agents that speak the Agent Client Protocol."""

import sys
from pathlib import Path
from typing import Final

from tests.e2e.program_setups import ProgramSetup
from tests.e2e.scripted_model import Use

AGENT: Final = str(Path(__file__).with_name("acp_agent.py"))

ACP: Final = ProgramSetup(
    name="acp",
    runtime="acp",
    edit=lambda path, text: Use("write", {"path": path, "content": text}),
    shell=lambda line: Use("shell", {"command": line}),
    shell_tool="Bash",
    options={
        "command": [sys.executable, AGENT],
        "second_prompt": "steers",
        "resumes": True,
        "tokens": "turn",
        "cost": True,
        "takes_model": True,
        "asking_mode": "ask",
        "scope": "asks",
    },
    env=lambda url, root: {"ANTHROPIC_BASE_URL": url, "ACP_AGENT_HOME": str(root / "sessions")},
    is_real=False,
)
"""Our own small agent (``acp_agent``)."""
