"""(p): a transcript of a million lines in the web page: opening it, searching it, and its memory.

A worker (``cat``) writes them, and the daemon keeps them. Searches are typed, key by key, as a
person does; the clock runs from the last key. Memory is the resident set of the process that draws
the page, at its highest: with the browser's own code and all that it shares with others. What the
page's script holds is shown beside it.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from playwright.sync_api import Page

from bench.browser import (
    chromium,
    log_in,
    megabytes,
    new_context,
    nodes,
    renderers,
    seen,
    took_ms,
    until,
)
from bench.daemon import Daemon, make_home, serving
from bench.log_search import batches

SEARCHES: Final = {
    "rare": "needle42",
    "often": "error",
    "number": r"\d{4}ms$",
    "words": r"\w+ \w+ 77",
    "digits": r"\d",
}
"""Some of part h."""
KEY_MS: Final = 60
WRITTEN_S: Final = 900.0
WHEEL_PX, WHEEL_S = 400, 0.02
LINES_A_SCROLL: Final = WHEEL_PX // 20
SCROLLS_MAX: Final = 300
TRANSCRIPT_MB: Final = 10_000
CONFIG: Final = """
[agents.writer]
runtime = "command"
command = ["cat", "{file}"]
"""
LAST_LINE: Final = """
window.timed("opened", "click", () =>
  [...document.querySelectorAll(".logline .ts a")].some((each) => each.textContent === "%d"))
"""
FOUND: Final = """
window.timed("%s", "input", () =>
  document.querySelector(".transcript .search .note").textContent === "%s"
  && document.querySelector(".logline .ts a"))
"""

ALL_DRAWN: Final = """
() => {
  const box = document.querySelector(".log").getBoundingClientRect();
  const shown = [...document.querySelectorAll(".logline")].filter((each) => {
    const at = each.getBoundingClientRect();
    return at.bottom > box.top && at.top < box.bottom;
  });
  return shown.length > 0 && shown.every((each) => each.querySelector(".ts a")) || null;
}
"""


def measure(home: Path, *, lines: int) -> dict[str, float]:
    """Milliseconds and megabytes; see ``__main__.page_rows``."""
    text = home / "text"
    make_home(home, transcript_mb=TRANSCRIPT_MB, more=CONFIG.format(file=text))
    _write(text, lines)
    with serving(home) as daemon, chromium() as browser:
        run_id, written_s = _written(daemon, lines)
        page = new_context(browser).new_page()
        log_in(page, daemon, f"runs/{run_id}")
        sample = {"written_s": written_s} | _opening(page, _number(daemon, run_id, None))
        sample |= _looking_around(page, lines)
        sample |= _searching(
            page, {each: _number(daemon, run_id, each) for each in SEARCHES.values()}
        )
        # Another one waits for the next page, empty.
        drawing = max(renderers(browser), key=lambda each: megabytes(each, "VmHWM"))
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        heap = session.send("Runtime.getHeapUsage")["usedSize"]
        return sample | {
            "nodes": nodes(page),
            "rss_mb": megabytes(drawing, "VmRSS"),
            "rss_worst_mb": megabytes(drawing, "VmHWM"),
            "heap_mb": heap / 2**20,
        }


def _write(text: Path, lines: int) -> None:
    """The file that the worker prints."""
    with text.open("w") as file:
        for texts in batches(lines):
            file.write("\n".join(texts) + "\n")


def _written(daemon: Daemon, lines: int) -> tuple[str, float]:
    """The run whose worker wrote them, and the seconds until all were kept."""
    began = time.monotonic()
    with daemon.client() as client:
        run_id = daemon.spawn(client, "writer")

        def has_ended() -> bool | None:
            return client.get(f"/v1/runs/{run_id}")["outcome"] is not None or None

        until(has_ended, "the end of the writer", within_s=WRITTEN_S)
        took_s = time.monotonic() - began
        kept = client.get(f"/v1/runs/{run_id}/log", {"type": "text", "limit": 1})
        assert kept["totalLines"] == lines, kept
        assert kept["droppedLines"] == 0, kept
    return run_id, took_s


def _number(daemon: Daemon, run_id: str, pattern: str | None) -> int:
    """So many lines match; they are more than the worker wrote, because the daemon says when it
    began and how it ended."""
    with daemon.client() as client:
        found = client.get(f"/v1/runs/{run_id}/log", {"grep": pattern, "limit": 1}, timeout_s=60)
    return int(str(found["totalLines"]))


def _opening(page: Page, lines: int) -> dict[str, float]:
    """From the click on the tab until the newest lines are drawn."""
    page.evaluate(LAST_LINE % lines)
    page.locator(".tabs a", has_text="Transcript").click()
    return {"open_ms": took_ms(page, "opened")}


def _looking_around(page: Page, lines: int) -> dict[str, float]:
    """With the wheel through thousands of lines, and to places all over the transcript."""
    page.mouse.move(700, 500)
    for _ in range(min(SCROLLS_MAX, lines // LINES_A_SCROLL)):
        page.mouse.wheel(0, -WHEEL_PX)
        time.sleep(WHEEL_S)
    jumped = []
    for part in (0, 0.9, 0.25, 0.5, 0.1, 0.75, 0):
        began = time.perf_counter()
        page.evaluate(
            "(part) => { const log = document.querySelector('.log');"
            " log.scrollTop = log.scrollHeight * part; }",
            part,
        )
        seen(page, ALL_DRAWN)
        jumped.append((time.perf_counter() - began) * 1_000)
    return {"jump_worst_ms": max(jumped)}


def _searching(page: Page, numbers: Mapping[str, int]) -> dict[str, float]:
    """From the last key until the daemon's answer is drawn."""
    field = page.locator(".transcript .search input")
    sample = {}
    for name, pattern in SEARCHES.items():
        field.fill("")
        number = numbers[pattern]
        page.evaluate(FOUND % (name, f"{number:,} line{'' if number == 1 else 's'}"))
        field.press_sequentially(pattern, delay=KEY_MS)
        sample[f"search_{name}_ms"] = took_ms(page, name)
    return sample | {"search_worst_ms": max(sample.values())}
