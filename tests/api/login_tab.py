"""A browser's tab as far as HTTP goes: it keeps its cookie and says whose page it shows."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
from tests.api.home_daemon import CONFIG, Document, Home, serving
from tests.free_ports import free_port

from subagents.config.settings import DaemonSettings
from subagents.extensions.web.logins import logins_of


class Tab(httpx2.AsyncClient):
    """At the daemon of ``home``, whose TCP port is open."""

    def __init__(self, home: Home, **options: Any) -> None:
        self.home = home
        url = home.services.tcp.url
        assert url is not None
        self.origin = {"Origin": url}
        super().__init__(base_url=url, timeout=40, trust_env=False, **options)

    async def code(self, role: str = "operator") -> str:
        """What the user gets from ``subagents ui``."""
        return (await self.link(role=role))[0]

    async def link(self, **body: str) -> tuple[str, Document]:
        """A code, and what is said of it."""
        made = await self.home.ok("POST", "/v1/login/codes", body)
        return str(made["url"]).partition("#k=")[2], made

    async def log_in(self, code: str) -> httpx2.Response:
        """As our page does with what stands behind the ``#``."""
        return await self.post("/v1/login", json={"code": code}, headers=self.origin)

    async def logged_in(self, role: str = "operator") -> Document:
        """The answer to a login that must succeed; from now on writes are the page's own."""
        return await self.opened(await self.code(role))

    async def opened(self, code: str) -> Document:
        """As ``logged_in``, with this code."""
        answered = await self.log_in(code)
        assert answered.status_code == 200, answered.text
        found: Document = answered.json()
        self.headers.update({**self.origin, "X-Subagents-CSRF": found["csrf"]})
        return found

    async def status(self, method: str, path: str, **headers: str) -> int:
        return (await self.request(method, path, headers=headers)).status_code


def play(
    home: Path,
    scenario: Callable[[Tab], Awaitable[None]],
    *,
    more: str = "",
    settings: DaemonSettings | None = None,
    **options: Any,
) -> None:
    """The scenario at a daemon of its own with a TCP port, ``more`` in its configuration."""

    async def whole() -> None:
        found = settings or DaemonSettings(http_port=free_port())
        async with serving(home, CONFIG + more, found) as daemon:
            # A socket accepts before anybody answers there; who does has opened the port.
            await daemon.ok("GET", "/healthz")
            async with Tab(daemon, **options) as tab:
                await scenario(tab)

    asyncio.run(whole())


def at(home: Home, clock: Callable[[], int]) -> None:
    """Let the logins of this daemon go by another clock."""
    logins_of(home.services)._now_ms = clock
