"""A real Chromium at a daemon that is measured: tabs, logins, and clocks that run inside the page.

What a person waits for is measured in the page itself, from the event that began it (a click, a
key, the address) until what was waited for is in the document and the next frame was drawn; the
way from here to the browser and back is in no number.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from bench.daemon import Daemon

CHROMIUMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT = 1440, 900
WAIT_MS: Final = 120_000.0
"""For what takes a moment, or was missed by far: then the number says so."""
ALL_NODES: Final = """
() => {
  const nodes = document.createTreeWalker(document, NodeFilter.SHOW_ALL);
  let number = 1;
  while (nodes.nextNode()) number += 1;
  return number;
}
"""
"""Elements, texts and comments: more than elements alone, and never fewer."""
STOPWATCH: Final = """
window.stopwatch = {};
// Begin with an event, or with the address; end with the first frame after what is waited for.
window.timed = (name, event, is_there) => {
  const found = window.stopwatch[name] = {begun: null, took: null};
  const look = () => {
    if (found.begun === null || !is_there()) return;
    watching.disconnect();
    requestAnimationFrame(() => setTimeout(() => (found.took = performance.now() - found.begun)));
  };
  const watching = new MutationObserver(look);
  watching.observe(document, {subtree: true, childList: true, characterData: true});
  if (event === null) found.begun = 0;
  // Of several, the last one: a key after a key asks anew.
  else document.addEventListener(event, () => (found.begun = performance.now()), {capture: true});
  return found;
};
"""

T = TypeVar("T")


def missing() -> str | None:
    """Why the page cannot be measured here; None = it can."""
    if _program() is None:
        return f"no Chromium here (looked for {', '.join(CHROMIUMS)})"
    return None


def _program() -> str | None:
    return next(filter(None, map(shutil.which, CHROMIUMS)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser of its own, until the block ends.

    Raises:
        RuntimeError: There is none, or no page to open.
    """
    if (why := missing()) is not None:
        raise RuntimeError(why)
    with sync_playwright() as playwright:
        # As root, and in containers, it has no sandbox to have.
        browser = playwright.chromium.launch(executable_path=_program(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def new_context(browser: Browser, script: str = "") -> BrowserContext:
    """A browser without a cookie, in whose pages ``script`` runs first."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
    context.set_default_timeout(WAIT_MS)
    context.add_init_script(STOPWATCH + script)
    return context


def address(daemon: Daemon, path: str = "") -> str:
    """Of a page below ``/ui/``, with a code that logs in once, within a minute."""
    with daemon.client() as client:
        url = urlsplit(str(client.post("/v1/login/codes", {"role": "operator"})["url"]))
    return f"{url.scheme}://{url.netloc}/ui/{path}#{url.fragment}"


def log_in(page: Page, daemon: Daemon, path: str = "") -> str:
    """Open a page of ours with a login; returns where all of them are, with ``/`` at the end."""
    where = address(daemon, path)
    page.goto(where)
    page.wait_for_selector("h1")
    return f"{where.partition('/ui/')[0]}/ui/"


def seen(page: Page, script: str) -> Any:
    """Ask until the answer is not null; a page of ours lets nobody wait in it (no ``eval``)."""
    return until(lambda: page.evaluate(script), script)


def took_ms(page: Page, name: str) -> float:
    """Wait for a stopwatch and read it."""
    return float(seen(page, f"window.stopwatch[{name!r}].took"))


def nodes(page: Page) -> int:
    """Of all kinds, in the document as it is now."""
    return int(page.evaluate(ALL_NODES))


def until(found: Callable[[], T | None], what: str, *, within_s: float = 120.0) -> T:
    """Poll.

    Raises:
        RuntimeError: Not within the time.
    """
    due = time.monotonic() + within_s
    while (value := found()) is None:
        if time.monotonic() > due:
            raise RuntimeError(f"{what}: not within {within_s} s")
        time.sleep(0.05)
    return value


def renderers(browser: Browser) -> list[int]:
    """The processes that draw its pages."""
    session = browser.new_browser_cdp_session()
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return [int(each["id"]) for each in found if each["type"] == "renderer"]


def megabytes(pid: int, field: str) -> float:
    """``VmRSS``, or its highest so far, ``VmHWM``; what it shares with others counts whole."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has no {field}")
