"""Statements in files, by name: SQL is read and reviewed as SQL."""

import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def named_statements(package: str) -> dict[str, str]:
    """Every named statement of the package's ``statements.sql``, without its comments."""
    text = files(package).joinpath("statements.sql").read_text("utf-8")
    parts = _NAME.split(text)[1:]
    return {
        name: "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip()
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def numbered_scripts(package: str) -> tuple[tuple[int, str, str], ...]:
    """``(number, name, script)`` of every file in the package's ``migrations/``, in order."""
    found = []
    for entry in files(package).joinpath("migrations").iterdir():
        number, _, name = entry.name.removesuffix(".sql").partition("_")
        found.append((int(number), name, entry.read_text("utf-8")))
    return tuple(sorted(found))
