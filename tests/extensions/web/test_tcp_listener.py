"""When the daemon listens on TCP, and where."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.api.home_daemon import Home, serving
from tests.api.login_tab import Tab
from tests.api.tcp_options import has_nagle
from tests.free_ports import free_port

from subagents.config.settings import DaemonSettings
from subagents.errors import ConfigError
from subagents.extensions.web import tcp_listener


async def url_of(home: Home) -> object:
    return (await home.ok("GET", "/v1/diagnostics"))["httpUrl"]


@contextmanager
def taken(port: int) -> Iterator[None]:
    """Somebody else listens there."""
    with tcp_listener.bound(DaemonSettings(http_port=port)) as other:
        other.listen()
        yield


@pytest.mark.requirement("http:tcp")
def test_the_second_part_of_an_answer_waits_for_no_acknowledgement_of_the_first() -> None:
    async def scenario() -> None:
        port = free_port()
        with tcp_listener.bound(DaemonSettings(http_port=port)) as listener:
            assert not await has_nagle(listener)

    asyncio.run(scenario())


@pytest.mark.requirement("login:port")
def test_without_a_configured_port_one_is_opened_when_somebody_wants_the_page(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home:
            assert await url_of(home) is None
            assert not (tmp_path / "state" / "operator.token").exists()
            answers = [home.ok("POST", "/v1/login/codes") for _ in range(5)]
            urls = {each["url"].partition("#")[0] for each in await asyncio.gather(*answers)}
            assert urls == {f"{await url_of(home)}/"}
            assert urls.pop().startswith("http://127.0.0.1:")
            async with Tab(home) as tab:
                await tab.logged_in()

    asyncio.run(scenario())


@pytest.mark.requirement("login:port")
def test_the_next_daemon_listens_there_again_while_a_browser_is_logged_in(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home:
            await home.ok("POST", "/v1/login/codes")
            first = await url_of(home)
        async with serving(tmp_path) as home:
            assert await url_of(home) is None, "nobody took the code"
            await home.ok("POST", "/v1/login/codes")
            async with Tab(home) as tab:
                await tab.logged_in()
                first, cookies = await url_of(home), tab.cookies
        async with serving(tmp_path) as home:
            assert await url_of(home) == first
            async with Tab(home) as tab:
                tab.cookies = cookies
                login = (await tab.get("/v1/login")).json()
                await home.ok("DELETE", f"/v1/logins/{login['loginId']}")
        async with serving(tmp_path) as home:
            assert await url_of(home) is None

    asyncio.run(scenario())


@pytest.mark.requirement("login:port")
def test_a_port_that_somebody_else_has_meanwhile_stops_no_daemon(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home:
            await home.ok("POST", "/v1/login/codes")
            async with Tab(home) as tab:
                await tab.logged_in()
                port = tab.base_url.port
        assert port is not None
        with taken(port):
            async with serving(tmp_path) as home:
                assert await url_of(home) is None
                assert "browsers that are logged in do not find us" in caplog.text
                made = await home.ok("POST", "/v1/login/codes")
                assert f":{port}/" not in made["url"]
                async with Tab(home) as tab:
                    await tab.logged_in()

    asyncio.run(scenario())


@pytest.mark.requirement("login:port")
def test_a_configured_port_is_the_only_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        port = free_port()
        async with serving(tmp_path, settings=DaemonSettings(http_port=port)) as home:
            made = await home.ok("POST", "/v1/login/codes")
            assert made["url"].startswith(f"http://127.0.0.1:{port}/#k=")

    asyncio.run(scenario())


@pytest.mark.requirement("login:port")
def test_when_no_port_can_be_had_the_call_says_so_and_the_next_one_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refuses = tcp_listener.bound, True

    @contextmanager
    def full(settings: DaemonSettings) -> Iterator[socket.socket]:
        if refuses:
            raise ConfigError("cannot listen: Too many open files")
        with real(settings) as listener:
            yield listener

    monkeypatch.setattr(tcp_listener, "bound", full)

    async def scenario() -> None:
        nonlocal refuses
        async with serving(tmp_path) as home:
            status, answered = await home.call("POST", "/v1/login/codes")
            assert (status, answered["message"]) == (503, "cannot listen: Too many open files")
            refuses = False
            await home.ok("POST", "/v1/login/codes")

    asyncio.run(scenario())
