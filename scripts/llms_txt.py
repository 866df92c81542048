"""docs/llms.txt, the list of pages for models (llmstxt.org), from the menu and the pages.

    python -m scripts.llms_txt [--check]

The sections and their order are those of ``zensical.toml``; what a page is about, its first
paragraph says.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

CONFIG: Final = Path("zensical.toml")
DOCS: Final = Path("docs")
FILE: Final = DOCS / "llms.txt"


def pages_of(nav: Any) -> Iterator[str]:
    """The pages of a menu, in their order."""
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from pages_of(each)


def about(page: str) -> str:
    """The first paragraph of a page, without its links and without emphasis."""
    _, *parts = page.split("\n\n")
    text = " ".join(next(each for each in parts if not each.startswith("!")).split())
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text).replace("**", "").removesuffix(":")


def drawn(project: dict[str, Any]) -> str:
    """The whole file."""
    parts = [f"# {project['site_name']}", f"> {project['site_description']}"]
    for entry in project["nav"]:
        for title, inner in entry.items():
            if inner != "README.md":
                parts += _section(title, inner)
    return "\n\n".join(parts) + "\n"


def _section(title: str, inner: Any) -> Iterator[str]:
    if isinstance(inner, str):
        inner = [{title: inner}]
    if isinstance(inner[0], str):  # the decisions: their own page lists them
        title, inner = "Optional", [{title.rpartition(": ")[2]: inner[0]}]
    entries = [each for entry in inner for each in entry.items()]
    pages = [(name, page) for name, page in entries if isinstance(page, str)]
    if pages:
        yield f"## {title}"
        yield "\n".join(
            f"- [{name}]({page}): {about((DOCS / page).read_text('utf-8'))}" for name, page in pages
        )
    for name, below in entries:
        if not isinstance(below, str):
            yield from _section(f"{title}: {name}", below)


def main(arguments: list[str]) -> int:
    """Write the file, or compare it; returns the exit code."""
    new = drawn(tomllib.loads(CONFIG.read_text("utf-8"))["project"])
    old = FILE.read_text("utf-8") if FILE.exists() else ""
    if new != old and "--check" in arguments:
        sys.stderr.write(f"{FILE} is out of date: run `make docs`\n")
        return 1
    if new != old:
        FILE.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
