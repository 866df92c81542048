"""Every key of `subagents.toml` in docs/configuration.md, from the structs that declare them.

python -m scripts.config_reference [--check]
"""

import json
import sys
from typing import Final

from scripts.marked_pages import drawn_anew, update

from subagents.config.keys import Key, leaves, unit

PAGE: Final = "docs/configuration.md"
BEGIN: Final = "<!-- keys: written by `make docs` from src/subagents/config/settings.py -->"
END: Final = "<!-- end of keys -->"


def drawn(page: str) -> str:
    """``page`` with the table of all keys as they are now."""
    return drawn_anew(page, BEGIN, END, table())


def table() -> str:
    """Every key: what is allowed, unit, default, meaning."""
    rows = ["| key | allowed | unit | default | meaning |", "|---|---|---|---|---|"]
    for name, key in leaves():
        cells = (f"`{name}`", key.allowed, unit(name) or "–", _default(key), key.description)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def _default(key: Key) -> str:
    match key.default:
        case None:
            return "unset"
        case bool():
            return f"`{str(key.default).lower()}`"
        case ():
            return "`[]`"
        case int() | float():
            return f"`{key.default}`"
        case tuple():
            return f"`{json.dumps(key.default)}`"
        case _:
            return f'`"{key.default}"`'


if __name__ == "__main__":
    sys.exit(update(sys.argv[1:], PAGE, drawn))
