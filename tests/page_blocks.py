"""The blocks of code in the README and in docs/."""

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK: Final = re.compile(
    r"^(?:<!-- not run: (?P<why>[^\n]+) -->\n\n)?"
    r"(?P<indent> *)```(?P<language>sh|console|python|toml)\n(?P<body>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """One of a page."""

    line: int
    language: str
    body: str
    why_not: str | None


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(
            text[: match.start("body")].count("\n"),
            match["language"],
            re.sub(rf"^{match['indent']}", "", match["body"], flags=re.MULTILINE),
            match["why"],
        )
        for match in _BLOCK.finditer(text)
    ]
