"""The files of a run on another node: a ``Workplace`` over that node's door.

A place that does not answer is asked again as long as it is alive, by its row in the store, but not
about a run that is archived. What was on one that is over is gone with it.
"""

import errno
from collections.abc import Mapping, Sequence
from typing import Final

from subagents.domain.run.outcome import Verification
from subagents.domain.run.run import Run
from subagents.domain.run.workspace import Changes
from subagents.errors import NodeOver, NodeUnreachable, RuntimeUnavailable
from subagents.extensions.cluster.node_ports import NodeClient
from subagents.extensions.cluster.remote import workplace_calls as calls
from subagents.extensions.cluster.remote.attempt_calls import refusal
from subagents.ports import Before, Clock, Diff, Planned

CALL_S: Final = 60.0
"""How long the answer of a call may take: git in a large repository takes its time."""
SETTLE_S: Final = 30.0
"""How much longer than the time of its contract a check may take."""
AGAIN_S: Final = 1.0


class RemoteWorkplace:
    """See ``ports.Workplace``.

    Args:
        node: Its name.
        client: Reaches it.
        clock: Only waits.
    """

    def __init__(self, node: str, client: NodeClient, clock: Clock) -> None:
        self._node = node
        self._client = client
        self._clock = clock

    async def plan(self, run: Run) -> Planned:
        """See ``ports.Workplace.plan``."""
        return calls.decode_planned(await self._call("plan", calls.WorkplaceCall(run=run)))

    async def prepare(self, run: Run, *, attempt: int, afresh: bool) -> None:
        """See ``ports.Workplace.prepare``."""
        await self._call("prepare", calls.WorkplaceCall(run=run, attempt=attempt, afresh=afresh))

    async def before(self, run: Run) -> Before:
        """See ``ports.Workplace.before``."""
        call = calls.WorkplaceCall(run=run)
        return calls.decode_before(await self._call("before", call, timeout_s=_check_s(run)))

    async def verify(self, run: Run, env: Mapping[str, str]) -> Verification:
        """See ``ports.Workplace.verify``."""
        call = calls.WorkplaceCall(run=run, env=dict(env))
        return calls.decode_verification(await self._call("verify", call, timeout_s=_check_s(run)))

    async def existing(self, run: Run, paths: Sequence[str]) -> tuple[str, ...]:
        """See ``ports.Workplace.existing``."""
        return calls.decode_paths(
            await self._call("existing", calls.WorkplaceCall(run=run, paths=tuple(paths)))
        )

    async def changes(self, run: Run) -> Changes | None:
        """See ``ports.Workplace.changes``."""
        return calls.decode_changes(await self._call("changes", calls.WorkplaceCall(run=run)))

    async def diff(self, run: Run, path: str | None, *, bytes_max: int) -> Diff:
        """See ``ports.Workplace.diff``."""
        call = calls.WorkplaceCall(run=run, path=path, bytes_max=bytes_max)
        return calls.decode_diff(await self._call("diff", call))

    async def remove_clean(self, run: Run) -> bool:
        """See ``ports.Workplace.remove_clean``."""
        return calls.decode_flag(await self._call("remove_clean", calls.WorkplaceCall(run=run)))

    async def _call(
        self, name: calls.CallName, call: calls.WorkplaceCall, *, timeout_s: float = CALL_S
    ) -> bytes:
        body = calls.encode(call)
        while True:
            try:
                status, found = await self._client.request(
                    self._node, "POST", calls.PATH + name, body, timeout_s=timeout_s
                )
            except NodeUnreachable:
                # All that is to be pruned would wait; what stays there, its own sweep looks at.
                if call.run.times.archived_at_ms is not None:
                    raise
                await self._clock.sleep(AGAIN_S)
                continue
            except NodeOver as error:
                raise RuntimeUnavailable(
                    f"node {self._node} is over, and the files of {call.run.id} with it"
                ) from OSError(errno.EHOSTDOWN, error.message)
            if status != 200:
                raise refusal(found, status=status, node=self._node)
            return found


def _check_s(run: Run) -> float:
    contract = run.spec.verification
    return SETTLE_S + (0 if contract is None else contract.verification_timeout_ms / 1000)
