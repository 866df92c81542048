"""A tool server whose environment was cleaned finds the worker it belongs to."""

import json
import os
import subprocess
import sys

import pytest

ASK = """
import json, os
from subagents.extensions.mcp.bridge.worker_above import worker_variables
print(json.dumps(worker_variables(os.environ)))
"""


def asked(*, between: str, **variables: str) -> dict[str, str]:
    """What a process below ``between`` finds, started with these variables."""
    env = {"PATH": os.environ["PATH"], "PYTHON": sys.executable, "ASK": ASK, **variables}
    done = subprocess.run(
        ["sh", "-c", between], env=env, capture_output=True, text=True, check=True, timeout=60
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


WORKER = {
    "SUBAGENTS_SOCKET": "/run/s.sock",
    "SUBAGENTS_SESSION_KEY": "agent:a:subagent:1",
    "SUBAGENTS_TOKEN": "sa_r-1_1_secret",
}
BELOW = 'env -i PATH="$PATH" "$PYTHON" -c "$ASK"; true'
"""The shell stays above it, with the variables; what it starts has none."""


@pytest.mark.requirement("bridge:worker:cleaned-environment")
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_cleaned_tool_server_finds_its_workers_token_above_it() -> None:
    assert asked(between=BELOW, **WORKER) == WORKER


@pytest.mark.requirement("bridge:worker:nobody-above")
def test_without_a_worker_above_nothing_is_found() -> None:
    assert asked(between=BELOW) == {}


@pytest.mark.requirement("bridge:worker:own-token")
def test_a_token_of_its_own_is_enough() -> None:
    assert asked(between='"$PYTHON" -c "$ASK"; true', **WORKER) == {}
