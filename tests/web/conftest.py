"""A real Chromium at a real daemon: what the tests of the web page stand on.

``page`` is a tab with an operator's login; ``browsers`` opens further ones, with other roles, sizes
or none at all. Where no Chromium is installed the tests that ask for one are skipped and say so.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from tests.e2e.live_home import DEFAULTS, LiveHome, live_home
from tests.free_ports import free_port
from tests.web.stage import Stage, Story, play, staged

CHROMIUMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REBOUND: Final = "evil.example"
"""A name that leads to this machine, in these browsers only."""
ARGUMENTS: Final = (
    "--no-sandbox",  # as root, and in containers, it has none to have
    f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",
)
WAIT_MS: Final = 40_000.0
"""For what takes a moment here: a machine may be slow, and busy with other tests."""
expect.set_options(timeout=WAIT_MS)
LOG_IN: Final = """
async (code) => {
  const answer = await fetch("/v1/login", {method: "POST", body: JSON.stringify({code})});
  return {status: answer.status, ...await answer.json()};
}
"""
"""What our own page does with the code behind the ``#``."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module's tests; each has a context, and so cookies, of its own.

    Not for the session: Playwright's event loop counts as running in this thread until it ends, and
    the tests of other folders, which may follow in this process, could not run one of theirs.
    """
    found = program()
    if found is None:
        pytest.skip(f"no Chromium here (looked for {', '.join(CHROMIUMS)})")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[LiveHome]:
    """A daemon of this test with a TCP port."""
    talker = '[agents.talker]\nruntime = "scripted"\nscript = [{ hang = true }]\n'
    links = "[web]\nlinks = true\n"
    config = f"[daemon]\nhttp_port = {free_port()}\n{DEFAULTS}{talker}{links}"
    with live_home(tmp_path, config=config) as found:
        yield found


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Story]]:
    """A daemon with a day of work on it, for tests that only look."""
    with staged(tmp_path_factory.mktemp("stage"), free_port()) as found:
        yield found, play(found)


class Browsers:
    """Opens tabs at one daemon."""

    def __init__(self, chromium: Browser, home: LiveHome, stack: ExitStack) -> None:
        self._chromium = chromium
        self._home = home
        self._stack = stack

    def address(self, role: str = "operator") -> str:
        """What ``subagents ui`` prints: the page, with a code that logs in once."""
        return str(self._home.post("/v1/login/codes", {"role": role})["url"])

    def context(self, **options: Any) -> BrowserContext:
        """A browser without a cookie; ``options`` as Playwright's ``new_context`` takes them."""
        context = self._chromium.new_context(**options)
        context.set_default_timeout(WAIT_MS)
        self._stack.callback(context.close)
        return context

    def tab(self, **options: Any) -> Page:
        """An empty tab of a browser without a cookie."""
        return self.context(**options).new_page()

    def logged_in(self, role: str = "operator", **options: Any) -> Page:
        """A tab that is logged in and shows nothing of ours but an error, whatever is built."""
        page = self.tab(**options)
        address, _, code = self.address(role).partition("#k=")
        page.goto(f"{address}ui/assets/none.js")
        assert page.evaluate(LOG_IN, code)["status"] == 200
        return page

    def open_page(self, page: Page, address: str | None = None) -> str:
        """Go to what ``subagents ui`` prints, and let the built page take the code from it.

        The code leaves the address before it is exchanged: who went on then would have no cookie.
        """
        address = address or self.address()
        page.goto(address)
        page.wait_for_selector("h1")
        return address

    def at_the_page(self, role: str = "operator", **options: Any) -> Page:
        """A tab in which the built page has logged in by itself, as after ``subagents ui``."""
        page = self.tab(**options)
        self.open_page(page, self.address(role))
        return page


@pytest.fixture
def browsers(chromium: Browser, home: LiveHome) -> Iterator[Browsers]:
    """Opens tabs; all are closed after the test."""
    with ExitStack() as stack:
        yield Browsers(chromium, home, stack)


@pytest.fixture
def page(browsers: Browsers) -> Page:
    """The built page, logged in as the operator."""
    return browsers.at_the_page()


def program() -> str | None:
    """Where Chromium is; None = nowhere."""
    return next(filter(None, map(shutil.which, CHROMIUMS)), None)
