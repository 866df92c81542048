"""The real Claude Code is probed: its model does as the probe asks, also with denied tools."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.e2e.claude_place import ClaudePlace, program
from tests.e2e.live_home import LiveHome, live_home
from tests.e2e.scripted_model import Conversation, Say, ScriptedModel, Turn, Use, _answer
from tests.e2e.scripted_wires import Answer

pytestmark = [
    pytest.mark.skipif(program() is None, reason="claude-agent-sdk is not installed"),
    pytest.mark.timeout(115),
]
PROBE_S: Final = 100.0
PATIENT: Final = "python3 -c 'import time; time.sleep(1)'"


class ObedientModel(ScriptedModel):
    """Does what each task of the probe asks for, by its very name, whether the tool is there or
    not: a model that a deny list would have to hold.
    """

    def __init__(self) -> None:
        super().__init__({})
        self.denied: list[str] = []
        """What Claude Code answered to a shell command in a session without a shell."""

    def answer(self, conversation: Conversation, *, is_there: Callable[[], bool]) -> Answer:
        if not conversation.tools:
            return Answer([{"type": "text", "text": "ok"}])
        steps = sum(message["role"] == "assistant" for message in conversation.messages)
        return _answer(self._turn(conversation), ("probe", steps), conversation)

    def _turn(self, conversation: Conversation) -> Turn:
        seen = conversation.seen
        told = re.findall(r"The word is (kiwi[0-9a-f]+)", seen)
        if "Run the shell command `python3" in seen:
            return Say(told[-1]) if told else Use("Bash", {"command": PATIENT})
        (word,) = set(re.findall(r"plum[0-9a-f]+", seen))
        if "asked to answer with before" in seen or conversation.results:
            if "Bash" not in conversation.tools:
                self.denied += conversation.results
            return Say(word)
        (file,) = set(re.findall(r"canary-[0-9a-f]+", seen))
        return Use("Bash", {"command": f"touch {file}"}, is_declared=False)


@contextmanager
def probed_home(root: Path) -> Iterator[tuple[LiveHome, ObedientModel, ClaudePlace]]:
    with live_home(root) as home, ObedientModel() as model:
        (home.work / "subagents.toml").write_text(
            '[agents.claude]\nruntime = "claude-code"\nmodel = "scripted"\n'
            'pass_env = ["E2E_MARK"]\n'
        )
        yield home, model, ClaudePlace(home, model)


def cli(place: ClaudePlace, *argv: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "subagents", *argv, "--json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=place.project,
        env=place.env,
        timeout=PROBE_S,
        check=False,
    )
    assert done.stdout, done.stderr.decode()
    return done.returncode, msgspec.json.decode(done.stdout, type=dict[str, Any])


@pytest.mark.requirement("probe:claude-code")
def test_claude_code_is_proven_to_keep_to_a_scope_to_resume_and_to_take_messages(
    tmp_path: Path,
) -> None:
    with probed_home(tmp_path) as (_, model, place):
        code, found = cli(place, "doctor", "--probe", "claude", "--yes")

    assert "claims" in found, found
    verdicts = {each["name"]: (each["verdict"], each["detail"]) for each in found["claims"]}
    assert {name: verdict for name, (verdict, _) in verdicts.items()} == {
        "works": "proven",
        "scope": "proven",
        "usage": "proven",
        "resume": "proven",
        "steer": "proven",
    }, verdicts
    assert code == 0
    assert found["runs"] == 4
    assert model.denied, "the model did call the denied tool"
    assert "No such tool available" in model.denied[0]
    assert re.search(r"\d+\.\d+\.\d+", str(found["version"]))
