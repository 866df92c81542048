"""Who is let in at a node, and whom it calls: real TLS between nodes of one process."""

import contextlib
import http.client
import ipaddress
import socket
import ssl
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from tests.certificates import Authority
from tests.extensions.cluster.pinned_nodes import HOST, PinnedNodes

from subagents.extensions.cluster.api.node_headers import NODE
from subagents.extensions.cluster.api.node_listener import node_config
from subagents.extensions.cluster.trust.former_trust import FormerTrust, RunSeal
from subagents.extensions.cluster.trust.node_trust import NodeTrust
from subagents.extensions.cluster.trust.sealing import Seal
from subagents.extensions.cluster.trust.signing import Signer
from subagents.extensions.cluster.trust.tls import NewestContext

WAIT_S = 20.0


async def told(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers which node calls."""
    found = PlainTextResponse(str(Request(scope, receive).scope["state"][NODE]))
    await found(scope, receive, send)


@contextlib.contextmanager
def listening(trust: NodeTrust) -> Iterator[int]:
    """The door of that node; yields its port."""
    server = uvicorn.Server(node_config(told, trust))
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        running = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        running.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            running.join()


class Caller:
    """A connection that is kept."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        if isinstance(context, NewestContext):
            context = context.newest()  # as it does itself for whoever has an event loop
        self._connection = http.client.HTTPSConnection(HOST, port, context=context, timeout=WAIT_S)

    def ask(self) -> tuple[int, str]:
        self._connection.request("GET", "/")
        found = self._connection.getresponse()
        return found.status, found.read().decode()


def asked(port: int, context: ssl.SSLContext) -> str:
    """Whom the door takes us for; raises ``OSError`` where it does not talk to us."""
    caller = Caller(port, context)
    try:
        status, text = caller.ask()
        assert status == 200
        return text
    finally:
        caller._connection.close()


def refused(port: int, context: ssl.SSLContext) -> bool:
    try:
        asked(port, context)
    except (OSError, http.client.HTTPException):
        return True
    return False


@pytest.mark.requirement("cluster:certificates")
def test_each_start_makes_a_key_of_its_own_and_no_clock_ends_its_certificate(
    tmp_path: Path,
) -> None:
    hosts = ["10.0.0.5", "fd00::5", "a.example", "a.example", "node_1", "no host", ""]
    survey = PinnedNodes(tmp_path).survey
    first, second = (
        NodeTrust(tmp_path / "node.pem", node="a", hosts=hosts, survey=lambda: survey)
        for _ in range(2)
    )
    assert first.certificate != second.certificate
    first.start()
    assert stat.S_IMODE((tmp_path / "node.pem").stat().st_mode) == 0o600
    found = x509.load_der_x509_certificate(first.certificate)
    assert (found.not_valid_before_utc.year, found.not_valid_after_utc.year) == (2000, 9999)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.example", "node_1", "a"]
    assert names.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address("10.0.0.5"),
        ipaddress.ip_address("fd00::5"),
    ]
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


@pytest.mark.requirement("cluster:mtls")
def test_nodes_whose_rows_count_call_each_other_and_nobody_else_is_let_in_or_called(
    tmp_path: Path,
) -> None:
    nodes = PinnedNodes(tmp_path)
    a, b = nodes.listed("a"), nodes.listed("b")
    stranger, over = nodes.trust("b", file="stranger"), nodes.listed("over")
    issued = issued_by(tmp_path / "b.pem", stranger, tmp_path / "stranger.pem")
    nodes.put("over", None)
    nobody = ssl.create_default_context()
    nobody.check_hostname, nobody.verify_mode = False, ssl.CERT_NONE
    with listening(a) as port:
        assert asked(port, b.client_context) == "b"
        for context in (stranger.client_context, over.client_context, issued, nobody):
            assert refused(port, context)
        assert a.refused == 0, "one of them may be a node that is seen with the next look"
        nodes.put("over", None)
        assert asked(port, b.client_context) == "b"
        assert a.refused == 3, "who shows none is not counted as one that is not known"
    for door in (stranger, over):
        with listening(door) as port:
            assert refused(port, b.client_context)


def issued_by(node: Path, stranger: NodeTrust, file: Path) -> ssl.SSLContext:
    """A client whose certificate was signed with the key of a node that counts."""
    key = serialization.load_pem_private_key(node.read_bytes(), None)
    above = x509.load_pem_x509_certificate(node.read_bytes())
    own = x509.load_der_x509_certificate(stranger.certificate)
    made = x509.CertificateBuilder(
        above.subject,
        own.subject,
        own.public_key(),
        own.serial_number,
        own.not_valid_before_utc,
        own.not_valid_after_utc,
        [*own.extensions],
    ).sign(key, hashes.SHA256())  # type: ignore[arg-type]  # of one kind
    chain = file.with_name("issued.pem")
    at = file.read_bytes().index(b"-----BEGIN PRIVATE")
    pem = made.public_bytes(serialization.Encoding.PEM)
    chain.write_bytes(pem + above.public_bytes(serialization.Encoding.PEM) + file.read_bytes()[at:])
    found = ssl.create_default_context()
    found.check_hostname, found.verify_mode = False, ssl.CERT_NONE
    found.load_cert_chain(chain)
    return found


@pytest.mark.requirement("cluster:mtls")
def test_a_node_that_is_over_is_refused_on_a_connection_that_it_had_already(
    tmp_path: Path,
) -> None:
    nodes = PinnedNodes(tmp_path)
    a, b = nodes.listed("a"), nodes.listed("b")
    with listening(a) as port:
        kept = Caller(port, b.client_context)
        assert kept.ask() == (200, "b")
        nodes.put("b", None)
        status, text = kept.ask()
        # Whoever called that node may call again, at another one.
        assert (status, '"retryable":true' in text.replace(" ", "")) == (503, True), text
        kept._connection.close()


@pytest.mark.requirement("cluster:mtls")
def test_a_node_that_was_not_seen_yet_has_its_door_look_again(tmp_path: Path) -> None:
    nodes = PinnedNodes(tmp_path)
    a, b = nodes.listed("a"), nodes.trust("b")
    a.on_unknown = lambda: nodes.put("b", b.certificate)
    with listening(a) as port:
        assert refused(port, b.client_context)
        assert asked(port, b.client_context) == "b"
    assert a.refused == 0


@pytest.mark.requirement("cluster:upgrade")
def test_nodes_of_the_version_before_are_believed_until_the_last_one_is_gone(
    tmp_path: Path,
) -> None:
    authority, home = Authority(), tmp_path / "cluster"
    home.mkdir()
    (home / "ca.pem").write_bytes(authority.pem)
    (home / "node.pem").write_bytes(authority.issued("a", HOST))
    (home / "secret").write_text("A" * 43)
    signer = Signer(b"of the new version", tmp_path / "signed")
    former = FormerTrust(home, signer)
    seal = RunSeal(b"of the new version", former, signer)
    nodes = PinnedNodes(tmp_path)
    a = nodes.listed("a", former)
    nodes.put("old", None)
    old, joining = (by_authority(authority, tmp_path / name, name) for name in ("old", "join:1"))
    with listening(a) as port:
        assert asked(port, old) == "old", "and it believes the certificate that a shows"
        caller = Caller(port, joining)
        assert caller.ask()[0] == 503
        caller._connection.close()
        sealed = seal.encrypt(b"hush")
        assert Seal(bytes(32), "environments of runs").decrypt(sealed) == b"hush"
        signer.require()
        nodes.put("a", a.certificate)
        assert refused(port, old)
    assert seal.decrypt(sealed) == b"hush"
    assert Seal(b"of the new version", "environments of runs").decrypt(seal.encrypt(b"x")) == b"x"
    assert nodes.trust("a", former=former).certificate != a.certificate


def by_authority(authority: Authority, file: Path, name: str) -> ssl.SSLContext:
    """As a node of the version before calls."""
    file.write_bytes(authority.issued(name, HOST))
    found = ssl.create_default_context(cadata=authority.pem.decode())
    found.load_cert_chain(file)
    return found
