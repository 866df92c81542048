"""A worker of part p that spawns others: ``python page_lead.py FIRST NUMBER LEVELS``.

With two levels it spawns as many leads as it needs, each with its share; with one the children
themselves. It reads what comes of those that end, and then sleeps: it is at work for as long as it
is measured.
"""

import os
import sys
import time
from typing import Final

from subagents.client.client import Client

CHILDREN: Final = 100
"""Of each lead."""
FAILED_EACH, AT_WORK_EACH = 10, 50
ENDING: Final = frozenset({"quick", "broken"})
TAKEN: Final = 200


def agent_of(number: int) -> str:
    """Who does that run: most end well, some do not, and a few are still at work."""
    if number % AT_WORK_EACH == 0:
        return "hang"
    return "broken" if number % FAILED_EACH == 0 else "quick"


def shares(first: int, number: int) -> list[tuple[int, int]]:
    """Where the children of each lead begin, and how many they are: with it they are ``number``."""
    each = CHILDREN + 1
    return [(first + begin, min(CHILDREN, number - begin - 1)) for begin in range(0, number, each)]


def read_all(client: Client, number: int) -> None:
    """Take and acknowledge so many announcements."""
    while number:
        messages = client.post("/v1/inbox", {"limit": TAKEN})["messages"]
        assert isinstance(messages, list), messages
        client.post("/v1/inbox/ack", {"messageIds": [each["id"] for each in messages]})
        number -= len(messages)
        time.sleep(0 if messages else 0.1)


def lead_spec(first: int, number: int, levels: int) -> dict[str, object]:
    """Of a run of this worker."""
    return {"task": f"{first} {number} {levels}", "agentId": "lead"}


def main(first: int, number: int, levels: int) -> None:
    """Spawn, and sleep."""
    if levels > 1:
        specs = [lead_spec(*each, levels - 1) for each in shares(first, number)]
    else:
        specs = [
            {"task": "work", "agentId": agent_of(each)} for each in range(first, first + number)
        ]
    session = os.environ["SUBAGENTS_SESSION_KEY"]
    with Client(os.environ["SUBAGENTS_SOCKET"], session=session) as client:
        for spec in specs:
            client.post("/v1/runs", {"spec": spec, "cwd": "/"})
        read_all(client, sum(each["agentId"] in ENDING for each in specs))
    os.execvp("sleep", ["sleep", "3600"])  # noqa: S606


if __name__ == "__main__":
    main(*map(int, sys.argv[1].split()))
