"""(p): the web page at a daemon with thousands of runs, and what ten open pages cost that daemon.

Runs are spawned over the socket: a tree (a root, leads below it, their children), a smaller tree
that is still drawn as a graph, and runs without any below. Most ended well, one in ten failed, one
in fifty is at work. While the list is scrolled with the wheel, runs come and go.

Open pages are pages of browsers that share nothing, each with a stream of its own: tabs of one
browser would share one. All count as looked at; a browser slows hidden ones down.
"""

import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from playwright.sync_api import Browser, Page

from bench import page_lead
from bench.browser import address, chromium, log_in, new_context, nodes, took_ms, until
from bench.daemon import Daemon, cpu_s, make_home, serving
from bench.handoff import WARM_UP, hand_off
from bench.page_lead import agent_of
from bench.standing import quiet
from subagents.client.client import Client

CONFIG: Final = """
[agents.lead]
runtime = "command"
command = ["{python}", "{lead}", "{{task}}"]
subagents.allow_agents = ["*"]

[agents.broken]
runtime = "scripted"
script = [{{ error = "the tests do not pass" }}]
"""
UNREAD: Final = 5
UNFOLDED: Final = 3
LOADS: Final = 5
TURNS: Final = 5
SETTLE_S: Final = 2.0
WHEEL_PX, WHEEL_S = 400, 0.02
ROWS: Final = "window.timed('rows', null, () => document.querySelector('.runrow[data-row]'));"
FRAMES: Final = """
() => {
  const found = window.frames_seen = {gaps: [], long: [], nodes: 0};
  let last = null;
  const tick = (now) => {
    if (last !== null) found.gaps.push(now - last);
    last = now;
    if (found.gaps.length % 30 === 0) {
      found.nodes = Math.max(found.nodes, document.getElementsByTagName("*").length);
    }
    requestAnimationFrame(tick);
  };
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) found.long.push(each.duration);
  }).observe({type: "long-animation-frame"});
  requestAnimationFrame(tick);
}
"""


def measure(
    home: Path, *, runs: int, tree: int, drawn: int, pages: int, probes: int, seconds: float
) -> dict[str, float]:
    """Milliseconds, numbers of nodes, a ratio and a percentage; see ``__main__.page_rows``."""
    more = CONFIG.format(python=sys.executable, lead=page_lead.__file__)
    make_home(home, depth=3, more=more)
    with serving(home) as daemon, _no_worker_left(daemon), chromium() as browser:
        roots = _fill(daemon, runs, (tree, drawn))
        with _page(browser, daemon) as page:
            sample = _nodes(page, *roots)
        sample |= _first_rows(browser, daemon)
        sample |= _scrolling(browser, daemon, runs)
        return sample | _open_pages(browser, daemon, pages, probes, seconds)


# -- runs -----------------------------------------------------------------------------------------


def _fill(daemon: Daemon, runs: int, trees: Sequence[int]) -> list[str]:
    """The roots of trees of these sizes; the others of so many runs are roots themselves."""
    with daemon.client() as client:
        roots = [_tree(client, size) for size in trees]
        alone = [agent_of(each) for each in range(1, runs - sum(trees) - UNREAD + 1)]
        for agent in alone:
            daemon.spawn(client, agent)
        # What came of them is read, but of the last few failures.
        page_lead.read_all(client, sum(each in page_lead.ENDING for each in alone))
        for _ in range(UNREAD):
            daemon.spawn(client, "broken")
    quiet(daemon.pid)
    return roots


@contextmanager
def _no_worker_left(daemon: Daemon) -> Iterator[None]:
    """Processes would outlive the daemon: they are ended after the block."""
    try:
        yield
    finally:
        with daemon.client() as client:
            working: dict[str, str | int | None] = {"agentId": "lead", "phase": "running"}

            def left() -> list[dict[str, Any]]:
                return _documents(client.get("/v1/runs", working)["runs"])

            for each in left():
                client.post(f"/v1/runs/{each['runId']}/cancel", {})
            until(lambda: not left() or None, "the end of the leads")


def _tree(client: Client, size: int) -> str:
    """A root, leads below it, and their children, so many in all."""
    spec = page_lead.lead_spec(1, size - 1, 2)
    root = str(client.post("/v1/runs", {"spec": spec, "cwd": "/"})["runId"])

    def children(run_id: str, number: int) -> list[str]:
        def found() -> list[str] | None:
            those = _documents(client.get(f"/v1/runs/{run_id}")["children"])
            return [str(each["runId"]) for each in those] if len(those) == number else None

        return until(found, f"{number} children of {run_id}")

    expected = page_lead.shares(1, size - 1)
    for lead, (_, number) in zip(children(root, len(expected)), expected, strict=True):
        children(lead, number)
    return root


def _documents(value: object) -> list[dict[str, Any]]:
    assert isinstance(value, list), value
    return value


# -- one page -------------------------------------------------------------------------------------


@contextmanager
def _page(browser: Browser, daemon: Daemon, path: str = "runs") -> Iterator[Page]:
    context = new_context(browser)
    try:
        page = context.new_page()
        log_in(page, daemon, path)
        yield page
    finally:
        context.close()


def _first_rows(browser: Browser, daemon: Daemon) -> dict[str, float]:
    """From the address with its code to the first frame with rows, with nothing in the cache."""
    taken = []
    for _ in range(LOADS):
        context = new_context(browser, ROWS)
        page = context.new_page()
        page.goto(address(daemon, "runs"))
        taken.append(took_ms(page, "rows"))
        context.close()
    return {"first_rows_ms": statistics.median(taken), "first_rows_worst_ms": max(taken)}


def _nodes(page: Page, root: str, drawn: str) -> dict[str, float]:
    origin = page.evaluate("location.origin")

    def seen(path: str, selector: str) -> float:
        page.goto(f"{origin}/ui/{path}")
        page.wait_for_selector(selector)
        return nodes(page)

    found = {"nodes_now": seen("", "h2"), "nodes_runs": seen("runs", ".runrow[data-row]")}
    seen("runs?q=agent:lead&roots=1", ".runrow[data-row]")
    page.get_by_label("unfold").first.click()
    page.wait_for_selector(".runrow[aria-level='2']")
    found["nodes_runs_open"] = nodes(page)
    found["nodes_tree"] = seen(f"runs/{root}/tree", ".tree .label")
    for _ in range(UNFOLDED):
        groups = page.locator(".tree button.plain")
        if groups.count():
            groups.first.click()
    found["nodes_tree_open"] = nodes(page)
    found["nodes_table"] = seen(f"trees/{root}", "main .label, main .graphbox")
    found["nodes_graph"] = seen(f"trees/{drawn}", ".graphbox")
    return found


def _scrolling(browser: Browser, daemon: Daemon, runs: int) -> dict[str, float]:
    """All rows, from the top to the end, with the wheel, while runs come and go."""
    with _page(browser, daemon, "runs?flat=1") as page, _coming_and_going(daemon):
        page.wait_for_selector(".runrow[data-row]")
        page.evaluate(FRAMES)
        page.mouse.move(700, 500)
        rows = 0
        due = time.monotonic() + 600
        while rows < runs and time.monotonic() < due:
            page.mouse.wheel(0, WHEEL_PX)
            time.sleep(WHEEL_S)
            rows = page.evaluate(
                "Number([...document.querySelectorAll('[aria-rowindex]')].pop().ariaRowIndex) - 1"
            )
        assert rows >= runs, f"{rows} of {runs} rows came"
        seen = page.evaluate("window.frames_seen")
    gaps = sorted(seen["gaps"])
    return {
        "frames": len(gaps),
        "frame_worst_ms": gaps[-1],
        "frame_p99_ms": gaps[int(len(gaps) * 0.99)],
        "work_worst_ms": max(seen["long"], default=0.0),
        "elements_scrolling": seen["nodes"],
    }


@contextmanager
def _coming_and_going(daemon: Daemon) -> Iterator[None]:
    """Two runs a second, of real processes."""
    over = threading.Event()

    def spawn() -> None:
        with daemon.client() as client:
            while not over.wait(0.5):
                daemon.spawn(client, "clock")

    working = threading.Thread(target=spawn)
    working.start()
    try:
        yield
    finally:
        over.set()
        working.join()


# -- open pages ------------------------------------------------------------------------------------


def _open_pages(
    browser: Browser, daemon: Daemon, number: int, probes: int, seconds: float
) -> dict[str, float]:
    """Hand-off with and without them, in turn, and the idle daemon's processor time with them."""
    with ExitStack() as stack:
        pages = [stack.enter_context(_page(browser, daemon, "")) for _ in range(number)]
        home = pages[0].evaluate("location.origin") + "/ui/"
        time.sleep(SETTLE_S)
        cpu, began = cpu_s(daemon.pid), time.monotonic()
        time.sleep(seconds)
        cpu = (cpu_s(daemon.pid) - cpu) / (time.monotonic() - began)
        turns = [
            (
                _hand_off(pages, "about:blank", daemon, probes // TURNS or 1),
                _hand_off(pages, home, daemon, probes // TURNS or 1),
            )
            for _ in range(min(TURNS, probes))
        ]

    def median(of: Callable[[_HandOff, _HandOff], float]) -> float:
        return statistics.median(of(alone, beside) for alone, beside in turns)

    return {
        "handoff_ratio": median(lambda alone, beside: beside.p50_ms / alone.p50_ms),
        "handoff_alone_ms": median(lambda alone, _: alone.p50_ms),
        "handoff_beside_ms": median(lambda _, beside: beside.p50_ms),
        "handoff_cpu_alone_ms": median(lambda alone, _: alone.cpu_ms),
        "handoff_cpu_beside_ms": median(lambda _, beside: beside.cpu_ms),
        "idle_cpu_percent": cpu * 100,
    }


class _HandOff(NamedTuple):
    p50_ms: float
    cpu_ms: float
    """Of the daemon, for each run."""


def _hand_off(pages: Sequence[Page], where: str, daemon: Daemon, probes: int) -> _HandOff:
    """While the pages are there."""
    for page in pages:
        page.goto(where)
        if where != "about:blank":
            page.wait_for_selector("h2")
    time.sleep(SETTLE_S)
    with daemon.client() as client:
        cpu = cpu_s(daemon.pid)
        taken = hand_off(daemon, client, probes)
        cpu = (cpu_s(daemon.pid) - cpu) / (probes + WARM_UP)
    return _HandOff(statistics.median(taken) * 1_000, cpu * 1_000)
