"""Any node takes any call: what another node decides is forwarded to that node, whole.

A call is tried here first. Where something is another node's, it fails with ``Elsewhere`` before
anything was done, and the same request is sent to the owner, whose answer is passed on byte by
byte. One hop only: a node that was forwarded a call which is not its own says so (421), and the
first one looks again whose it is. See docs/decisions/0078.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from subagents.api.calls.auth import Caller, connection_of, run_concerned
from subagents.api.calls.hand_over import WIRE, Wire
from subagents.api.calls.login import Role
from subagents.api.calls.services import Services
from subagents.errors import (
    Elsewhere,
    OutcomeUnknown,
    SubagentsError,
    Unauthorized,
    Unavailable,
    UsageError,
)
from subagents.extensions.cluster.api import repeating
from subagents.extensions.cluster.api.cluster_member import (
    NAME,
    ClusterMember,
    partitions_in,
)
from subagents.extensions.cluster.api.kept_request import KeptRequest
from subagents.extensions.cluster.api.node_headers import (
    BEHALF,
    CALL,
    FORWARDED,
    LENGTH,
    MISDIRECTED,
    OF_CLUSTER,
    PEER,
    URL,
    Behalf,
    is_forwarded,
)
from subagents.extensions.cluster.api.peers import LostError, NotSentError, PeerAnswer
from subagents.extensions.cluster.api.relayed_calls import RelayedCall, RelayedCalls
from subagents.extensions.cluster.engine.shared_partitions import SharedPartitions
from subagents.extensions.cluster.shared_store import SeenNode

log = logging.getLogger(__name__)

NO_OWNER_S: Final = 10.0
"""How long a call waits for its partition to have an owner: longer than a lease of 6 s."""
LOOK_S: Final = 0.25
"""The time between two looks at who the owner is."""
ALIVE_S: Final = 1.0
"""How often somebody who waits for an answer looks whether its node is alive."""
WAIT_PATH: Final = "/v1/wait"
# RFC 9110, 7.6.1: what is about one connection is not passed on over the next.
_HOP_BY_HOP: Final = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding"
    b" upgrade".split()
)
_OUR_CONNECTION: Final = _HOP_BY_HOP.union(
    b"accept-encoding content-length cookie expect host if-none-match origin"
    b" x-subagents-csrf".split()
)
"""Not forwarded: what is about the client's connection to us, and what it proved to us by."""

Refuse = Callable[[Request, SubagentsError, bytes], Response]
"""The answer that says what went wrong; the last is the request's body, as far as it is known."""


class Forwarding:
    """ASGI middleware around the application of a node of a cluster.

    Args:
        app: Lets ``Elsewhere`` through, and has begun no answer then.
        owners: Whose everything is.
        member: Who we are.
        calls: What is forwarded is noted there.
        identify: See ``Engine.identify``.
        refuse: Answers for what cannot be forwarded.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        owners: SharedPartitions,
        member: ClusterMember,
        calls: RelayedCalls,
        identify: Callable[[str], object],
        refuse: Refuse,
    ) -> None:
        self._app = app
        self._owners = owners
        self._member = member
        self._peers = member.peers
        self._calls = calls
        self._identify = identify
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})
        kept = KeptRequest(receive)
        try:
            await self._here(scope, kept, send)
        except Elsewhere as error:
            if is_forwarded(scope):
                await self._fail(scope, receive, send, error, status=MISDIRECTED)
                return
            await self._anywhere(scope, kept, send, error)
        except SubagentsError as error:
            # Before the application was asked: it answers for its own.
            await self._fail(scope, receive, send, error)

    async def _here(self, scope: Scope, kept: KeptRequest, send: Send) -> None:
        """Answer here.

        Raises:
            Elsewhere: Nothing was done or sent.
        """
        await self._require_known(scope, kept)
        # A router writes into it.
        tried = dict(scope)
        try:
            await self._app(tried, kept.reader(), send)
        finally:
            scope["caller"] = tried.get("caller")

    async def _require_known(self, scope: Scope, kept: KeptRequest) -> None:
        """Look whose worker it is that brings a token: its run's owner knows the token.

        Raises:
            Elsewhere: It is another node's.
            Unauthorized: Nobody's, on a door that let it in because of this token alone.
            StoreUnavailable: Nobody can say.
        """
        connection, token = connection_of(scope), _bearer(scope)
        if token is None or connection.is_operator:
            if scope["method"] == "POST" and not is_forwarded(scope):
                await self._require_asked(scope, kept)
            return
        try:
            self._identify(token)
        except Unauthorized as error:
            run_id = run_concerned(error)
            if run_id is not None:
                await self._owners.require_run(run_id)
            if connection.port is not None or is_forwarded(scope):
                raise

    async def _require_asked(self, scope: Scope, kept: KeptRequest) -> None:
        """Look whose it is that a person waits for or spawns: to begin it here costs more.

        Raises:
            SubagentsError: As ``_require_known``, or a header is malformed.
        """
        path = _path(scope)
        if path == WAIT_PATH:
            for run_id in repeating.awaited(await kept.body() or b"")[:1]:
                await self._owners.require_run(run_id)
        elif path in repeating.SPAWNS:
            await self._owners.require_session(Caller.of(Request(scope)).session)

    async def _anywhere(
        self, scope: Scope, kept: KeptRequest, send: Send, error: Elsewhere
    ) -> None:
        """Answer wherever it can be answered, or say why nobody can."""
        call = self._calls.begin(scope, send)
        body = b""
        try:
            found = await kept.body()
            if found is None:
                return
            body = found
            headers = repeating.keyed(scope["method"], _path(scope), scope["headers"])
            forwarded = _Forwarded({**scope, "headers": list(headers)}, kept, body, call)
            forwarded.headers = self._headers(forwarded.scope, call)
            await self._until_answered(forwarded, error)
        except SubagentsError as failed:
            if call.is_begun:
                raise
            await self._fail(scope, kept.reader(), send, failed, body=body)
        finally:
            self._calls.end(call)

    async def _until_answered(self, asked: "_Forwarded", error: Elsewhere) -> None:
        """Try the owner, and whoever is the owner next.

        Raises:
            Elsewhere: Nobody was the owner for long enough.
            UsageError: It is about what two nodes decide about.
            OutcomeUnknown: An owner was lost that may have done it.
        """
        loop = asyncio.get_running_loop()
        due_s, last = loop.time() + NO_OWNER_S, None
        tried: set[int] = set()
        while True:
            owner, begun_s = self._owner(error), loop.time()
            try:
                if owner is not None and owner.url is not None:
                    if await self._forward(asked, owner, owner.url, error.partition):
                        return
                elif error.partition in self._owners.owned:
                    await self._here(asked.scope, asked.kept, asked.call.send)
                    return
            except NotSentError as reason:
                log.info("the owner of partition %s is not reached: %s", error.partition, reason)
                begun_s = loop.time()
            except Elsewhere as again:
                if again.partition != error.partition and again.partition in tried:
                    raise UsageError(
                        "this call is about runs of sessions that two nodes decide about",
                        hint="ask for those of one session at a time",
                    ) from again
                tried.add(error.partition)
                error = again
            due_s += loop.time() - begun_s  # somebody had it, and held the line perhaps
            if loop.time() >= due_s:
                raise error
            # Whoever has it now is asked at once, and nobody twice in a row.
            if owner is None or owner.identity == last:
                await self._pause(asked)
            if asked.is_gone:
                return
            last = None if owner is None else owner.identity
            await self._owners.look()

    def _owner(self, error: Elsewhere) -> SeenNode | None:
        """The other node that decides about it; None = nobody, or we."""
        owner = self._owners.owner_of(error.partition)
        return None if owner is None or owner.name == self._member.name else owner

    async def _pause(self, asked: "_Forwarded") -> None:
        leaving = asyncio.ensure_future(asked.kept.left())
        done, _ = await asyncio.wait({leaving}, timeout=LOOK_S)
        leaving.cancel()
        asked.is_gone = bool(done)

    # -- one try --------------------------------------------------------------------------------

    async def _forward(
        self, asked: "_Forwarded", owner: SeenNode, url: str, partition: int
    ) -> bool:
        """Have it answered by that node; False = it was lost, and may be tried again.

        Raises:
            NotSentError, Elsewhere: As ``_pass``.
            OutcomeUnknown: The node was lost, and may have done it.
            Unavailable: We stop.
        """
        leaving = asyncio.ensure_future(asked.kept.left())
        passing = asyncio.ensure_future(self._pass(asked, url, partition))
        lost = None
        try:
            while not passing.done() and not leaving.done():
                await asyncio.wait(
                    {passing, leaving}, timeout=ALIVE_S, return_when=asyncio.FIRST_COMPLETED
                )
                if not passing.done() and not self._may_answer(asked, owner, partition):
                    lost = "its right is over"
                    break
                if self._calls.stopping.is_set() and not passing.done() and asked.may_be_repeated:
                    raise Unavailable(
                        "the daemon is stopping", hint="call again: the next one continues"
                    )
            if leaving.done() and not passing.done():
                asked.call.left()
                return True
            if lost is None:
                passing.result()
                return True
        except LostError as error:
            lost = str(error)
        finally:
            for task in (passing, leaving):
                task.cancel()
            await asyncio.gather(passing, leaving, return_exceptions=True)
        return self._lost(asked, owner, lost)

    def _lost(self, asked: "_Forwarded", owner: SeenNode, reason: str) -> bool:
        log.info("node %s was lost during %s: %s", owner.name, asked.text, reason)
        if asked.call.is_begun:
            # Whoever reads it sees that its end is missing.
            wire = asked.scope["state"].get(WIRE)
            if isinstance(wire, Wire):
                wire.abort()
            return True
        if asked.may_be_repeated:
            return False
        raise OutcomeUnknown(
            f"node {owner.name} was lost during this call and may have carried it out",
            hint="look before you repeat it: subagents list, subagents show",
            details={"node": owner.name},
        )

    def _may_answer(self, asked: "_Forwarded", owner: SeenNode, partition: int) -> bool:
        """Whether it is worth waiting for: the node lives, and can still say something true."""
        seen = self._owners.survey.nodes.get(owner.identity)
        if seen is None or seen.left_s <= 0:
            return False
        now = self._owners.owner_of(partition)
        has_moved = now is not None and now.identity != owner.identity
        # A call that waits there would wait for what happens elsewhere now.
        return not has_moved or not asked.may_be_repeated

    async def _pass(self, asked: "_Forwarded", url: str, partition: int) -> None:
        """Send it, and pass the answer on.

        Raises:
            Elsewhere: The node says that it is not the owner, of this or of another partition.
            NotSentError, LostError: As ``Peers.call``.
        """
        await self._peers.meet(url)
        calling = self._peers.call(url, asked.method, asked.target, asked.headers, asked.body)
        async with calling as found:
            if found.status == MISDIRECTED:
                body = await found.body()
                if not body:
                    raise Elsewhere(partition)  # to a HEAD
                said = msgspec.json.decode(body)["details"]
                raise Elsewhere(said["partition"], node=said["node"])
            await asked.call.send(_start(found))
            async for piece in found.pieces():
                await asked.call.send(
                    {"type": "http.response.body", "body": piece, "more_body": True}
                )
        await asked.call.send({"type": "http.response.body", "body": b"", "more_body": False})

    def _headers(self, scope: Scope, call: RelayedCall) -> repeating.Headers:
        """What the owner is sent: the client's headers, and who the client is.

        Raises:
            SubagentsError: Nobody can say who it is.
        """
        behalf = self._behalf(scope)
        left_out = _OUR_CONNECTION | OF_CLUSTER
        if behalf is not Behalf.WORKER:
            # It proved to us what we say; a token of ours would mean nothing there.
            left_out = left_out | {b"authorization"}
        connection = connection_of(scope)
        return [
            *((name, value) for name, value in scope["headers"] if name not in left_out),
            (FORWARDED, self._member.name.encode()),
            (BEHALF, behalf.encode()),
            (PEER, connection.peer.encode("latin-1", "replace")),
            (CALL, call.id.encode()),
            (URL, self._member.url.encode()),
        ]

    def _behalf(self, scope: Scope) -> Behalf:
        connection = connection_of(scope)
        if _bearer(scope) is not None and not connection.is_operator:
            return Behalf.WORKER
        if scope.get("caller") is None:
            Caller.of(Request(scope))
        if connection.login is not None and connection.login.role is not Role.OPERATOR:
            return Behalf.VIEWER
        return Behalf.PERSON

    async def _fail(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        error: SubagentsError,
        *,
        body: bytes = b"",
        status: int | None = None,
    ) -> None:
        answer = self._refuse(Request(scope), error, body)
        if status is not None:
            answer.status_code = status
        await answer(scope, receive, send)


class _Forwarded:
    """One request on its way."""

    def __init__(self, scope: Scope, kept: KeptRequest, body: bytes, call: RelayedCall) -> None:
        self.scope = scope
        self.kept = kept
        self.body = body
        self.call = call
        self.method: str = scope["method"]
        self.path = _path(scope)
        query: bytes = scope.get("query_string", b"")
        self.target: bytes = scope["raw_path"] + (b"?" + query if query else b"")
        self.headers: repeating.Headers = ()
        self.is_gone = False

    @property
    def text(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def may_be_repeated(self) -> bool:
        """Whether another node may answer it, too."""
        return not self.call.is_begun and repeating.is_repeatable(self.method, self.path, self.body)


def _start(found: PeerAnswer) -> Message:
    """The start of the answer as the client gets it: with the length that it has there."""
    kept = [
        (b"content-length" if name == LENGTH else name, value)
        for name, value in found.headers
        if name not in _HOP_BY_HOP
    ]
    return {"type": "http.response.start", "status": found.status, "headers": kept}


def _path(scope: Scope) -> str:
    path: bytes = scope["raw_path"]
    return path.decode("latin-1")


def _bearer(scope: Scope) -> str | None:
    """A token that may be a worker's; what is malformed is refused by whoever reads it."""
    given: Mapping[bytes, bytes] = dict(scope["headers"])
    scheme, _, token = given.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def relayed_calls(services: Services) -> RelayedCalls:
    """Those that this node forwards."""
    found = services.parts.setdefault(f"{NAME}.calls", RelayedCalls(services.stopping))
    assert isinstance(found, RelayedCalls)  # noqa: S101  nobody else's name
    return found


def middleware(services: Services, member: ClusterMember, refuse: Refuse) -> Middleware:
    """What stands around every call of a node."""
    return Middleware(
        Forwarding,
        owners=partitions_in(services),
        member=member,
        calls=relayed_calls(services),
        identify=services.engine.identify,
        refuse=refuse,
    )
