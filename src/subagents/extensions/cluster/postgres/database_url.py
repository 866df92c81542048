"""Where a database of PostgreSQL is, and which schema in it is ours."""

import re
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from subagents.errors import ConfigError

SCHEMES: Final = frozenset({"postgresql", "postgres"})
SCHEMA: Final = "subagents"
"""Where the URL names no other."""
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class DatabaseUrl(NamedTuple):
    """``postgresql://user@host/database?schema=name``; all but the schema is libpq's."""

    conninfo: str
    """The address as libpq takes it."""
    schema: str
    shown: str
    """The address as people see it: without the password."""


def parse_url(url: str) -> DatabaseUrl:
    """Take our part out of a URL.

    Raises:
        ConfigError: It is none of PostgreSQL, or the schema is no plain name.
    """
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise ConfigError(f"no URL of PostgreSQL: {parts.scheme or 'it has no scheme'}")
    # All else stays as it was written: libpq knows no "+" for a space, and wants its two slashes.
    base, _, query = url.partition("?")
    options = [(*each.partition("="), each) for each in query.split("&") if each]
    schema = next((unquote(value) for name, _, value, _ in options if name == "schema"), SCHEMA)
    if not _NAME.fullmatch(schema):
        raise ConfigError(
            f"the schema {schema!r} is no plain name",
            hint="use lower case letters, digits and _, at most 63",
        )

    def without(base: str, *names: str) -> str:
        left = "&".join(text for name, _, _, text in options if name not in names)
        return f"{base}?{left}" if left else base

    user, at, host = parts.netloc.rpartition("@")
    public = base.replace(parts.netloc, f"{user.partition(':')[0]}{at}{host}", 1)
    return DatabaseUrl(without(base, "schema"), schema, without(public, "password", "sslpassword"))
