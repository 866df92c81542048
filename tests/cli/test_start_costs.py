"""What a frequent command costs before and beside its work, in things that can be counted.

The bounds may only shrink. Modules and calls are those of Python 3.11 with five calls in a hundred
of room, for other versions and for what the clock and a row say in more or fewer words: what one
careless import costs is ten times that.
"""

import json
import subprocess
import sys
from typing import Final, NamedTuple

import pytest
from tests.cli.cli_home import TIMEOUT_S, Home, gate, until

from subagents.config.paths import Paths

COUNTED: Final = """
import sys
loaded, calls, requests = set(sys.modules), 0, []

def count(frame, event, argument):
    global calls
    # How modules are found depends on what was compiled before.
    calls += event == "call" and not frame.f_code.co_filename.startswith("<frozen importlib")

sys.setprofile(count)
from subagents.client import transport

send = transport.Connection.send

def counted(self, sent, **keywords):
    requests.append(sent.split(b" HTTP", 1)[0].decode())
    return send(self, sent, **keywords)

transport.Connection.send = counted
from subagents.cli.main import main
code = main(sys.argv[1:])
sys.setprofile(None)
found = {"code": code, "calls": calls, "requests": requests}
modules = sorted(set(sys.modules) - loaded)
import json
sys.stderr.write("\\n" + json.dumps({**found, "modules": modules}))
"""
SLOW: Final = frozenset(
    (
        *("msgspec", "argparse", "pathlib", "urllib", "dataclasses", "inspect", "uuid"),
        *("asyncio", "subprocess", "typing_extensions", "platformdirs", "ipaddress"),
    )
)


class Cost(NamedTuple):
    """Of one command."""

    modules: int
    calls: int
    requests: int


RUN: Final = "RUN"
"""Stands for a run that is there."""
ONE_ROW: Final = ("--limit", "1")
"""How many runs there are, the tests before this one decide; each row costs some calls."""
COSTS: Final = {
    ("list", *ONE_ROW): Cost(81, 7_150, 1),
    ("list", "--json", *ONE_ROW): Cost(80, 7_150, 1),
    ("list", "--now", RUN): Cost(81, 7_100, 2),
    ("spawn", "true"): Cost(81, 7_900, 1),
    ("run", "true"): Cost(92, 8_400, 3),
    ("run", "true", "-l", "x", "--timeout", "5m", "--tag", "t"): Cost(95, 9_750, 3),
    ("wait", RUN): Cost(88, 7_050, 2),
    ("inbox",): Cost(90, 7_800, 2),
    ("report", "done", "--run", RUN): Cost(78, 7_050, 1),
    ("progress", "half", "50", "--run", RUN): Cost(78, 7_050, 1),
    ("notify", "here", "--run", RUN): Cost(78, 7_000, 1),
}


@pytest.mark.requirement("cli:start-up")
@pytest.mark.parametrize("argv", COSTS, ids=" ".join)
def test_a_frequent_command_costs_no_more_than_it_did(shared: Home, argv: tuple[str, ...]) -> None:
    told = argv[0] in {"report", "progress", "notify"}
    run = shared.spawn(gate("told") if told else "true")
    if argv[0] == "wait":
        shared.ok("run", "true", "--after", run)
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *(run if each == RUN else each for each in argv)],
        capture_output=True,
        text=True,
        cwd=shared.work,
        env=shared.env(),
        timeout=TIMEOUT_S,
        check=False,
    )
    if told:
        shared.ok("cancel", run)
    found = json.loads(done.stderr.splitlines()[-1])
    assert found["code"] == 0, done.stderr
    assert not SLOW & {each.partition(".")[0] for each in found["modules"]}
    bound = COSTS[argv]
    cost = Cost(len(found["modules"]), found["calls"], len(found["requests"]))
    assert all(spent <= most for spent, most in zip(cost, bound, strict=True)), (
        f"{cost}, at most {bound}: {found['requests']} {found['modules']}"
    )


DAEMON: Final = """
import atexit, gc, json, sys

def count():
    ours = [each for each in sys.modules if each.partition(".")[0] == "subagents"]
    print(json.dumps({"collects": gc.isenabled(), "modules": ours}))

atexit.register(count)
from subagents.cli.main import main
main(["serve"])
"""
DAEMON_MODULES: Final = 500
LATER: Final = (
    *("subagents.api.tools.tool_registry", "subagents.extensions.mcp.mcp_methods"),
    *("subagents.extensions.cluster.node_parts", "subagents.extensions.cluster.api.forwarding"),
    *(
        "subagents.extensions.notifications.chat_threads",
        "subagents.engine.verification.junit_reports",
    ),
)
"""What a daemon imports for its first agent, in a cluster, with a chat room, for a report."""


@pytest.mark.requirement("cli:start-up")
def test_a_daemon_imports_at_its_start_no_more_than_it_did_and_collects_garbage(home: Home) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DAEMON],
        stdout=subprocess.PIPE,
        text=True,
        cwd=home.work,
        env=home.env(),
    ) as daemon:
        until(Paths.resolve(home.env()).socket.exists, "it listens")
        daemon.terminate()
        found = json.loads(daemon.communicate(timeout=TIMEOUT_S)[0].splitlines()[-1])

    assert found["collects"]
    assert not set(LATER) & set(found["modules"])
    assert len(found["modules"]) <= DAEMON_MODULES, len(found["modules"])
