"""The runtime llm as its tests start it and read its worker."""

import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from subagents.extensions.conversation.dialect import Opening
from subagents.extensions.llm.llm_assignment import FILE, Assignment
from subagents.extensions.llm.llm_runtime import LlmDialect

LLM: Final = LlmDialect()


KEY: Final = "sk-test-planted-0123456789"


def opening(**changes: Any) -> Opening:
    facts: dict[str, Any] = {
        "attempt_id": "r-abcdefghij#2",
        "run_id": "r-abcdefghij",
        "number": 2,
        "turn": 1,
        "message": "Do it.",
        "system_prompt": "You are a worker.",
        "cwd": "/home/ada/project",
        "session_uuid": "11111111-2222-4333-8444-555555555555",
        "model": "anthropic:claude-sonnet-4-5",
    }
    return Opening(**(facts | changes))


def assigned(tmp_path: Path, **changes: Any) -> Assignment:
    directory = tmp_path / "attempts" / "r-abcdefghij" / "2"
    directory.mkdir(parents=True, exist_ok=True)
    made = LLM.invocation(opening(**changes), directory=str(directory), path="")
    assert made.argv[:4] == (sys.executable, "-P", "-m", "subagents.extensions.llm.agent_loop")
    assert made.argv[4] == str(directory / FILE)
    return msgspec.json.decode(made.files[FILE], type=Assignment)
