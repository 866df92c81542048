"""Where a database of PostgreSQL is, and which schema in it is ours."""

import re
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

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
    options = parse_qsl(parts.query, keep_blank_values=True)
    schema = next((value for name, value in options if name == "schema"), SCHEMA)
    if not _NAME.fullmatch(schema):
        raise ConfigError(
            f"the schema {schema!r} is no plain name",
            hint="use lower case letters, digits and _, at most 63",
        )
    others = [each for each in options if each[0] != "schema"]
    conninfo = urlunsplit(parts._replace(query=urlencode(others)))
    user, at, host = parts.netloc.rpartition("@")
    public = [each for each in options if each[0] not in {"password", "sslpassword"}]
    shown = parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=urlencode(public))
    return DatabaseUrl(conninfo, schema, urlunsplit(shown))
