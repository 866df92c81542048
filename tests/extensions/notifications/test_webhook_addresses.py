"""A webhook reaches no address at which a machine tells its own secrets, whatever leads there."""

import asyncio
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from tests.couriers.courier_places import OUTSIDE
from tests.extensions.notifications.webhook_place import Answering, WebhookPlace

from subagents.domain.run.outcome import Delivered, DeliveryFailed, DeliveryOutcome, DeliveryPath
from subagents.extensions.notifications.webhook_addresses import is_refused
from subagents.extensions.notifications.webhook_request import Url
from subagents.extensions.testing.courier_suite import announced, settled_run

METADATA = "169.254.169.254"
DELIVERED = Delivered(path=DeliveryPath.DIRECT)


class Names:
    """Answers look-ups of names that end in ``.test``; each look takes the next answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: list[list[str]] = []
        self.looks = 0
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._look)

    def _look(self, host: Any, port: Any, *args: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if not name.endswith(".test"):
            return self._real(host, port, *args, **more)
        self.looks += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        found = []
        for each in answer:
            found += self._real(each, port, *args, **more)
        return found


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    for each in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(each, raising=False)
        monkeypatch.delenv(each.upper(), raising=False)
    return Names(monkeypatch)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[WebhookPlace]:
    with WebhookPlace(tmp_path) as found:
        yield found


def port_of(place: WebhookPlace) -> str:
    return place.url.rpartition(":")[2].partition("/")[0]


def post(place: WebhookPlace, url: str) -> DeliveryOutcome:
    place.url = url

    async def once() -> DeliveryOutcome:
        courier = await place.courier()
        run = settled_run(requester=OUTSIDE)
        async with asyncio.timeout(20):
            return await courier.deliver(run, announced(run, "done"), None)

    return asyncio.run(once())


@pytest.mark.requirement("couriers:webhook:no-metadata")
@pytest.mark.parametrize(
    "address",
    [
        METADATA,
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
    ],
)
def test_where_clouds_tell_their_secrets_is_refused_in_every_protocol(address: str) -> None:
    assert is_refused(address)


@pytest.mark.requirement("couriers:webhook:no-metadata")
@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "10.0.0.8", "192.168.1.2", "100.100.100.1", "fd12::1", "93.184.216.34"],
)
def test_loopback_private_and_public_addresses_are_reached(address: str) -> None:
    assert not is_refused(address)


@pytest.mark.requirement("couriers:webhook:no-metadata")
@pytest.mark.parametrize(
    "host",
    [
        METADATA,
        "2852039166",
        "0xa9fea9fe",
        "169.254.43518",
        "[fd00:ec2::254]",
        "[::ffff:169.254.169.254]",
        "name.test",
    ],
)
def test_no_spelling_of_an_address_and_no_name_gets_there(
    place: WebhookPlace, names: Names, host: str
) -> None:
    names.answers = [[METADATA]]
    outcome = post(place, f"http://{host}:{port_of(place)}/latest?token=x")

    assert isinstance(outcome, DeliveryFailed)
    assert not outcome.retryable
    assert "a link-local or cloud metadata address, which no webhook reaches" in outcome.error
    assert outcome.error.endswith("unless agents.main.courier.webhook_link_local = true")
    assert "token" not in outcome.error


@pytest.mark.requirement("couriers:webhook:no-metadata")
def test_a_name_is_looked_up_once_and_what_was_checked_is_what_is_reached(
    place: WebhookPlace, names: Names
) -> None:
    names.answers = [["127.0.0.1"], [METADATA]]
    port = port_of(place)
    assert post(place, f"http://bot.test:{port}/hook") == DELIVERED
    assert names.looks == 1
    (found,) = place.until(1)
    assert (found.path, found.headers["Host"]) == ("/hook", f"bot.test:{port}")


@pytest.mark.requirement("couriers:webhook:no-metadata")
def test_of_several_addresses_only_the_allowed_ones_are_tried_one_after_the_other(
    place: WebhookPlace, names: Names
) -> None:
    names.answers = [[METADATA, "127.0.0.2", "::1", "127.0.0.1"]]
    # Nobody listens at 127.0.0.2 and ::1 on that port.
    assert post(place, f"http://bot.test:{port_of(place)}/hook") == DELIVERED
    assert len(place.until(1)) == 1


@pytest.mark.requirement("couriers:webhook:no-metadata")
def test_a_redirect_to_such_an_address_is_not_followed(place: WebhookPlace) -> None:
    place.answers = lambda _: Answering(307, {"Location": f"http://{METADATA}/"})
    outcome = post(place, place.url)
    assert isinstance(outcome, DeliveryFailed)
    assert "answered 307" in outcome.error


@pytest.mark.requirement("couriers:webhook:no-metadata")
def test_the_key_lets_a_webhook_reach_them(
    place: WebhookPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "subagents.extensions.notifications.webhook_addresses.is_refused", lambda _: True
    )
    assert isinstance(post(place, place.url), DeliveryFailed)
    place.link_local = True
    assert post(place, place.url) == DELIVERED


@pytest.mark.requirement("couriers:webhook:no-metadata")
@pytest.mark.parametrize(("answer", "is_sent"), [(METADATA, False), (None, True)])
def test_a_proxy_is_asked_for_names_that_it_alone_knows_and_never_for_such_an_address(
    place: WebhookPlace,
    names: Names,
    monkeypatch: pytest.MonkeyPatch,
    answer: str | None,
    *,
    is_sent: bool,
) -> None:
    port = port_of(place)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
    names.answers = [[answer or "no-such-name.invalid"]]
    outcome = post(place, "http://bot.test/hook")
    assert (outcome == DELIVERED) is is_sent
    assert [each.path for each in place.posted] == (["http://bot.test/hook"] if is_sent else [])

    monkeypatch.setenv("no_proxy", "bot.test")
    names.answers = [["127.0.0.1"]]
    assert post(place, f"http://bot.test:{port}/direct") == DELIVERED
    assert place.posted[-1].path == "/direct"


@pytest.mark.requirement("couriers:webhook:answers")
def test_a_name_without_an_address_is_tried_again(place: WebhookPlace, names: Names) -> None:
    names.answers = [["no-such-name.invalid"]]
    outcome = post(place, "http://bot.test/hook")
    assert isinstance(outcome, DeliveryFailed)
    assert outcome.retryable
    assert outcome.error.startswith("http://bot.test: ")


def read_request(reader: BinaryIO) -> None:
    length = 0
    while (line := reader.readline().strip().lower()) != b"":
        if line.startswith(b"content-length:"):
            length = int(line.rpartition(b":")[2])
    reader.read(length)


def shut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's context for ``bot.test``, whose certificate is now trusted."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=bot.test"),
            *("-addext", "subjectAltName=DNS:bot.test", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.requirement("couriers:webhook:no-metadata", "couriers:webhook:tls")
@pytest.mark.parametrize(("host", "is_trusted"), [("bot.test", True), ("other.test", False)])
def test_the_certificate_is_that_of_the_name_although_the_address_is_reached(
    tmp_path: Path,
    names: Names,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    *,
    is_trusted: bool,
) -> None:
    context = shut(tmp_path, monkeypatch)
    names.answers = [["127.0.0.1"]]
    asked: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    with WebhookPlace(tmp_path) as place, socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            connection.settimeout(10)
            try:
                with context.wrap_socket(connection, server_side=True) as safe:
                    reader = safe.makefile("rb")
                    read_request(reader)
                    safe.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            except (ssl.SSLError, OSError):
                connection.close()

        serving = threading.Thread(target=serve)
        serving.start()
        outcome = post(place, f"https://{host}:{server.getsockname()[1]}/hook")
        serving.join(20)
    assert asked == [host]
    assert (outcome == DELIVERED) is is_trusted
    if isinstance(outcome, DeliveryFailed):
        assert "certificate" in outcome.error.lower()


@pytest.mark.requirement("couriers:webhook:tls")
@pytest.mark.parametrize("is_willing", [True, False])
def test_a_proxy_carries_what_only_the_receiver_can_read(
    tmp_path: Path, names: Names, monkeypatch: pytest.MonkeyPatch, *, is_willing: bool
) -> None:
    context = shut(tmp_path, monkeypatch)
    names.answers = [["no-such-name.invalid"]]
    heard: list[bytes] = []
    with WebhookPlace(tmp_path) as place, socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            connection.settimeout(10)
            reader = connection.makefile("rb", buffering=0)
            while heard[-1:] != [b""]:
                heard.append(reader.readline().strip())
            if not is_willing:
                connection.sendall(b"HTTP/1.1 407 Who are you?\r\nContent-Length: 0\r\n\r\n")
                connection.close()
                return
            connection.sendall(b"HTTP/1.1 200 Here you are\r\n\r\n")
            with context.wrap_socket(connection, server_side=True) as safe:
                read_request(safe.makefile("rb"))
                safe.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
                # As old servers do: what it says ends with the connection.
                safe.sendall(b"HTTP/1.0 410 Gone\r\n\r\nmoved")

        serving = threading.Thread(target=serve)
        serving.start()
        port = server.getsockname()[1]
        monkeypatch.setenv("https_proxy", f"http://me:p%40ss@127.0.0.1:{port}")
        outcome = post(place, "https://bot.test/hook")
        serving.join(20)
    assert heard[:2] == [b"CONNECT bot.test:443 HTTP/1.1", b"Host: bot.test:443"]
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==" in heard
    said = "https://bot.test answered 410: moved"
    refused = "https://bot.test: its proxy answered 407"
    assert outcome == DeliveryFailed(
        retryable=not is_willing, error=said if is_willing else refused
    )


@pytest.mark.requirement("couriers:webhook:answers")
@pytest.mark.parametrize(
    ("url", "proxy", "is_retryable", "why"),
    [
        ("http://bot.test:99999/", "", False, "webhook is no address: Port out of range"),
        ("http://bot.test/", "socks5://127.0.0.1:1", True, "its proxy cannot be asked: it begins"),
    ],
)
@pytest.mark.usefixtures("names")
def test_what_cannot_be_asked_says_why(
    place: WebhookPlace,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    proxy: str,
    why: str,
    *,
    is_retryable: bool,
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    outcome = post(place, url)
    assert isinstance(outcome, DeliveryFailed)
    assert outcome.retryable is is_retryable
    assert why in outcome.error


@pytest.mark.requirement("couriers:webhook:document")
def test_an_address_in_any_letters_is_asked_for_as_http_spells_it() -> None:
    url = Url.read("https://Bücher.test/ü b?q=ä%20&r=1/2")
    assert (url.host, url.port) == ("xn--bcher-kva.test", 443)
    assert url.target == "/%C3%BC%20b?q=%C3%A4%20&r=1/2"
    assert Url.read("http://[::1]:81").authority == "[::1]:81"
    assert Url.read("http://[::1]/x").shown_host == "[::1]"
