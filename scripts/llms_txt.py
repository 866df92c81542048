"""docs/llms.txt, the list of pages for models (llmstxt.org), from the menu and the home page.

    python -m scripts.llms_txt [--check]

The sections and their order are those of ``zensical.toml``, what each page is about those of the
table in docs/README.md.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

CONFIG: Final = Path("zensical.toml")
HOME: Final = Path("docs/README.md")
FILE: Final = Path("docs/llms.txt")
_ROW: Final = re.compile(
    r"^\| \[[^\]]+\]\((?P<page>[^)]+\.md)\) \| (?P<about>.+) \|$", re.MULTILINE
)


def abouts(home: str) -> dict[str, str]:
    """What each page is about, by its file."""
    return {match["page"]: match["about"] for match in _ROW.finditer(home)}


def drawn(project: dict[str, Any], home: str) -> str:
    """The whole file.

    Raises:
        KeyError: The home page has no row for a page of the menu.
    """
    known = abouts(home)
    parts = [f"# {project['site_name']}", f"> {project['site_description']}"]
    for entry in project["nav"]:
        for title, pages in entry.items():
            if isinstance(pages, list):
                parts += _section(title, pages, known)
    return "\n\n".join(parts) + "\n"


def _section(title: str, pages: list[Any], known: dict[str, str]) -> Iterator[str]:
    named = [next(iter(each.items())) for each in pages if isinstance(each, dict)]
    if named:
        yield f"## {title}"
        yield "\n".join(f"- [{name}]({page}): {known[page]}" for name, page in named)
    else:  # the decisions: their own page lists them
        yield "## Optional"
        yield f"- [{title}]({pages[0]}): {known[pages[0]]}"


def main(arguments: list[str]) -> int:
    """Write the file, or compare it; returns the exit code."""
    project = tomllib.loads(CONFIG.read_text("utf-8"))["project"]
    try:
        new = drawn(project, HOME.read_text("utf-8"))
    except KeyError as error:
        sys.stderr.write(f"{HOME} has no row for {error.args[0]}, which {CONFIG} names\n")
        return 1
    old = FILE.read_text("utf-8") if FILE.exists() else ""
    if new != old and "--check" in arguments:
        sys.stderr.write(f"{FILE} is out of date: run `make docs`\n")
        return 1
    if new != old:
        FILE.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
