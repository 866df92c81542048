"""The place's side of files whose runs other nodes decide about.

Served on the node door only, to nodes of the cluster: who may have a run here may have it checked.
"""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from subagents.errors import SubagentsError, UsageError
from subagents.extensions.cluster.node_ports import NodeAnswer
from subagents.extensions.cluster.remote.attempt_host import refused
from subagents.extensions.cluster.remote.workplace_calls import WorkplaceCall, decode_call, encode
from subagents.ports import Workplace

Perform = Callable[[Workplace, WorkplaceCall], Awaitable[object]]

CALLS: Mapping[str, Perform] = {
    "plan": lambda here, call: here.plan(call.run),
    "prepare": lambda here, call: here.prepare(call.run, attempt=call.attempt, afresh=call.afresh),
    "before": lambda here, call: here.before(call.run),
    "verify": lambda here, call: here.verify(call.run, call.env),
    "existing": lambda here, call: here.existing(call.run, call.paths),
    "changes": lambda here, call: here.changes(call.run),
    "diff": lambda here, call: here.diff(call.run, call.path, bytes_max=call.bytes_max),
    "remove_clean": lambda here, call: here.remove_clean(call.run),
}


class WorkplaceHost:
    """What a node's door hands calls about files to: ``POST /node/v1/files/<name>``.

    Args:
        here: This node's files.
    """

    def __init__(self, here: Callable[[], Workplace]) -> None:
        self._here = here

    async def call(self, name: str, body: bytes) -> NodeAnswer:
        """Answer one call; an error is answered, too, as its document."""
        try:
            perform = CALLS.get(name)
            if perform is None:
                raise UsageError(f"a node of this version knows no call {name!r} about files")
            try:
                call = decode_call(body)
            except msgspec.DecodeError as error:
                raise UsageError(f"not a call about files: {error}") from error
            return NodeAnswer(200, encode(await perform(self._here(), call)))
        except SubagentsError as error:
            return refused(error)
