"""Homes of one cluster, without daemons, and a listener for nodes over real sockets."""

import asyncio
import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from subagents.extensions.cluster.api.node_admission import NodeAdmission, NodeProtocol
from subagents.extensions.cluster.api.node_headers import NODE
from subagents.extensions.cluster.trust.cluster_membership import join, make_cluster, make_token
from subagents.extensions.cluster.trust.join_token import JoinToken, parse_token
from subagents.extensions.cluster.trust.node_trust import NodeTrust
from subagents.extensions.cluster.trust.trust_files import TrustFiles
from subagents.extensions.cluster.trust.trust_tables import TrustTables

T = TypeVar("T")
HOST = "127.0.0.1"
WAIT_S = 20.0


async def off_loop(call: Callable[[], T]) -> T:
    return await asyncio.to_thread(call)


async def told(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers which node calls."""
    request = Request(scope, receive)
    answer = JSONResponse({"node": request.scope["state"][NODE]})
    await answer(scope, receive, send)


class TrustHomes:
    """Each has its files below one directory, and all have one database.

    Args:
        url: Of the database.
        root: For the homes.
    """

    def __init__(self, url: str, root: Path) -> None:
        self.url = url
        self.root = root
        self.tables = TrustTables(url)

    def files(self, name: str) -> TrustFiles:
        (self.root / name).mkdir(exist_ok=True)
        return TrustFiles(self.root / name / "cluster")

    def make(self, name: str = "a") -> TrustFiles:
        """The first home of a cluster."""
        files = self.files(name)
        make_cluster(files, self.tables)
        return files

    def token(
        self, files: TrustFiles, url: str, life: timedelta = timedelta(minutes=15)
    ) -> JoinToken:
        return parse_token(make_token(files, self.tables, url=url, node="a", life=life))

    def join(self, name: str, token: JoinToken) -> TrustFiles:
        files = self.files(name)
        join(files, self.tables, token)
        return files

    @contextlib.contextmanager
    def trust(
        self, name: str, life: timedelta = timedelta(hours=24), *, host: str = HOST
    ) -> Iterator[NodeTrust]:
        trust = NodeTrust(
            self.files(name), self.tables, node=name, hosts=[host], life=life, look_s=0.05
        )
        trust.start()
        try:
            yield trust
        finally:
            trust.close()


@contextlib.contextmanager
def listening(trust: NodeTrust) -> Iterator[str]:
    """A listener for nodes, as a daemon has it; yields its URL."""
    config = uvicorn.Config(
        NodeAdmission(told, trust, off_loop),
        http=NodeProtocol,
        ssl_context_factory=lambda _config, _default: trust.server_context(),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
    )
    server = uvicorn.Server(config)
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        running = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        running.start()
        try:
            yield f"https://{HOST}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            running.join()


def asked(
    url: str, context: ssl.SSLContext, path: str = "/node/v1/anything", body: object = None
) -> tuple[int, dict[str, object]]:
    """What the listener answers to somebody with that context."""
    host, _, port = url.removeprefix("https://").rpartition(":")
    calling = http.client.HTTPSConnection(host, int(port), context=context, timeout=WAIT_S)
    try:
        calling.request("POST", path, json.dumps(body or {}))
        answered = calling.getresponse()
        return answered.status, json.loads(answered.read())
    finally:
        calling.close()


def shown_certificate(url: str, context: ssl.SSLContext) -> bytes:
    """The certificate that a new connection to the listener is shown, in DER."""
    host, _, port = url.removeprefix("https://").rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=WAIT_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as encrypted,
    ):
        found = encrypted.getpeercert(binary_form=True)
        assert found is not None
        return found
