"""Worktrees that are on another node: looked at, and removed, where they are.

A run with a worktree works where its owner was when it began, and its files stay there. Whoever
decides about it later, or is asked about it, asks that node: ``POST /node/v1/worktrees/<call>``
with a ``WorktreeCall``.
"""

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from subagents.domain.run.values import RunId, Value
from subagents.domain.run.workspace import Changes, Worktree
from subagents.errors import (
    NodeOver,
    NodeUnreachable,
    NotFound,
    RuntimeUnavailable,
    SubagentsError,
    UsageError,
)
from subagents.ports import Diff, NodeAnswer, NodeClient, Worktrees
from subagents.runtimes.remote.attempt_calls import encode, refusal, refused

PATH: Final = "/node/v1/worktrees/"
CALL_S: Final = 60.0
"""For the answer: git may have much to look at."""
GONE: Final = 404

CallName = Literal["changes", "diff", "remove_clean"]


class WorktreeCall(Value, frozen=True, kw_only=True):
    """Arguments of a call; which of them it has, ``ports.Worktrees`` says."""

    tree: Worktree
    run_id: RunId = RunId("")
    path: str | None = None
    bytes_max: int = 0


_decode_call = msgspec.json.Decoder(WorktreeCall).decode
_decode_changes: Callable[[bytes], Changes | None] = msgspec.json.Decoder(Changes | None).decode
_decode_diff = msgspec.json.Decoder(Diff).decode
_decode_gone = msgspec.json.Decoder(bool).decode


class WorktreeHost:
    """Performs calls of other nodes on the worktrees of this one.

    Args:
        worktrees: Of this node.
    """

    def __init__(self, worktrees: Worktrees) -> None:
        self._worktrees = worktrees

    async def call(self, name: str, body: bytes) -> NodeAnswer:
        """See ``ports.WorktreeHost.call``."""
        try:
            return NodeAnswer(200, encode(await self._perform(name, _decode_call(body))))
        except msgspec.DecodeError as error:
            return refused(UsageError(f"not a call about a worktree: {error}"))
        except NotFound as error:
            return NodeAnswer(GONE, encode(error.to_wire()))
        except SubagentsError as error:
            return refused(error)

    async def _perform(self, name: str, call: WorktreeCall) -> object:
        match name:
            case "changes":
                return await self._worktrees.changes(call.run_id, call.tree)
            case "diff":
                return await self._worktrees.diff(call.tree, call.path, bytes_max=call.bytes_max)
            case "remove_clean":
                return await self._worktrees.remove_clean(call.run_id, call.tree)
            case _:
                raise UsageError(f"a node of this version knows no call {name!r} about worktrees")


class RemoteWorktrees:
    """See ``ports.FoundWorktrees``: those of one other node.

    Args:
        node: Its name.
        client: Reaches it.
    """

    def __init__(self, node: str, client: NodeClient) -> None:
        self._node = node
        self._client = client

    async def changes(self, run_id: RunId, tree: Worktree) -> Changes | None:
        """See ``ports.FoundWorktrees.changes``; that nobody can say is an answer, too."""
        try:
            call = WorktreeCall(run_id=run_id, tree=tree)
            return _decode_changes(await self._call("changes", call))
        except SubagentsError as error:
            return Changes(error=error.message)

    async def diff(self, tree: Worktree, path: str | None, *, bytes_max: int) -> Diff:
        """See ``ports.FoundWorktrees.diff``."""
        call = WorktreeCall(tree=tree, path=path, bytes_max=bytes_max)
        return _decode_diff(await self._call("diff", call))

    async def remove_clean(self, run_id: RunId, tree: Worktree) -> bool:
        """See ``ports.FoundWorktrees.remove_clean``.

        Raises:
            RuntimeUnavailable: The node cannot be asked now.
        """
        call = WorktreeCall(run_id=run_id, tree=tree)
        return _decode_gone(await self._call("remove_clean", call))

    async def _call(self, name: CallName, call: WorktreeCall) -> bytes:
        try:
            status, body = await self._client.request(
                self._node, "POST", PATH + name, encode(call), timeout_s=CALL_S
            )
        except (NodeOver, NodeUnreachable) as error:
            raise RuntimeUnavailable(
                f"the worktree is on node {self._node}, which does not answer now",
                details={"node": self._node},
            ) from error
        if status == GONE:
            raise NotFound(refusal(body, status=status, node=self._node).message)
        if status != 200:
            raise refusal(body, status=status, node=self._node)
        return body
