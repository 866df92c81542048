"""The statements of ``statements.sql``, by name: SQL is read and reviewed as SQL."""

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def statements() -> dict[str, str]:
    """Every named statement, without its comments."""
    text = files(__package__).joinpath("statements.sql").read_text("utf-8")
    parts = _NAME.split(text)[1:]
    return {
        name: "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip()
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }
