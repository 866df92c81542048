"""A session that spawns runs on some node, waits until all have ended, and consumes what they say.

It calls again where it is told to, as every caller of a cluster has to: a node that could not reach
the database for a moment, or whose partition is being given to another one, refuses.
"""

import uuid
from pathlib import Path
from typing import Any, Final

from tests.extensions.cluster.nodes.cluster_rig import patiently

from bench.daemon import spawn_body
from subagents.client.client import Client, Document

WITHIN_S: Final = 300.0


class Caller:
    """One session at one node.

    Args:
        client: Of the node, with the session.
        agent: Of its runs.
        place: A label for each run; None = anywhere.
    """

    def __init__(self, client: Client, agent: str, place: str | None = None) -> None:
        self._client = client
        self._agent = agent
        self._asked = {} if place is None else {"place": place}

    def play(self, number: int) -> None:
        """So many runs at once, from the first spawn to the last message consumed.

        Raises:
            RuntimeError: One of them did not come to a good end, or not in time.
        """
        run_ids = [self._spawned() for _ in range(number)]
        asked = {"runIds": run_ids, "until": "all", "timeoutSeconds": WITHIN_S}
        found: Any = self._post("/v1/wait", asked, wait_s=WITHIN_S)
        ended = [each["outcome"]["status"] for each in found["completed"]]
        if ended != ["ok"] * number:
            raise RuntimeError(f"{ended} of {number} runs; {found['pending']}")
        self._post("/v1/inbox/ack", {"messageIds": found["messages"]})

    def _spawned(self) -> str:
        key = uuid.uuid4().hex
        body = spawn_body(self._agent, idempotencyKey=key, **self._asked)
        return str(self._post("/v1/runs", body)["runId"])

    def _post(self, path: str, body: Document, *, wait_s: float = 0.0) -> Document:
        return patiently(lambda: self._client.post(path, body, timeout_s=wait_s), within_s=WITHIN_S)


def play(socket: Path, session: str, number: int, agent: str, place: str | None = None) -> None:
    """The same over a connection of its own."""
    with Client(socket, session=session) as client:
        Caller(client, agent, place).play(number)
