"""The TCP endpoint: closed unless asked for, then open to who has a token and names us rightly."""

import asyncio
import contextlib
import http.client
import json
import socket
import ssl
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.api.home_daemon import Document, Home, build, serving
from tests.certificates import Authority
from tests.free_ports import free_port

from subagents.api.server.daemon import run_daemon
from subagents.config.layers import load
from subagents.config.paths import Paths
from subagents.config.settings import DaemonSettings
from subagents.errors import ConfigError
from subagents.extensions.web.tcp import operator_token, own_names
from subagents.extensions.web.tcp_certificate import TcpCertificate
from subagents.extensions.web.tcp_listener import bound

Headers = Mapping[str, str]
Answer = tuple[int, Document, Mapping[str, str]]


class Port:
    """Calls the daemon of one test over TCP."""

    def __init__(self, home: Home, settings: DaemonSettings) -> None:
        self.home = home
        self.host, self.number = settings.http_host, settings.http_port
        state_dir = home.services.paths.state_dir
        self.token_file = state_dir / "operator.token"
        self.operator = {"Authorization": f"Bearer {operator_token(state_dir)}"}

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.number, timeout=20)

    def _call(self, method: str, path: str, headers: Headers, body: object) -> Answer:
        calling = self.connection()
        try:
            calling.putrequest(method, path, skip_host="Host" in headers)
            content = json.dumps(body).encode()
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                calling.putheader(name, value)
            calling.endheaders(content)
            answered = calling.getresponse()
            return answered.status, json.loads(answered.read()), dict(answered.getheaders())
        finally:
            calling.close()

    async def call(
        self, path: str, headers: Headers, *, method: str = "GET", body: object = None
    ) -> Answer:
        return await asyncio.to_thread(self._call, method, path, headers, body or {})

    async def status(self, path: str, headers: Headers, *, method: str = "GET") -> int:
        return (await self.call(path, headers, method=method))[0]

    async def refused(self) -> list[tuple[str, str]]:
        """What was asked for and why not, for every line of the file of refusals."""
        await self.home.services.refusals.flush()
        text = await asyncio.to_thread(self.home.services.refusals.file.read_text)
        lines = [json.loads(line) for line in text.splitlines()]
        assert all(line["peer"].startswith("127.0.0.1:") for line in lines)
        return [(line["call"], line["reason"]) for line in lines]


def play(
    tmp_path: Path, scenario: Callable[[Port], Awaitable[None]], host: str = "127.0.0.1"
) -> None:
    settings = DaemonSettings(http_port=free_port(host), http_host=host)

    async def whole() -> None:
        async with serving(tmp_path, settings=settings) as home:
            await scenario(Port(home, settings))

    asyncio.run(whole())


# -- who may come in -----------------------------------------------------------------------------


@pytest.mark.requirement("tcp:token")
def test_without_a_token_only_the_health_check_answers(tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        assert (await port.call("/healthz", {}))[:2] == (200, {"status": "ok"})
        for path in ("/v1/runs", "/version", "/v1/config", "/v1/diagnostics", "/mcp", "/nope"):
            status, document, headers = await port.call(path, {})
            assert (status, document["code"]) == (401, "unauthorized"), path
            assert headers["content-type"] == "application/problem+json"
            assert headers["www-authenticate"] == "Bearer"
            assert "operator.token" in document["hint"]
        assert (await port.refused())[0] == ("GET /v1/runs", "calls over TCP need a token")
        assert len(await port.refused()) == 6

    play(tmp_path, scenario)


@pytest.mark.requirement("login:asking")
def test_a_page_that_asks_whether_it_is_logged_in_is_told_no_and_is_on_no_record(
    tmp_path: Path,
) -> None:
    async def scenario(port: Port) -> None:
        assert await port.status("/v1/login", {}) == 401
        cookie = {"Cookie": f"subagents-{port.number}={'x' * 43}"}
        assert await port.status("/v1/login", cookie) == 401
        assert await port.status("/v1/login", {"Authorization": "Bearer x"}) == 401
        assert [call for call, _ in await port.refused()] == ["GET /v1/login"] * 2

    play(tmp_path, scenario)


@pytest.mark.requirement("tcp:token")
@pytest.mark.parametrize(
    "given",
    [
        *("Bearer", "Bearer ", "Basic abc", f"Bearer {'a' * 43}", "Bearer caf\xe9"),
        f"Bearer sa_r-0000000001_1_{'a' * 43}",
    ],
)
def test_a_wrong_token_opens_nothing(tmp_path: Path, given: str) -> None:
    async def scenario(port: Port) -> None:
        for path in ("/v1/config", "/v1/runs"):
            assert await port.status(path, {"Authorization": given}) == 401

    play(tmp_path, scenario)


@pytest.mark.requirement("tcp:operator")
def test_the_operators_token_gives_its_rights_unless_an_agent_uses_it(tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        agent = {**port.operator, "X-Subagents-Caller": "agent"}
        assert await port.status("/v1/runs", agent) == 200
        assert await port.status("/v1/sweep", agent, method="POST") == 403
        assert await port.status("/v1/sweep", port.operator, method="POST") == 200
        named = {**port.operator, "X-Subagents-Session": "agent:x:subagent:y"}
        assert await port.status("/v1/runs", named) == 401

    play(tmp_path, scenario)


@pytest.mark.requirement("tcp:worker")
def test_a_workers_token_is_a_workers_on_tcp_too(tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        home = port.home
        run_id = (await home.spawn("hang"))["runId"]
        await home.until_phase(run_id, "running")
        me = home.worker(run_id)
        progress = {"phase": "half"}
        status, document, _ = await port.call(
            f"/v1/runs/{run_id}/progress", me, method="POST", body=progress
        )
        assert (status, document["status"]) == (200, "stored")
        assert await port.status("/v1/sweep", me, method="POST") == 403
        await home.ok("POST", f"/v1/runs/{run_id}/cancel")
        await home.until_phase(run_id, "completed")
        assert await port.status("/v1/runs", me) == 401

    play(tmp_path, scenario)


@pytest.mark.requirement("tcp:host")
def test_a_foreign_host_is_refused_whatever_token_it_brings(tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        for host in ("evil.example", f"evil.example:{port.number}", "127.0.0.1", "localhost:1", ""):
            found, document, _ = await port.call("/healthz", {**port.operator, "Host": host})
            assert (found, document["code"]) == (421, "forbidden"), host
        for host in ("127.0.0.1", "localhost", "LocalHost", "[::1]"):
            named = {**port.operator, "Host": f"{host}:{port.number}"}
            assert await port.status("/v1/runs", named) == 200, host
        reasons = [reason for _, reason in await port.refused()]
        assert reasons[0].startswith("this is not evil.example; it is known as 127.0.0.1:")

    play(tmp_path, scenario)


@pytest.mark.requirement("tcp:host")
def test_two_hosts_in_one_request_are_refused(tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        own = f"127.0.0.1:{port.number}"
        request = f"GET /healthz HTTP/1.1\r\nHost: {own}\r\nHost: {own}\r\n\r\n"

        def ask() -> bytes:
            with socket.create_connection((port.host, port.number), timeout=20) as calling:
                calling.sendall(request.encode())
                return calling.recv(4096)

        assert b" 421 " in (await asyncio.to_thread(ask)).splitlines()[0]

    play(tmp_path, scenario)


@pytest.mark.requirement("tcp:origin")
def test_a_page_of_another_origin_is_refused_and_none_may_read_an_answer(tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        own = f"http://127.0.0.1:{port.number}"
        for origin in ("https://evil.example", "null", own.replace("http", "https"), f"{own}1"):
            found = await port.status("/healthz", {**port.operator, "Origin": origin})
            assert found == 403, origin
        for origin in (own, f"http://localhost:{port.number}"):
            status, _, headers = await port.call("/v1/runs", {**port.operator, "Origin": origin})
            assert status == 200, origin
            assert not [name for name in headers if name.lower().startswith("access-control")]
        preflight = {"Origin": own, "Access-Control-Request-Method": "POST"}
        assert await port.status("/v1/runs", preflight, method="OPTIONS") == 401

    play(tmp_path, scenario)


@pytest.mark.requirement("tcp:unix-socket-unchanged")
def test_the_unix_socket_needs_no_token_and_takes_any_host(tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        home = port.home
        assert (await home.ok("GET", "/v1/runs", None, {"X-Host": "x"}))["total"] == 0
        status, _ = await home.call("GET", "/v1/runs", None, port.operator)
        assert status == 401, "the operator's token is for TCP"
        found = await home.ok("GET", "/v1/diagnostics")
        assert found["refusals"]["lastDay"] == 1

    play(tmp_path, scenario)


@pytest.mark.requirement("tcp:loopback")
def test_it_can_listen_on_ipv6(tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        assert await port.status("/v1/runs", port.operator) == 200
        assert await port.status("/v1/runs", {**port.operator, "Host": "[::2]:80"}) == 421

    play(tmp_path, scenario, host="::1")


# -- its configuration ---------------------------------------------------------------------------


@pytest.mark.requirement("tcp:loopback")
@pytest.mark.parametrize("host", ["0.0.0.1", "::", "192.168.1.5", "example.org", "127.0.0.256"])
def test_an_address_that_others_can_reach_is_refused(tmp_path: Path, host: str) -> None:
    environ = {"SUBAGENTS_HOME": str(tmp_path)}
    overrides = {"daemon.http_host": host, "daemon.http_port": 8765}
    with pytest.raises(ConfigError, match=r"unless daemon\.tls_cert and daemon\.tls_key are set"):
        load(None, environ, paths=Paths.resolve(environ), overrides=overrides)


@pytest.mark.requirement("tcp:loopback")
def test_it_is_known_by_its_loopback_names_with_its_port() -> None:
    assert own_names(DaemonSettings(http_port=8765)) == {
        "127.0.0.1:8765",
        "localhost:8765",
        "[::1]:8765",
    }
    assert "127.0.0.7:8765" in own_names(DaemonSettings(http_port=8765, http_host="127.0.0.7"))
    assert {"localhost", "localhost:80"} <= own_names(DaemonSettings(http_port=80))
    assert DaemonSettings().http_url is None
    assert DaemonSettings(http_port=1, http_host="::1").http_url == "http://[::1]:1"


@pytest.mark.requirement("tcp:off-by-default")
def test_no_port_is_opened_unless_one_is_configured(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home:
            assert (await home.ok("GET", "/v1/diagnostics"))["httpUrl"] is None
            assert not (home.services.paths.state_dir / "operator.token").exists()

    assert DaemonSettings().http_port == 0
    asyncio.run(scenario())


@pytest.mark.requirement("tcp:port-taken")
def test_a_port_that_is_taken_stops_the_start_before_anything_is_touched(tmp_path: Path) -> None:
    settings = DaemonSettings(http_port=free_port())
    services = build(tmp_path)

    async def start() -> None:
        paths = services.paths
        await run_daemon(services, paths=paths, log_path=paths.log_file, settings=settings)

    with bound(settings) as taken:
        taken.listen()
        with pytest.raises(ConfigError, match=r"cannot listen on http://127\.0\.0\.1:") as caught:
            asyncio.run(start())
    assert caught.value.hint == "choose another daemon.http_port, or 0 for none"
    assert not services.paths.database.exists()
    assert not services.paths.socket.exists()


# -- the operator's token ------------------------------------------------------------------------


@pytest.mark.requirement("tcp:operator-token")
def test_the_operators_token_is_made_once_and_private(tmp_path: Path) -> None:
    token = operator_token(tmp_path)
    file = tmp_path / "operator.token"
    assert len(token) == 43
    assert operator_token(tmp_path) == token
    assert file.read_text() == f"{token}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.requirement("tcp:operator-token")
def test_a_token_that_others_could_read_or_that_is_none_is_not_used(tmp_path: Path) -> None:
    operator_token(tmp_path)
    file = tmp_path / "operator.token"
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="open to others"):
        operator_token(tmp_path)
    file.chmod(0o600)
    for content in ("", "short", "a" * 42 + "!"):
        file.write_text(content)
        with pytest.raises(ConfigError, match="43 url-safe characters"):
            operator_token(tmp_path)


# -- over TLS --------------------------------------------------------------------------------------


class Certified(NamedTuple):
    """A certificate of a CA, in files."""

    ca: Path
    certificate: Path
    key: Path


def certified(directory: Path, *hosts: str, authority: Authority | None = None) -> Certified:
    """A new certificate, put into the files of the one before."""
    authority = authority or Authority()
    pem = authority.issued("port", *hosts).decode()
    found = Certified(directory / "ca.pem", directory / "cert.pem", directory / "key.pem")
    at = pem.index("-----BEGIN PRIVATE KEY-----")
    found.ca.write_bytes(authority.pem)
    found.certificate.write_text(pem[:at])
    found.key.write_text(pem[at:])
    return found


def trusting(found: Certified) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=found.ca)


def with_tls(found: Certified, host: str) -> DaemonSettings:
    return DaemonSettings(
        http_port=free_port(host),
        http_host=host,
        tls_cert=str(found.certificate),
        tls_key=str(found.key),
    )


class EncryptedPort(Port):
    """Calls the daemon of one test over TLS, by a name in its certificate."""

    def __init__(self, home: Home, settings: DaemonSettings, found: Certified) -> None:
        super().__init__(home, settings)
        self.host, self.found = "127.0.0.1", found

    def connection(self) -> http.client.HTTPConnection:
        context = trusting(self.found)
        return http.client.HTTPSConnection(self.host, self.number, timeout=20, context=context)


@pytest.mark.requirement("tcp:tls")
def test_beyond_loopback_https_alone_is_spoken_and_a_token_is_needed_as_ever(
    tmp_path: Path,
) -> None:
    found = certified(tmp_path, "127.0.0.1", "agents.example")
    settings = with_tls(found, "0.0.0.0")  # noqa: S104

    async def whole() -> None:
        async with serving(tmp_path / "h", settings=settings) as home:
            port = EncryptedPort(home, settings, found)
            assert (await port.call("/healthz", {}))[0] == 200
            assert await port.status("/v1/runs", {}) == 401
            assert await port.status("/v1/runs", port.operator) == 200
            named = {"Host": f"agents.example:{port.number}", **port.operator}
            assert await port.status("/v1/runs", named) == 200
            foreign = {"Host": f"elsewhere.example:{port.number}", **port.operator}
            assert await port.status("/v1/runs", foreign) == 421
            origin = {"Origin": f"http://agents.example:{port.number}", **named}
            assert await port.status("/v1/runs", origin) == 403
            plain = Port(home, settings)
            plain.host = "127.0.0.1"
            with pytest.raises((OSError, http.client.HTTPException)):
                await plain.call("/healthz", {})
            assert home.services.tcp.url == f"https://127.0.0.1:{port.number}"

    asyncio.run(whole())


@pytest.mark.requirement("tcp:tls")
def test_a_certificate_that_was_renewed_is_shown_without_a_restart(tmp_path: Path) -> None:
    authority = Authority()
    found = certified(tmp_path, "127.0.0.1", authority=authority)
    used = TcpCertificate(found.certificate, found.key)
    before = shown_by(used, found)
    key = found.key.read_text()
    found.key.write_text("half of")
    assert shown_by(used, found) == before
    found.key.write_text(key)
    certified(tmp_path, "127.0.0.1", authority=authority)
    assert shown_by(used, found) != before
    assert used.names == {"127.0.0.1"}


def shown_by(used: TcpCertificate, found: Certified) -> bytes:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    calling = trusting(found).wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    answering = used.context.wrap_bio(to_server, to_client, server_side=True)
    for each in (calling, answering, calling, answering):
        with contextlib.suppress(ssl.SSLWantReadError):
            each.do_handshake()
    shown = calling.getpeercert(binary_form=True)
    assert shown is not None
    return shown


@pytest.mark.requirement("tcp:tls")
def test_files_that_do_not_belong_together_are_refused_by_their_keys(tmp_path: Path) -> None:
    found = certified(tmp_path, "127.0.0.1")
    (tmp_path / "other").mkdir()
    other = certified(tmp_path / "other", "127.0.0.1")
    for key in (other.key, tmp_path / "none.pem", found.certificate):
        with pytest.raises(ConfigError, match=r"daemon\.tls_cert .* and daemon\.tls_key"):
            TcpCertificate(found.certificate, key)


@pytest.mark.requirement("tcp:tls")
@pytest.mark.parametrize("key", ["tls_cert", "tls_key"])
def test_one_file_of_the_two_is_refused(tmp_path: Path, key: str) -> None:
    environ = {"SUBAGENTS_HOME": str(tmp_path)}
    overrides = {f"daemon.{key}": "x.pem", "daemon.http_host": "0.0.0.0"}  # noqa: S104
    with pytest.raises(ConfigError, match=r"daemon\.tls_(key|cert) is missing"):
        load(None, environ, paths=Paths.resolve(environ), overrides=overrides)
