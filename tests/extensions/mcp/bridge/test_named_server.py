"""One server of ``[mcp_servers]`` as the program of a worker starts it."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest
from tests.e2e import small_mcp_server

from subagents.extensions.mcp.bridge.named_server import RemoteServer

SECRET = "weighing-key-7f3a9c51e0"
GIVEN = {
    "servers": {
        "scales": {
            "command": sys.executable,
            "args": ["-c", "import json, os; print(json.dumps(dict(os.environ)))"],
            "env": {"KEY": "secret:w"},
        }
    },
    "secrets": {"w": "SUBAGENTS_MCP_SECRET_1"},
}
WORKER = {
    "SUBAGENTS_TOKEN": "sa_r-1_1_x",
    "SUBAGENTS_MCP_SERVERS": json.dumps(GIVEN),
    "SUBAGENTS_MCP_SECRET_1": SECRET,
    "SUBAGENTS_RUN_ID": "r-1",
}
START = '"$PYTHON" -P -m subagents mcp --server=scales; true'
WITHOUT_SECRETS = f"env -u SUBAGENTS_TOKEN -u SUBAGENTS_MCP_SECRET_1 {START}"
"""As a program does that leaves out what is called a token or a secret."""
INITIALIZE = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
LIST = '{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'


def started(between: str, variables: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": os.environ["PATH"], "PYTHON": sys.executable, **variables}
    return subprocess.run(
        ["sh", "-c", between], env=env, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.requirement("mcp-servers:start")
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("between", [START, WITHOUT_SECRETS])
def test_a_server_gets_its_secrets_and_nothing_that_is_the_workers(between: str) -> None:
    found = json.loads(started(between, WORKER).stdout)

    assert found["KEY"] == SECRET
    assert found["SUBAGENTS_RUN_ID"] == "r-1"
    assert not {name for name in found if "TOKEN" in name or "SUBAGENTS_MCP" in name}


@pytest.mark.requirement("mcp-servers:start")
def test_without_a_worker_that_was_given_it_there_is_no_such_server() -> None:
    done = started(START, {"SUBAGENTS_TOKEN": "sa_r-1_1_x"})
    assert "was given an MCP server 'scales'" in done.stderr


@pytest.mark.requirement("mcp-servers:remote")
@pytest.mark.parametrize(("sent", "answered"), [("Bearer x", "tools"), ("Bearer y", "error")])
def test_one_that_answers_over_http_is_spoken_to_line_by_line(sent: str, answered: str) -> None:
    reading, writing = os.pipe()
    with small_mcp_server.serving("Bearer x") as url, os.fdopen(reading) as answers:
        server = RemoteServer(url, {"Authorization": sent}, writing)
        server.run(io.BytesIO(INITIALIZE.encode()))
        server.run(io.BytesIO(LIST.encode()))
        lines = [json.loads(answers.readline()) for _ in range(2)]
    os.close(writing)

    assert [each["id"] for each in lines] == [1, 2]
    assert answered in str(lines[1])
