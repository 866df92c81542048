"""What a worker sends to its daemon: reports, progress, notices and questions.

The daemon that started the worker may be away for a moment and comes back by itself: workers wait
for it and never start one.
"""

import math
import time
from collections.abc import Sequence
from typing import Final, Literal

from subagents.client.client import Client, Document, persistently, segment

POLL_S: Final = 20.0
DEFAULT_ANSWER_S: Final = 600.0
"""How long a question with a default answer stands, unless it says so itself."""
SETTLE_S: Final = 5.0
"""How long after its deadline the daemon may take to settle a question."""


class WorkerCalls:
    """Speaks for one run.

    Args:
        client: A client of the daemon that started the worker.
        run_id: The run it works for, or a selector of one run.
    """

    def __init__(self, client: Client, run_id: str) -> None:
        self._client = client
        self._run_id = run_id

    def tell(self, what: Literal["report", "progress", "notify"], body: Document) -> Document:
        """Store a report, progress or a notice, and return the answer.

        Raises:
            DaemonUnreachable: It did not come back in time.
            SubagentsError: What the daemon refused, as the class it names.
        """
        return self._reached(f"/v1/runs/{segment(self._run_id)}/{what}", body)

    def ask(
        self,
        question: str,
        *,
        options: Sequence[str] = (),
        context: str | None = None,
        default: str | None = None,
        timeout_s: float | None,
    ) -> Document:
        """Ask the requester and wait until the question is settled.

        Args:
            question: What it needs to know.
            options: Possible answers.
            context: Background for the question.
            default: The answer when nobody answers in time.
            timeout_s: How long the question stands; None = the daemon's default.

        Returns:
            A ``WorkerRequest``; still ``pending`` only when the daemon settled nothing in time.

        Raises:
            DaemonUnreachable: It was away when the time was up.
            SubagentsError: What the daemon refused, as the class it names.
        """
        body = {"runId": self._run_id, "question": question, "options": list(options)}
        rest = {"timeoutSeconds": timeout_s, "context": context, "defaultAnswer": default}
        given = {name: value for name, value in rest.items() if value is not None}
        asked = self._reached("/v1/requests", {**body, **given})
        stands_s = math.inf if asked.get("deadlineAt") is None else timeout_s or DEFAULT_ANSWER_S
        return self._settled(str(asked["requestId"]), until=time.monotonic() + stands_s + SETTLE_S)

    def _settled(self, request_id: str, *, until: float) -> Document:
        path = f"/v1/requests/{segment(request_id)}"

        def poll() -> Document:
            seconds = min(POLL_S, max(0.0, until - time.monotonic()))
            query = {"waitSeconds": math.ceil(seconds)}
            return self._client.get(path, query, timeout_s=seconds)

        while True:
            # A worker starts no daemon, and waits for the next one as long as for the answer.
            found = persistently(poll, until=until, for_s=max(0.0, until - time.monotonic()))
            if found.get("status") != "pending" or time.monotonic() >= until:
                return found

    def _reached(self, path: str, body: Document) -> Document:
        """POST once the daemon is there.

        Only the connection is repeated: a call whose answer was lost may have been recorded.
        """
        return persistently(lambda: self._client.post(path, body), is_repeatable=False)
