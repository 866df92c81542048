"""The recording of ``subagents demo --walkaway`` on its page, from a real run.

    python -m scripts.walkaway_recording [OPTION...]

runs the demo with these options (it takes two minutes, and uses the agent programs that are logged
in here), and puts what it printed between the two markers of the page, as it is. Nothing is
written unless everything was true.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

PAGE: Final = Path("docs/howto/leave-running.md")
BEGIN: Final = (
    "<!-- walkaway: written by `python -m scripts.walkaway_recording` from a real run -->\n"
)
END: Final = "<!-- end of walkaway -->\n"
TIMEOUT_S: Final = 900


def main(options: list[str]) -> int:
    """Record; returns the exit code of the demo."""
    command = [sys.executable, "-m", "subagents", "demo", "--walkaway", *options]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT_S
    )
    sys.stdout.write(done.stdout)
    if done.returncode == 0:
        PAGE.write_text(with_recording(PAGE.read_text(encoding="utf-8"), done.stdout, options))
    return done.returncode


def with_recording(page: str, said: str, options: list[str]) -> str:
    """The page with this recording in the place of the last one.

    Raises:
        ValueError: The page has no markers.
    """
    head, found, rest = page.partition(BEGIN)
    _, ends, tail = rest.partition(END)
    if not found or not ends:
        raise ValueError("the page has no markers of a recording")
    shown = " ".join(["$ subagents demo --walkaway", *options])
    return f"{head}{BEGIN}\n```text\n{shown}\n{said.rstrip()}\n```\n\n{END}{tail}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
