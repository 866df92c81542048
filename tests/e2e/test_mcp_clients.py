"""The blocks of docs/howto/mcp-clients.md as they stand: real libraries, bridge and daemon.

Only the model follows a script, on the wire that each library speaks. LangGraph's libraries cannot
be installed beside us: `make test-clients` gives them an environment of their own.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.bubblewrap import needs_bubblewrap
from tests.e2e.claude_place import program
from tests.e2e.live_home import MARK, LiveHome, live_home, until
from tests.e2e.scripted_forms import Answer, user
from tests.e2e.scripted_model import Conversation, Fail, Say, Script, ScriptedModel, Turn, Use

from subagents.config.paths import session_name
from subagents.domain.run.events import AnnouncementConsumed

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "howto" / "mcp-clients.md"
OTHERS: Final = Path(os.environ.get("SUBAGENTS_CLIENTS", ROOT / ".clients"))
"""The environment of what needs another ``mcp`` than we do."""
BOUND_S: Final = 180.0
RUN: Final = r'"runId": ?"(r-[a-z0-9]+)"'
CLIENTS: Final[dict[str, list[pytest.MarkDecorator]]] = {
    "Claude Agent SDK": [
        needs_bubblewrap,  # it may only read, and spawns nobody who is not kept to that
        pytest.mark.skipif(program() is None, reason="claude-agent-sdk is not installed"),
    ],
    "OpenAI Agents SDK": [],
    "Pydantic AI": [],
    "LangGraph": [pytest.mark.tier("soak")],
}
"""By heading of the page."""


class OneScript(ScriptedModel):
    """Every conversation follows one script: readers do not write the marks of our tests."""

    def answer(self, conversation: Conversation, *, is_there: Callable[[], bool]) -> Answer | Fail:
        messages = [user("script:delegate"), *conversation.messages]
        marked = replace(conversation, body={**conversation.body, "messages": messages})
        return super().answer(marked, is_there=is_there)


def block(client: str) -> str:
    """The program below the heading."""
    section = PAGE.read_text("utf-8").partition(f"\n## {client}\n")[2].partition("\n## ")[0]
    (found,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return str(found)


def unread(home: LiveHome) -> list[object]:
    client = home.client(session=f"agent:main:{session_name(home.work)}")
    rows = client.get("/v1/inbox")["messages"]
    assert isinstance(rows, list)
    return rows


def delegating(home: LiveHome) -> Script:
    """Two workers, one wait for both, and the results as the last words."""

    def wait(seen: Conversation) -> Turn:
        runs = seen.found(RUN)
        return Use("sessions_wait", {"runIds": runs, "until": "all", "timeoutSeconds": 20})

    def tell(seen: Conversation) -> Turn:
        until(lambda: not unread(home), what="the answer is read")
        results = re.findall("the (?:first|second)", seen.results[-1])
        return Say(f"got {' and '.join(sorted(results))}")

    spawns = [
        Use("sessions_spawn", {"task": f"printf 'the %s' {name}", "agentId": "sh", "label": name})
        for name in ("first", "second")
    ]
    return [(spawns[0], spawns[1]), wait, tell]


def environment(home: LiveHome, model: ScriptedModel) -> dict[str, str]:
    """What a reader has in the shell; the model's address is what a company's gateway would be."""
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home.root),
        "SUBAGENTS_HOME": str(home.paths.state_dir.parent),
        MARK: home.mark,
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }


@pytest.mark.requirement("mcp:client-libraries")
@pytest.mark.parametrize(
    "client", [pytest.param(name, marks=marks) for name, marks in CLIENTS.items()]
)
def test_an_agent_of_ones_own_delegates_to_two_workers_and_reads_both_results(
    tmp_path: Path, client: str
) -> None:
    python = OTHERS / "bin" / "python" if client == "LangGraph" else Path(sys.executable)
    with live_home(tmp_path) as home, OneScript({"delegate": delegating(home)}) as model:
        done = subprocess.run(
            [str(python), "-c", block(client)],
            cwd=home.work,
            env=environment(home, model),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
        )

        assert done.returncode == 0, done.stderr
        assert "got the first and the second" in done.stdout, (done.stdout, done.stderr)
        runs = home.get("/v1/runs", requester=f"agent:main:{session_name(home.work)}")["runs"]
        assert sorted(row["label"] for row in runs) == ["first", "second"]
        read = [len(home.events(row["runId"], AnnouncementConsumed)) for row in runs]
        assert read == [1, 1], json.dumps(runs)


@pytest.mark.requirement("mcp:client-libraries")
def test_the_page_shows_one_program_for_each_client() -> None:
    shown = re.findall(r"^## (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert shown == list(CLIENTS)
