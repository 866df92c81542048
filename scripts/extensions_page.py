"""The map of extensions on docs/extensions.md, drawn from the code.

python -m scripts.extensions_page [--check] [FILE]
"""

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Final

from scripts import house
from scripts.marked_pages import cell, drawn_anew, update

from subagents.extension import Extension

PAGE: Final = "docs/extensions.md"
BEGIN: Final = "<!-- extensions: begin -->"
END: Final = "<!-- extensions: end -->"


def drawn(page: str) -> str:
    """The page with its map."""
    return drawn_anew(page, BEGIN, END, "\n".join(_rows()))


def _rows() -> Iterator[str]:
    yield "| extension | what it is about | what it adds | imports |"
    yield "|---|---|---|---|"
    uses: dict[str, set[str]] = {}
    for part, extension in house.imports():
        uses.setdefault(part, set()).add(extension)
    for name in sorted(house.lines().keys() - {house.CORE}):
        module = import_module(f"subagents.extensions.{name}")
        adds = [*_added(module.extension)] if hasattr(module, "extension") else ["what others use"]
        others = ", ".join(f"`{each}`" for each in sorted(uses.get(name, ()))) or "the core alone"
        about = (module.__doc__ or "").rstrip(".\n")
        yield f"| `{name}` | {cell(about)} | {cell(', '.join(adds))} | {others} |"


def _added(extension: Extension) -> Iterator[str]:
    rows = [row for rows in extension.commands.values() for row in rows]
    names = dict.fromkeys(
        f"`{row.name.split()[0] if row.name.split()[0] in extension.parents else row.name}`"
        for row in rows
    )
    yield from names
    yield from (f"`[{table.name}]`" for table in extension.settings)
    if extension.routes:
        yield "routes"
    fields = zip(extension._fields, extension, strict=True)
    hooks = [name for name, target in fields if target and isinstance(target, str)]
    yield from (each.replace("_", " ") for each in hooks if each != "name")


if __name__ == "__main__":
    sys.exit(update(sys.argv[1:], PAGE, drawn))
