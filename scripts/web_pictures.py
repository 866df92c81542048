"""Take the pictures of the web page that the documentation shows: docs/pictures/.

    python -m scripts.web_pictures

They are of a real daemon in a real Chromium, on a day that tests/web/stage.py plays with a clock of
its own; the test that looks at every page takes them. Of the same page the same picture comes, so
that a change of one file is a change that somebody sees. Needs what ``make test-web`` needs.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

PLACE: Final = Path("docs/pictures")
TEST: Final = "tests/web/test_accessibility.py"
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


def main() -> int:
    """Take all, keep those that are shown; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-n",
                "0",
                "-m",
                "thorough or not thorough",
                TEST,
            ],
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
    for name, content in taken.items():
        (PLACE / f"{name}.webp").write_bytes(content)
    sys.stdout.write(f"{PLACE}: {len(taken)} pictures, {total:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
