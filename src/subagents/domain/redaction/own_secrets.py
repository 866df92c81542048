"""Secrets of one run: values that its worker is given, known wherever they stand."""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from subagents.domain.redaction.secret_spans import REDACTED, names_secret
from subagents.domain.run.secret_reference import is_reference

OWN_CHARS_MIN: Final = 8
"""The shortest value of our own variables that is looked for; shorter ones are words that may stand
anywhere."""
CODED_CHARS_MIN: Final = 12
"""The shortest part of a value in base64 that is looked for."""

_SAYS_SECRET: Final = re.compile(r"(?<![A-Za-z])(?:PASS|PAT|AUTH|DSN|PWD)(?![A-Za-z])")
"""Words that say so in names of variables, where they stand between underscores."""
_SAYS_WHERE: Final = re.compile(r"(?:FILE|PATH|DIR|NAME|ID|URL|URI|HOST|USER)\Z", re.IGNORECASE)
"""Names of variables that say where a secret is, or whose."""


def own_secrets(
    options: Mapping[str, object],
    environ: Mapping[str, str] | None = None,
    *,
    passes: Sequence[str] = (),
    given: Mapping[str, str] | None = None,
    values: Iterable[str] = (),
) -> tuple[str, ...]:
    """What a run's worker must not repeat: values of its variables whose name says secret.

    Longest first, so that one which holds another goes as a whole.

    Args:
        options: Of its runtime: ``env`` with values, ``pass_env`` with names; one that ends in
            ``_env``, as ``api_key_env`` does, names one variable that is a secret.
        environ: Where the latter have their values.
        passes: Names and prefixes that its runtime lets through by itself.
        given: Variables that its caller set for it.
        values: What is secret whatever its variable is called.
    """
    env, passed = options.get("env"), options.get("pass_env")
    variables = {str(n): str(v) for n, v in env.items()} if isinstance(env, Mapping) else {}
    named = passed if isinstance(passed, Sequence) else ()
    # Only variables that the worker is passed: the daemon's others are no secrets of this run, and
    # looking for all of them would cost every line of its output.
    for pattern in (*passes, *named) if environ else ():
        variables |= {n: v for n, v in (environ or {}).items() if _is_meant(str(pattern), n)}
    found = set[str]().union(*map(_forms, values))
    for name, value in (*variables.items(), *(given or {}).items()):
        says_secret = names_secret(name) or _SAYS_SECRET.search(name)
        # `DB_PASSWORD_FILE` says where one is, and `secret:NAME` which one: neither is one.
        if says_secret and not _SAYS_WHERE.search(name) and not is_reference(value):
            found |= _forms(value)
    for option, named_one in options.items() if environ else ():
        if option.endswith("_env") and option != "pass_env" and isinstance(named_one, str):
            found |= _forms((environ or {}).get(named_one, ""))
    return tuple(sorted(found, key=lambda secret: (-len(secret), secret)))


def _is_meant(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


@lru_cache(maxsize=256)
def _forms(value: str) -> frozenset[str]:
    """How a value may be printed: line by line, inside JSON, in a URL, in base64."""
    lines = {line.strip() for line in value.splitlines()}
    forms = lines | {line.replace("\\", "\\\\").replace('"', '\\"') for line in lines}
    for line in lines:
        forms.add(quote(line, safe="", errors="surrogatepass"))
        data = line.encode("utf-8", "surrogatepass")
        # Whole groups of three bytes look the same whatever follows them.
        coded = base64.b64encode(data[: len(data) // 3 * 3]).decode("ascii")
        if len(coded) >= CODED_CHARS_MIN:
            forms.add(coded)
    return frozenset(
        form
        for form in forms
        if len(form) >= OWN_CHARS_MIN and form not in REDACTED and REDACTED not in form
    )
