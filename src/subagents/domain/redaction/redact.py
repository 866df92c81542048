"""Secrets out of texts that leave us, or that we keep: journal, transcripts, answers, logs.

Shapes, not entropy: what looks like a key of a known kind, a bearer header, a private key or an
assignment to a name that says secret is replaced by ``[redacted]``; a hash or a base64 picture
stays readable. Values of an agent's own variables with such a name (``own_secrets``) are replaced
wherever they stand. It is a net under the rule that workers get no secrets, not a replacement.

Every pattern is linear in the text. Runs of characters are possessive (``++``), and what can
follow a failed start is bounded, so that no text of a worker can make the daemon think for long.
Redacting twice changes nothing, so each layer may do it without knowing of the others.

Most text holds nothing of the kind, and ``may_hold_secret`` says so at a tenth of the price: each
pattern can only find something in a text that passes it.
"""

import re
import string
from collections.abc import Mapping, Sequence
from typing import Final

from subagents.domain.run.values import Value

REDACTED: Final = "[redacted]"
OWN_CHARS_MIN: Final = 8
"""Shorter values of our own variables are words that may stand anywhere."""

_NAMED: Final = (
    r"api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|signing[_-]?key|encryption[_-]?key"
    r"|secret|passw(?:or)?d|passphrase|credentials?|token(?!i[sz])"
)
_QUOTES: Final = r"[\\\"'`]{0,4}"
"""Around names and values, also where they stand in JSON inside JSON."""
_NOT_YET: Final = r"(?!\[redacted\])"

_KEY_BEGIN: Final = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", re.ASCII)
_BEGINNINGS: Final = re.compile(_KEY_BEGIN, re.ASCII)
_PRIVATE_KEY: Final = re.compile(
    # Without its end it was cut, and all that follows may be key.
    rf"{_KEY_BEGIN}.*?(?:{_KEY_END.pattern}|\Z)",
    re.ASCII | re.DOTALL,
)
_KEY_LINE: Final = re.compile(
    # With what programs put before and behind a line: numbers, signs of a diff, quotes.
    r"[^\w/+=]{0,8}(?:\d{1,6}[^\w/+=]{1,4})?[A-Za-z0-9/+]{1,200}={0,2}[^\w/+=]{0,8}(?:\\[nr]\W{0,4})?",
    re.ASCII,
)
_KEY_RUN: Final = re.compile(r"[A-Za-z0-9/+]{16,}+={0,2}")
_KEY_WORDS_REVERSED: Final = re.compile(
    r"\s{0,8}(?:[\w/+=]{1,40}\s{1,8})?+(?:[\w/+=]{40,200}+(?:\s{1,8}|\Z))++", re.ASCII
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
_SAYS_VARIABLE: Final = re.compile(r"_env(?:_?(?:var|name))?\W*\Z", re.ASCII | re.IGNORECASE)
"""Behind such a name stands the name of a variable, without which nobody could mend anything."""
_VARIABLE: Final = re.compile(
    r"\$?(?=[A-Z\d_]{0,80}(?:KEY|TOKEN|SECRET|PASS|PASSWORD|AUTH|CREDENTIALS?)[:.]?\Z)"
    r"[A-Z]{1,20}\d{0,2}(?:_[A-Z]{1,20}\d{0,2}){1,6}[:.]?",
    re.ASCII,
)
"""A variable that would hold a secret, named in place of one: ``$OPENAI_API_KEY``."""
_DOTTED: Final = re.compile(r"(?<![\w-])[\w-]++(?:\.[\w-]++)++", re.ASCII)
_FLAG: Final = re.compile(
    r"(--[\w-]{0,40}(?:passw(?:or)?d|passphrase|secret|token|(?:api|access)-?key)[ \t]{1,4}['\"]?)"
    rf"{_NOT_YET}(?!-)(?=[^\s\"'`]{{0,40}}[\d!#$%^&*])[^\s\"'`]{{6,}}+",
    re.ASCII | re.IGNORECASE,
)
_SHAPES: Final = re.compile(
    # Each holds 16 letters, digits, - or _ in a row: see ``may_hold_secret``.
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:"  # also behind an escaped line end of a piece of JSON
    r"sa_[0-9a-z-]{1,64}_[0-9]{1,6}_[\w-]{16,}+"  # our own (SUBAGENTS_TOKEN)
    r"|sk-[\w-]{16,}+"  # OpenAI, Anthropic and those who copied them
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}+|whsec_[A-Za-z0-9/+=]{20,}+"  # Stripe
    r"|gh[oprsu]_[A-Za-z0-9]{16,}+|github_pat_\w{16,}+"
    r"|gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|oas|ffct)-[\w-]{16,}+"  # GitLab
    r"|(?:AKIA|ASIA)[0-9A-Z]{16,}+"  # AWS
    r"|xox[a-z]-[\w-]{11,}+|xapp-[\w-]{11,}+"  # Slack
    r"|hooks\.slack\.com/[a-z]{1,20}/\w{1,20}/\w{1,20}/\w{16,}+"
    r"|discord(?:app)?\.com/api/webhooks/\d{1,24}/[\w-]{16,}+"
    r"|AIza[\w-]{30,}+|ya29\.[\w-]{16,}+|GOCSPX-[\w-]{16,}+"  # Google
    r"|npm_[A-Za-z0-9]{20,}+|pypi-[\w-]{16,}+|rubygems_[0-9a-f]{32,}+|dckr_[a-z]{2,4}_[\w-]{16,}+"
    r"|hf_[A-Za-z0-9]{20,}+|r8_[A-Za-z0-9]{30,}+|gsk_[A-Za-z0-9]{30,}+"  # models
    r"|(?:xai|pplx)-[A-Za-z0-9]{30,}+"
    r"|do[opr]_v1_[0-9a-f]{32,}+|SG\.[\w-]{16,64}+\.[\w-]{16,}+"
    r"|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}+|sq0[a-z]{3}-[\w-]{16,}+"  # shops
    r"|hv[bsr]\.[\w-]{20,}+|dapi[0-9a-f]{32,}+|dp\.[a-z]{2,5}\.[A-Za-z0-9]{32,}+"
    r"|atlasv1\.[\w-]{32,}+|pul-[0-9a-f]{32,}+|pscale_[a-z]{2,6}_[\w-]{16,}+"
    r"|gl(?:c|sa)_[A-Za-z0-9]{20}[\w/+=-]*+|sntry[su]_[A-Za-z0-9]{20}[\w/+=-]*+"
    r"|NRAK-[0-9A-Z]{16,}+|HRKU-[\w-]{30,}+|PMAK-[\w-]{30,}+|key-[0-9a-f]{32,}+"
    r"|lin_api_[A-Za-z0-9]{20,}+|ntn_[A-Za-z0-9]{30,}+|secret_[A-Za-z0-9]{32,}+"
    r"|figd_[\w-]{20,}+|sbp_[0-9a-f]{32,}+|nfp_[A-Za-z0-9]{30,}+"
    r"|ATATT3[\w=-]{30,}+|ATBB[A-Za-z0-9]{28,}+"  # Atlassian
    r"|AGE-SECRET-KEY-1[0-9A-Z]{30,}+"
    r"|\d{8,10}:AA[\w-]{32,}+"  # Telegram
    r")++",  # one behind the other leaves nothing of the second
    re.ASCII,
)
_JWT_PART_CHARS_MIN: Final = 8


def redact(text: str, own: Sequence[str] = ()) -> str:
    """``text`` with every secret of a known shape replaced by ``[redacted]``.

    Time grows with the length of the text and with nothing else, and
    ``redact(redact(x)) == redact(x)``.

    Args:
        text: Any.
        own: Replaced wherever they stand, see ``own_secrets``.
    """
    for secret in own:
        if secret in text:
            text = text.replace(secret, REDACTED)
    return _redact_shapes(text) if may_hold_secret(text) else text


MARGIN_BYTES: Final = 16 * 1024
"""Read before an end that is kept: a secret that begins there is known by its beginning."""


def ending(data: bytes, bytes_max: int) -> str:
    """The end of what a program wrote, at most ``bytes_max`` bytes of it, as text.

    Redacted before it is cut: half a secret is no secret by its shape. Where the cut falls into a
    line or a word, an eighth at most is given up to begin with a whole one: a run's own secrets
    are known to nobody here, and half of one would be found by nobody later.

    Args:
        data: Longer than ``bytes_max`` by ``MARGIN_BYTES`` where there was more; invalid UTF-8 is
            replaced, which may make it longer.
        bytes_max: At least 1.
    """
    text = data.decode("utf-8", "replace")
    if len(data) <= bytes_max:
        return text  # nothing is cut; redacting is for the layers behind this one
    whole = redact(text).encode()
    kept = whole[-bytes_max:]
    if len(whole) <= bytes_max or whole[-bytes_max - 1 : -bytes_max] == b"\n":
        return kept.decode()
    most = bytes_max // 8
    at = kept.find(b"\n", 0, most) + 1 or kept.find(b" ", 0, most) + 1
    return kept[at:].decode("utf-8", "ignore")


def _redact_shapes(text: str) -> str:
    """Each pattern is tried only where something that it needs is there: that is the cheap part."""
    data = text.encode("utf-8", "surrogatepass")
    folded = data.lower()
    if b"private key" in folded:
        text = _without_key_ends(_PRIVATE_KEY.sub(REDACTED, text))
    if b"://" in data:
        text = _URL_PASSWORD.sub(rf"\1{REDACTED}@", text)
    if b"orization" in folded or b"cookie" in folded:
        text = _HEADER.sub(rf"\1\2{REDACTED}", text)
    if b"bearer" in folded:
        text = _BEARER.sub(rf"\1{REDACTED}", text)
    if _ASSIGNED.search(folded) or _CAPITAL_NAMES.search(data):
        text = _ASSIGNMENT.sub(_assignment, text)
    if b"--" in data:
        text = _FLAG.sub(rf"\1{REDACTED}", text)
    if b"eyJ" in data:
        text = _DOTTED.sub(_without_jwt, text)
    if _RUN in data.translate(_IN_RUNS):
        text = _SHAPES.sub(REDACTED, text)
    return text


_WORDS: Final = (
    b"key", b"oken", b"cret", b"passw", b"passph", b"edential", b"cookie", b"orization", b"bearer",
)  # fmt: skip
"""One of them is in every name or header above, in lower case."""
_ASSIGNED: Final = re.compile(
    # A first character that is rare makes it fast; what it finds too much is looked at again.
    rb"[kcwp](?:ey|en|ret|red|ord|d|hrase)[\w.-]{0,60}[\\\"'`]{0,4}[ \t]{0,8}[:=]"
)
_CAPITAL_NAMES: Final = re.compile(rb"_(?:PA(?:SS|T)|AUTH|DSN)")
_RUN: Final = b"\1" * 16
_RUN_CHARS: Final = frozenset(string.ascii_letters + string.digits + "_-")
_IN_RUNS: Final = bytes(chr(code) in _RUN_CHARS for code in range(256))


def may_hold_secret(text: str) -> bool:
    """False = ``redact`` finds nothing in it; over a hundred megabytes a second."""
    data = text.encode("utf-8", "surrogatepass")
    if _RUN in data.translate(_IN_RUNS):
        return True
    folded = data.lower()
    for word in _WORDS:
        if word in folded:
            return True
    return (
        b"private key" in folded
        or (b"@" in data and b"://" in data)
        or b"eyJ" in data
        or _CAPITAL_NAMES.search(data) is not None
    )


def _without_key_ends(text: str) -> str:
    """What stands before the end of a key whose beginning was cut off may be key."""
    pieces = []
    at = 0
    for found in _KEY_END.finditer(text):
        head = text[at : found.start()]
        lines = head.split("\n")
        kept = len(lines)
        while kept and _KEY_LINE.fullmatch(lines[kept - 1] or "+"):
            kept -= 1
        if kept < len(lines):
            head = "".join(f"{line}\n" for line in lines[:kept])
        else:  # its lines may have become words of one
            words = _KEY_WORDS_REVERSED.match(head[::-1])
            head = head[: len(head) - (words.end() if words else 0)]
        pieces.append(head + REDACTED)
        at = found.end()
    return "".join((*pieces, text[at:]))


def _assignment(found: re.Match[str]) -> str:
    name, quote, value = found[1], found[2], found["value"]
    if _COUNTED.match(name) and _AMOUNT.fullmatch(value):
        return found[0]
    if _SAYS_VARIABLE.search(name) or _VARIABLE.fullmatch(value):
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


# -- what is a secret of one run only -----------------------------------------------------------

_SAYS_SECRET: Final = re.compile(
    rf"{_NAMED}|(?<![a-z])(?-i:(?:KEY|PASS|PAT|AUTH|DSN|PWD))(?![A-Za-z])", re.ASCII | re.IGNORECASE
)
_SAYS_WHERE: Final = re.compile(r"(?:FILE|PATH|DIR|NAME|ID|URL|URI|HOST|USER)\Z", re.IGNORECASE)
"""Such a variable says where a secret is, or whose."""


def own_secrets(
    options: Mapping[str, object],
    environ: Mapping[str, str] | None = None,
    *,
    passes: Sequence[str] = (),
) -> tuple[str, ...]:
    """What a run's worker must not repeat: values of its variables whose name says secret.

    Longest first, so that one which holds another goes as a whole.

    Args:
        options: Of its runtime: ``env`` with values, ``pass_env`` with names.
        environ: Where the latter have their values.
        passes: Names and prefixes that its runtime lets through by itself.
    """
    env, passed = options.get("env"), options.get("pass_env")
    variables = {str(n): str(v) for n, v in env.items()} if isinstance(env, Mapping) else {}
    named = passed if isinstance(passed, Sequence) else ()
    for pattern in (*passes, *named) if environ else ():
        variables |= {n: v for n, v in (environ or {}).items() if _is_meant(str(pattern), n)}
    found = set[str]()
    for name, value in variables.items():
        if _SAYS_SECRET.search(name) and not _SAYS_WHERE.search(name):
            found.update(_forms(value))
    return tuple(sorted(found, key=lambda secret: (-len(secret), secret)))


def _is_meant(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _forms(value: str) -> set[str]:
    """How a value may be printed: line by line, and inside JSON."""
    lines = {line.strip() for line in value.splitlines()}
    escaped = {line.replace("\\", "\\\\").replace('"', '\\"') for line in lines}
    return {
        form
        for form in lines | escaped
        if len(form) >= OWN_CHARS_MIN and form not in REDACTED and REDACTED not in form
    }


# -- a stream -----------------------------------------------------------------------------------

KEY_LINES_MAX: Final = 400
"""So many lines has no private key."""
OTHER_LINE_COST: Final = 20
"""Lines of other programs may come in between; after some of them it is over all the same."""
CHUNK_CHARS: Final = 64 * 1024


class Redactor(Value, frozen=True):
    """Redacts a stream that comes in pieces: a key printed line by line is known by its first one.

    A state to continue: ``texts, redactor = redactor.fold(texts)``.
    """

    key_lines: int = 0
    """More of the private key may follow for so many lines; 0 = there is none."""

    def fold(
        self, texts: Sequence[str], own: Sequence[str] = ()
    ) -> tuple[Sequence[str], "Redactor"]:
        """The next texts without secrets, and the state behind them."""
        shown: list[str] = []
        state = self
        for chunk in _chunks(texts):
            if not state.key_lines and not _may_hold(chunk, own):
                shown += chunk
                continue
            for text in chunk:
                clean, state = _one(text, state.key_lines, own)
                shown.append(clean)
        return shown, state


def _one(text: str, key_lines: int, own: Sequence[str]) -> tuple[str, Redactor]:
    """One text, and what may follow behind it."""
    if key_lines:
        return _in_key(text, key_lines, own)
    begun = _last_begin(text)
    left = KEY_LINES_MAX if begun >= 0 and not _KEY_END.search(text, begun) else 0
    return redact(text, own), Redactor(key_lines=left)


def _in_key(text: str, key_lines: int, own: Sequence[str]) -> tuple[str, Redactor]:
    ended = _KEY_END.search(text)
    before = text if ended is None else text[: ended.start()]
    lines = []
    for line in before.split("\n"):
        shown = line
        if key_lines > 0:
            # Behind whatever a program puts before each of its lines.
            shown = REDACTED if _KEY_LINE.fullmatch(line) else _KEY_RUN.sub(REDACTED, line)
        lines.append(shown)
        key_lines = max(key_lines - (1 if shown is not line else OTHER_LINE_COST), 0)
    if ended is None:
        return redact("\n".join(lines), own), Redactor(key_lines=key_lines)
    rest, state = _one(text[ended.end() :], 0, own)
    return redact("\n".join([*lines[:-1], REDACTED]), own) + rest, state


def _last_begin(text: str) -> int:
    """Where the last private key of a text begins; -1 = none does."""
    if "-----BEGIN " not in text:
        return -1
    return max((found.start() for found in _BEGINNINGS.finditer(text)), default=-1)


def _may_hold(chunk: Sequence[str], own: Sequence[str]) -> bool:
    joined = "\n".join(chunk)
    return may_hold_secret(joined) or any(secret in joined for secret in own)


def _chunks(texts: Sequence[str]) -> list[Sequence[str]]:
    """Texts of about ``CHUNK_CHARS`` together."""
    chunks: list[Sequence[str]] = []
    begun = chars = 0
    for index, text in enumerate(texts):
        chars += len(text)
        if chars > CHUNK_CHARS:
            chunks.append(texts[begun : index + 1])
            begun, chars = index + 1, 0
    if begun < len(texts):
        chunks.append(texts[begun:])
    return chunks
