"""The site of docs/, with the parts of the reference that only the site has: site/.

    python -m scripts.docs_site          build it; 1 = a link or an anchor leads nowhere
    python -m scripts.docs_site PAGE     print a page of docs/ as the site has it

What repeats the code in whole pages is in no commit: those pages have only what is written by hand,
and a line that says where a checkout shows the rest.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from scripts import cli_reference, code_tables, http_reference, python_reference, requirements_page

ROOT: Final = Path(__file__).parents[1]
CONFIG: Final = "zensical.toml"
DRAWN: Final[Mapping[str, Callable[[str], str]]] = {
    cli_reference.PAGE: cli_reference.drawn,
    http_reference.PAGE: http_reference.drawn,
    python_reference.PAGE: python_reference.drawn,
    code_tables.JOURNAL: code_tables.journal,
    requirements_page.PAGE: requirements_page.drawn,
}
"""Pages by their file, and what draws the rest of each."""


@cache
def text_of(page: str) -> str:
    """A page of the checkout, named from its root, as the site has it."""
    text = (ROOT / page).read_text("utf-8")
    return DRAWN[page](text) if page in DRAWN else text


def sources(place: Path) -> None:
    """Write what the site is built from into ``place``."""
    shutil.copytree(ROOT / "docs", place / "docs")
    shutil.copy(ROOT / CONFIG, place)
    for page in DRAWN:
        (place / page).write_text(text_of(page), "utf-8")


def build(place: Path) -> int:
    """Build ``place``'s site, strictly; returns the exit code."""
    argv = [sys.executable, "-m", "zensical", "build", "--strict"]
    return subprocess.run(argv, cwd=place, check=False).returncode


def main(arguments: Sequence[str]) -> int:
    """Print a page or build all; returns the exit code."""
    if arguments:
        sys.stdout.write(text_of(arguments[0]))
        return 0
    with tempfile.TemporaryDirectory(prefix="subagents-site-") as name:
        place = Path(name)
        sources(place)
        if (code := build(place)) != 0:
            return code
        for page in (place / "docs").rglob("*.md"):  # what llms.txt names
            shutil.copy(page, place / "site" / page.relative_to(place / "docs"))
        shutil.rmtree(ROOT / "site", ignore_errors=True)
        shutil.move(place / "site", ROOT / "site")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
