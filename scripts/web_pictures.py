"""Take the pictures of the web page that the documentation shows: docs/pictures/.

    python -m scripts.web_pictures

They are of a real daemon in a real Chromium, on a day that tests/web/stage.py plays with a clock of
its own; the test that looks at every page takes them. A picture in which nobody could see a
difference stays as it is: each file that changes is one to look at. Needs npm and a Chromium.
"""

import base64
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, sync_playwright
from tests.web.conftest import ARGUMENTS, program

PLACE: Final = Path("docs/pictures")
TEST: Final = "tests/web/test_accessibility.py"
SELECTED: Final = ("--tier", "all", "-k", "1440 or 320")
SHOWN: Final = (
    "now-1440-light",
    "now-1440-dark",
    "now-320-light",
    "runs-1440-light",
    "runs-320-dark",
    "run-1440-light",
    "run-failed-1440-light",
    "run-transcript-1440-dark",
    "run-timeline-1440-light",
    "plan-1440-light",
    "session-1440-light",
    "inbox-1440-light",
    "agents-1440-light",
    "cost-1440-light",
    "alerts-1440-light",
    "new-run-1440-light",
    "palette-1440-dark",
)
"""Page, width in pixels, theme."""
BYTES_MAX: Final = 1_500_000
"""Of all together: everybody who clones the repository has them."""
SEEN_FROM: Final = 40
"""Of 255, in one colour of one point: less than that is how letters were smoothed."""
DIFFERENCE: Final = """
async (pictures) => {
  const [one, other] = await Promise.all(pictures.map(async (text) => {
    const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], {type: "image/webp"}));
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    canvas.drawImage(bitmap, 0, 0);
    return canvas.getImageData(0, 0, bitmap.width, bitmap.height);
  }));
  if (one.width !== other.width || one.height !== other.height) return 255;
  return one.data.reduce((most, each, at) => Math.max(most, Math.abs(each - other.data[at])), 0);
}
"""


def main() -> int:
    """Take all, keep those that are shown; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", "0", *SELECTED, TEST],
            env={**os.environ, "WEB_PICTURES": folder},
            check=False,
        )
        if done.returncode != 0:
            return done.returncode
        taken = {name: (Path(folder) / f"{name}.webp").read_bytes() for name in SHOWN}
    total = sum(map(len, taken.values()))
    if total > BYTES_MAX:
        sys.stderr.write(f"{total:,} bytes, more than {BYTES_MAX:,}: show fewer\n")
        return 1
    PLACE.mkdir(exist_ok=True)
    for old in PLACE.glob("*.webp"):
        if old.stem not in taken:
            old.unlink()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=ARGUMENTS)
        page = browser.new_page()
        changed = [name for name, content in taken.items() if _kept(page, name, content)]
        browser.close()
    sys.stdout.write(f"{PLACE}: {total:,} bytes; new: {', '.join(changed) or 'none'}\n")
    return 0


def _kept(page: Page, name: str, content: bytes) -> bool:
    """Whether it replaced what was there."""
    file = PLACE / f"{name}.webp"
    if file.exists():
        both = [base64.b64encode(each).decode("ascii") for each in (file.read_bytes(), content)]
        if page.evaluate(DIFFERENCE, both) < SEEN_FROM:
            return False
    file.write_bytes(content)
    return True


if __name__ == "__main__":
    sys.exit(main())
