"""SQL lives in ``.sql`` files as named statements; this reads them."""

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def statements(dialect: str) -> dict[str, str]:
    """Every named statement of ``sql/<dialect>.sql``, without its comments."""
    text = files(__package__).joinpath("sql", f"{dialect}.sql").read_text("utf-8")
    parts = _NAME.split(text)[1:]
    return {
        name: "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip()
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


@cache
def migrations(dialect: str) -> tuple[tuple[int, str, str], ...]:
    """``(number, name, script)`` of every migration, in order."""
    found = []
    for entry in files(__package__).joinpath("migrations", dialect).iterdir():
        number, _, name = entry.name.removesuffix(".sql").partition("_")
        found.append((int(number), name, entry.read_text("utf-8")))
    return tuple(sorted(found))
