"""The runtime llm as its tests start it and read its worker."""

import sys
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.extensions.conversation.folds import an_opening

from subagents.extensions.conversation.dialect import Opening
from subagents.extensions.llm.llm_assignment import FILE, Assignment
from subagents.extensions.llm.llm_runtime import LlmDialect

LLM: Final = LlmDialect()


KEY: Final = "sk-test-planted-0123456789"


def opening(**changes: Any) -> Opening:
    second = {"attempt_id": "r-abcdefghij#2", "number": 2, "model": "anthropic:claude-sonnet-4-5"}
    return an_opening(**(second | changes))


def assigned(tmp_path: Path, **changes: Any) -> Assignment:
    directory = tmp_path / "attempts" / "r-abcdefghij" / "2"
    directory.mkdir(parents=True, exist_ok=True)
    made = LLM.invocation(opening(**changes), directory=str(directory), path="")
    assert made.argv[:4] == (sys.executable, "-P", "-m", "subagents.extensions.llm.agent_loop")
    assert made.argv[4] == str(directory / FILE)
    return msgspec.json.decode(made.files[FILE], type=Assignment)
