"""(p): two open pages while the daemon is killed and started: when both show what is so.

What is so has changed meanwhile: a worker ended while there was no daemon. A page is right when it
shows that, and no longer that the daemon does not answer. Nothing is reloaded.
"""

import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench.browser import chromium, log_in, new_context, seen, until
from bench.daemon import make_home, serving

CONFIG: Final = """
[agents.patient]
runtime = "command"
command = ["sh", "-c", "until [ -e {home}/go ]; do sleep 0.05; done; echo came; : > {home}/gone"]
"""
BROWSERS: Final = 2
RIGHT: Final = """
window.right_at = null;
const look = () => {
  const ended = document.querySelector('section[aria-label="just ended"]');
  const is_right = ended !== null && document.querySelector(".lost-bar") === null;
  if (!is_right) window.right_at = null;
  else if (window.right_at === null) {
    requestAnimationFrame(() => setTimeout(() => (window.right_at = Date.now())));
  }
};
new MutationObserver(look).observe(document, {subtree: true, childList: true});
"""


def measure(home: Path) -> dict[str, float]:
    """Seconds until the last of the pages is right, and how many of them the daemon took."""
    make_home(home, more=CONFIG.format(home=home))
    with chromium() as browser, ExitStack() as stack:
        with serving(home) as first:
            with first.client() as client:
                first.spawn(client, "patient")
            pages = [new_context(browser).new_page() for _ in range(BROWSERS)]
            for page in pages:
                log_in(page, first)
                page.wait_for_selector('section[aria-label="working"]')
                page.evaluate(RIGHT)
            os.kill(first.pid, signal.SIGKILL)
        for page in pages:
            page.wait_for_selector(".lost-bar")
        (home / "go").touch()
        until(lambda: (home / "gone").exists() or None, "the end of the worker")
        started_at = time.time()
        second = stack.enter_context(serving(home))
        right_at = max(seen(page, "window.right_at") for page in pages) / 1_000
    return {"right_s": right_at - started_at, "answers_s": second.ready_s}
