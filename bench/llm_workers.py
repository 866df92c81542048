"""(w): what one turn of a worker costs in processor time, beside its model's own.

An ``llm`` worker with each provider's package, and Claude Code as it is and with what we hang into
it. The model is the scripted one of the tests: it answers with a word at once. Everything is
compiled before, as an installer or the first worker leaves it; without, a turn costs twice as much.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from tests.e2e.claude_place import program
from tests.e2e.scripted_model import Say, ScriptedModel

from bench.daemon import make_home, serving
from subagents.extensions.llm.llm_assignment import Assignment, Provider

KEY: Final = "BENCH_KEY"
ADDRESSES: Final[Mapping[Provider, str]] = {"openai": "/v1", "anthropic": "", "google": ""}
ANSWER: Final = "as it was told"
BRIDGE: Final = {"command": sys.executable, "args": ["-P", "-m", "subagents", "mcp"]}


def measure(here: Path, *, rounds: int) -> dict[str, float]:
    """Medians in seconds: ``openai``, ``anthropic``, ``google``; ``claude`` and ``claude_ours``
    where Claude Code is installed."""
    here.mkdir(exist_ok=True)
    with ScriptedModel({"w": [Say(ANSWER)]}) as model:
        found: dict[str, float] = {
            provider: _median(
                rounds, [*_LOOP, str(_assignment(here, provider, model.url + path))], {}, here
            )
            for provider, path in ADDRESSES.items()
        }
        claude = program()
        return found if claude is None else {**found, **_claude(claude, here, model.url, rounds)}


_LOOP: Final = (sys.executable, "-P", "-m", "subagents.extensions.llm.agent_loop")


def _assignment(here: Path, provider: Provider, url: str) -> Path:
    assignment = Assignment(
        attempt_id="r-1#1",
        message="script:w",
        system_prompt="You are measured.",
        cwd=str(here),
        provider=provider,
        model="scripted",
        key_env=KEY,
        base_url=url,
        session_file=str(here / f"{provider}.json"),
        session_id="r-1/1",
        limits_dir=str(here),
    )
    file = here / f"{provider}-assignment"
    file.write_bytes(msgspec.json.encode(assignment))
    return file


def _claude(claude: Path, here: Path, url: str, rounds: int) -> dict[str, float]:
    own = here / "claude"
    own.mkdir()
    (own / ".claude.json").write_text('{"hasCompletedOnboarding": true}')
    make_home(here / "h")
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "x",
        "CLAUDE_CONFIG_DIR": str(own),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "20000",
        "SUBAGENTS_HOME": str(here / "h"),
    }
    bare = [str(claude), "-p", "script:w", "--model=scripted"]
    servers = json.dumps({"mcpServers": {"subagents": {"type": "stdio", **BRIDGE}}})
    ours = [*bare, f"--mcp-config={servers}", "--strict-mcp-config"]
    with serving(here / "h"):
        return {
            "claude": _median(rounds, bare, env, here),
            "claude_ours": _median(rounds, ours, env, here),
        }


def _median(rounds: int, words: Sequence[str], env: Mapping[str, str], cwd: Path) -> float:
    """User and system time of a process and of those that it waited for, in seconds."""
    return statistics.median(_cpu_s(words, env, cwd) for _ in range(rounds))


def _cpu_s(words: Sequence[str], env: Mapping[str, str], cwd: Path) -> float:
    passed = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**passed, KEY: "none", **env},
        cwd=cwd,
    ) as process:
        said = b"" if process.stdout is None else process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or ANSWER.encode() not in said:
        raise RuntimeError(f"{words[0]}: {process.returncode}, {said[-500:]!r}")
    return used.ru_utime + used.ru_stime
