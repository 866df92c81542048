"""Secrets out of texts that leave us: history, transcripts, logs.

Shapes, not entropy: what looks like a key of a known kind, a bearer header, a private key or an
assignment to a name that says secret is replaced by ``[redacted]``; a hash or a base64 picture
stays readable. It is a net under the rule that workers get no secrets, not a replacement for it.

Every pattern is linear in the text. Runs of characters are possessive (``++``), and what can
follow a failed start is bounded, so that no text of a worker can make the daemon think for long.
Redacting twice changes nothing, so each door may do it without knowing of the others.

Source: 3-tools ``sessions_history``; 4-observability (secrets are redacted when written).
"""

import re
from typing import Final

REDACTED: Final = "[redacted]"

_NAMED: Final = (
    r"api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|signing[_-]?key|encryption[_-]?key"
    r"|secret|passw(?:or)?d|passphrase|credentials?|token(?!i[sz])"
)
_QUOTES: Final = r"[\\\"'`]{0,4}"
"""Around names and values, also where they stand in JSON inside JSON."""
_NOT_YET: Final = r"(?!\[redacted\])"

_PRIVATE_KEY: Final = re.compile(
    # Without its end it was cut, and all that follows may be key.
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r".*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.ASCII | re.DOTALL,
)
_URL_PASSWORD: Final = re.compile(r"(://[^\s/@:\[\]]{0,200}:)[^\s/@\[\]]{1,500}@", re.ASCII)
_HEADER: Final = re.compile(
    r"\b((?:proxy-)?authorization|(?:set-)?cookie)"
    rf"({_QUOTES}[ \t]{{0,8}}[:=][ \t]{{0,8}}{_QUOTES}"
    r"(?:(?:basic|bearer|digest|negotiate|token)[ \t]{1,8})?+)"
    rf"{_NOT_YET}[^\s\"'`\\][^\r\n\"'`\\]{{3,}}+",
    re.ASCII | re.IGNORECASE,
)
_BEARER: Final = re.compile(
    r"\b(bearer[ \t]{1,8})(?!authenticat|authoriz|credential|certificat)[\w.~+/=-]{8,}+",
    re.ASCII | re.IGNORECASE,
)
_ASSIGNMENT: Final = re.compile(
    # Name and mark are kept; of what comes before the word of the name nothing need be known.
    rf"((?:{_NAMED}|(?<![a-z])(?-i:(?:KEY|_PASS|_PAT|_AUTH|_DSN))(?![A-Za-z]))"
    rf"[\w.-]{{0,40}}{_QUOTES}[ \t]{{0,8}}(?:=>|:=|[:=])[ \t]{{0,8}})"
    rf"({_QUOTES}){_NOT_YET}"
    r"(?P<value>(?<=\")(?:[^\"\\\r\n]|\\[^\r\n\"]){4,4096}+(?=\\?\")"
    r"|(?<=')[^'\\\r\n]{4,4096}+(?=\\?')"
    r"|[^\s\"'`\\,;&|<>(){}\[\]][^\s\"'`\\,;&]{3,}+)",
    re.ASCII | re.IGNORECASE,
)
_AMOUNT: Final = re.compile(
    r"[~<>]?\d[\d.,_]{0,15}(?:[kKmMgG]|[a-z]{1,6})?|true|false|null|none", re.ASCII | re.IGNORECASE
)
"""What stands after ``max_tokens=``: no secret."""
_COUNTED: Final = re.compile(r"token", re.ASCII | re.IGNORECASE)
_DOTTED: Final = re.compile(r"(?<![\w-])[\w-]++(?:\.[\w-]++)++", re.ASCII)
_SHAPES: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sa_[0-9a-z-]{1,64}_[0-9]{1,6}_[\w-]{8,}+"  # our own (SUBAGENTS_TOKEN)
    r"|sk-[\w-]{16,}+"  # OpenAI, Anthropic and those who copied them
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}+"  # Stripe
    r"|gh[oprsu]_[A-Za-z0-9]{16,}+|github_pat_\w{16,}+"
    r"|glpat-[\w-]{16,}+"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16,}+"  # AWS
    r"|xox[a-z]-[\w-]{8,}+|xapp-[\w-]{8,}+"  # Slack
    r"|AIza[\w-]{30,}+|ya29\.[\w-]{16,}+"  # Google
    r"|npm_[A-Za-z0-9]{20,}+|pypi-[\w-]{16,}+|hf_[A-Za-z0-9]{20,}+"
    r"|(?:dop|doo)_v1_[0-9a-f]{32,}+|SG\.[\w-]{16,64}+\.[\w-]{16,}+"
    r")++",  # one behind the other leaves nothing of the second
    re.ASCII,
)
_JWT_PART_CHARS_MIN: Final = 8


def redact(text: str) -> str:
    """``text`` with every secret of a known shape replaced by ``[redacted]``.

    Time grows with the length of the text and with nothing else, and
    ``redact(redact(x)) == redact(x)``.
    """
    text = _PRIVATE_KEY.sub(REDACTED, text)
    text = _URL_PASSWORD.sub(rf"\1{REDACTED}@", text)
    text = _HEADER.sub(rf"\1\2{REDACTED}", text)
    text = _BEARER.sub(rf"\1{REDACTED}", text)
    text = _ASSIGNMENT.sub(_assignment, text)
    text = _DOTTED.sub(_without_jwt, text)
    return _SHAPES.sub(REDACTED, text)


def _assignment(found: re.Match[str]) -> str:
    name, quote, value = found[1], found[2], found["value"]
    if _COUNTED.match(name) and _AMOUNT.fullmatch(value):
        return found[0]
    return f"{name}{quote}{REDACTED}"


def _without_jwt(found: re.Match[str]) -> str:
    """Words with dots between them; the first part of a JWT is a JSON object in base64: ``eyJ``."""
    parts = found[0].split(".")
    for index, part in enumerate(parts[:-1]):
        start = part.find("eyJ")
        is_token = 0 <= start <= len(part) - _JWT_PART_CHARS_MIN
        if is_token and len(parts[index + 1]) >= _JWT_PART_CHARS_MIN:
            return ".".join((*parts[:index], part[:start] + REDACTED))
    return found[0]
