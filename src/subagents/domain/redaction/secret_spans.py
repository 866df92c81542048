"""Where secrets stand in a text: by their format, the name next to them, or how they are given.

RE2 looks through all text at once for what may be the beginning of one (``Suspects``), at hundreds
of megabytes a second; lines in which it sees something are looked at properly (``secret_spans``).
So the patterns of RE2 find at least what the others do, and more.

Every pattern is linear in the text. Runs of characters are possessive (``++``), and what can
follow a failed start is bounded, so that no text of a worker can make the daemon think for long.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from functools import cache, cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from subagents.domain.redaction.secret_formats import (
    CAPITAL_CHOSEN,
    CAPITAL_MADE,
    CHOSEN_NAMES,
    FORMATS,
    MADE_NAMES,
    PASSWORD_FLAGS,
    PUBLIC_NAMES,
    SERVICES,
    WEAK_NAMES,
    PasswordFlag,
)
from subagents.domain.redaction.visible import ESCAPES, HINT

REDACTED: Final = "[redacted]"
Span: TypeAlias = tuple[int, int]

# -- what RE2 looks for ---------------------------------------------------------------------------

_QUOTES: Final = r"[\\\"'`]"
"""Quotes around names and values, also where they stand in JSON inside JSON."""
_TYPE: Final = (
    r"(?:[ \t]{0,2}:[ \t]{0,2}[A-Za-z_&][\w.|\[\] ]{0,30}(?==)|[ \t]{1,2}string[ \t]{0,2})?"
)
_SIGN: Final = r"(?:=>|[:?.+|!]{0,3}={1,3}|:)"
"""What stands between a name and its value."""
_BEHIND: Final = r"(?:\A|[^A-Za-z0-9]|\\[nrt])"
"""What stands before a format; an escaped line end of a piece of JSON ends in a letter."""

# Runs are not counted here: an automaton of counters has too many states to be kept.
_TYPE_SEEN: Final = r"(?:[ \t]*:[ \t]*[A-Za-z_&][\w.|\[\] ]*=|[ \t]+string[ \t]*=)"
_MARK_SEEN: Final = rf"(?:{_TYPE_SEEN}|{_QUOTES}*[ \t]*{_SIGN})[ \t]*{_QUOTES}*"
_VALUE_SEEN: Final = r"[^\s\"'`\\,;&|<>(){}\[\]][^\s\"'`\\,;&]{3}"
_DIGITS_SEEN: Final = (
    # Too many, or letters behind them that are no unit, or what no amount goes on with; brackets
    # and quotes end it, unless the value goes on behind them.
    r"[0-9][0-9.,_*]*(?:[0-9.,_*]{15}|[A-Za-z]{7}|[A-Za-z]+[0-9.,_*]"
    r"|[A-Za-z]*[)\]}>'`\\]*[^A-Za-z0-9.,_*\s\"'`\\;&)\]}>]"
    r"|[A-Za-z]*[)\]}>'`]+[A-Za-z0-9._*])"
)
"""No amount, as in ``"input_tokens": 1024``."""
_SIGN_SEEN: Final = r"[^A-Za-z0-9_.:\s\"'`\\,;&()\[\]{}<>|-]"
_MADE_SEEN: Final = (
    rf"(?:[A-Za-z_.:-]+(?:[0-9]|{_SIGN_SEEN})|[A-Za-z_.:-]*[A-Za-z]{{16}}|{_SIGN_SEEN}"
    rf"|{_DIGITS_SEEN})"
)
"""Neither words nor a call of a function."""
_RANDOM_SEEN: Final = r"[A-Za-z+/_=.:~%-]*[0-9][A-Za-z0-9+/_=.:~%-]{5}|[A-Za-z+/_=.:~%-]{6,}[0-9]"
# -- what is looked for in a line that may hold something ------------------------------------------

_NOT_YET: Final = r"(?!\[redacted\])"
_AROUND: Final = rf"{_QUOTES}{{0,4}}"
_NAME: Final = (
    r"(?<![\w.-])(?P<name>(?:(?:api|access|secret|account|private|signing|encryption)[ ](?=key))?"
    r"[\w.-]++)"
)
_ASSIGNMENT: Final = re.compile(
    rf"{_NAME}(?P<mark>{_TYPE}{_AROUND}[ \t]{{0,8}}{_SIGN}(?![:/])[ \t]{{0,8}})"
    rf"(?P<quote>{_AROUND}){_NOT_YET}"
    r"(?P<value>(?<=\")(?:[^\"\\\r\n]|\\[^\r\n\"]){4,4096}+(?=\\?\")"
    r"|(?<=')[^'\\\r\n]{4,4096}+(?=\\?')"
    r"|[^\s\"'`\\,;&|<>(){}\[\]][^\s\"'`\\,;&]{3,250}+)",
    re.ASCII | re.IGNORECASE,
)
_REST: Final = re.compile(r"[^\s\"'`\\,;&]*+")
_PAIR: Final = re.compile(
    # "name": "TOKEN", "value": "…"; key="Password" value="…"; put("TOKEN", "…")
    rf"(?<![\w.-])(?P<name>[\w.-]++){_QUOTES}{{1,4}}[ \t]{{0,4}}(?:,[ \t]{{0,4}})?"
    rf"(?P<says>(?:{_AROUND}value{_AROUND}[ \t]{{0,4}}[:=][ \t]{{0,4}})?)"
    rf"{_QUOTES}{{1,4}}{_NOT_YET}(?P<value>[^\s\"'`\\<>]{{4,4096}}+)",
    re.ASCII | re.IGNORECASE,
)
_ELEMENT: Final = re.compile(
    rf"<(?P<name>[\w.:-]{{1,80}}+)>[ \t]{{0,8}}{_NOT_YET}(?P<value>[^\s<>]{{4,4096}}+)"
    r"[ \t]{0,8}</",
    re.ASCII,
)
_URL_PASSWORD: Final = re.compile(
    r"://[^\s/@:\[\]]{0,200}:(?P<value>[^\s/@\[\]]{1,500})@", re.ASCII
)
_URL_TOKEN: Final = re.compile(r"://(?P<value>[\w-]{20,500}+)@", re.ASCII)
_HEADER: Final = re.compile(
    r"\b(?:(?:proxy-)?authorization"
    rf"{_AROUND}[ \t]{{0,8}}[:=][ \t]{{0,8}}{_AROUND}"
    r"(?P<scheme>(?:basic|bearer|digest|negotiate|token|apikey)[ \t]{1,8})?+"
    rf"|(?:set-)?cookie{_AROUND}[ \t]{{0,8}}[:=][ \t]{{0,8}}{_AROUND}(?=[\w.%!~-]{{1,80}}+=[^=]))"
    rf"{_NOT_YET}(?P<value>[^\s\"'`\\<{{($%][^\r\n\"'`\\]{{3,}}+)",
    re.ASCII | re.IGNORECASE,
)
_BEARER: Final = re.compile(
    r"\bbearer[ \t]{1,8}(?!authenticat|authoriz|credential|certificat)"
    r"(?P<value>[\w.~+/=-]{8,}+)",
    re.ASCII | re.IGNORECASE,
)
_FLAG: Final = re.compile(
    r"--[\w-]{0,40}(?:passw(?:or)?d|passphrase|secret|token|(?:api|access)-?key)[ \t]{1,4}['\"]?"
    rf"{_NOT_YET}(?!-)(?=[^\s\"'`]{{0,40}}[\d!#$%^&*])(?P<value>[^\s\"'`]{{6,}}+)",
    re.ASCII | re.IGNORECASE,
)
_CURL_USER: Final = re.compile(
    r"\s(?:-u|--user)[ =]['\"]?[^\s:'\"]{1,80}:(?!\d{1,10}\b)"
    rf"{_NOT_YET}(?P<value>[^\s'\"]{{4,}}+)",
    re.ASCII,
)
_WORD_END: Final = r"[\s\"',]"
"""What stands between words of a command, also in a list of them in JSON."""
_PORTS: Final = re.compile(r"[\d.:]+")


def _programs(each: PasswordFlag) -> str:
    return each.programs.replace(" ", f"{_WORD_END}+")


def _flag_of(each: PasswordFlag) -> re.Pattern[str]:
    apart = f"{_WORD_END}{{1,6}}"
    between = f"(?:{apart})?" if each.is_glued and each.is_apart else apart * each.is_apart
    return re.compile(
        rf"(?<={_WORD_END})(?:{each.flags}){between}[\"']?{each.behind}{_NOT_YET}"
        r"(?![-$*%<{(&])(?P<value>(?<=')[^'\r\n]{4,200}(?=')|(?<=\")[^\"\\\r\n]{4,200}(?=\")"
        r"|[^\s\"'`\\,;|]{4,200}+)",
        re.ASCII,
    )


@cache
def _password_flags() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    """Each program and its flag; made when a line needs them, as most daemons see none."""
    return tuple(
        (
            # Until another program begins.
            re.compile(
                rf"(?<![\w.-])(?:{_programs(each)})(?={_WORD_END})[^\r\n|;&]{{1,1000}}+", re.ASCII
            ),
            _flag_of(each),
        )
        for each in PASSWORD_FLAGS
    )


_PASSWORD_FLAG_SEEN: Final = "|".join(
    rf"(?:{_programs(each)})(?:{_WORD_END}[^\n|;&]*)?{_WORD_END}(?:{each.flags})"
    for each in PASSWORD_FLAGS
)
_NETRC: Final = re.compile(
    rf"\blogin[ \t]{{1,4}}[^\s]{{1,80}}[ \t]{{1,4}}password[ \t]{{1,4}}{_NOT_YET}"
    r"(?P<value>[^\s]{4,}+)",
    re.ASCII | re.IGNORECASE,
)
_DOTTED: Final = re.compile(r"(?<![\w-])[\w-]++(?:\.[\w-]++)++", re.ASCII)
_JWT_PART_CHARS_MIN: Final = 8


Finder: TypeAlias = Callable[[str], Iterator[Span]]


def _in_urls(line: str) -> Iterator[Span]:
    yield from _values(_URL_PASSWORD, line)
    for found in _URL_TOKEN.finditer(line):
        if looks_random(found["value"]):
            yield found.span("value")


def _in_headers(line: str) -> Iterator[Span]:
    for found in _HEADER.finditer(line):
        is_told = found["scheme"] or "=" in found["value"]
        if is_told or not _is_harmless("token", found["value"]):
            yield found.span("value")


def _in_commands(line: str) -> Iterator[Span]:
    if "curl" in line or "wget" in line:
        yield from _values(_CURL_USER, line)
    for program, flag in _password_flags():
        for called in program.finditer(line):
            for found in flag.finditer(line, *called.span()):
                if not (_EXAMPLE.fullmatch(found["value"]) or _PORTS.fullmatch(found["value"])):
                    yield found.span("value")


def _in_elements(line: str) -> Iterator[Span]:
    for found in _ELEMENT.finditer(line):
        if names_secret(found["name"]) and not _is_harmless(found["name"], found["value"]):
            yield found.span("value")


def _values(pattern: re.Pattern[str], line: str) -> Iterator[Span]:
    for found in pattern.finditer(line):
        if not _EXAMPLE.fullmatch(found["value"]):
            yield found.span("value")


def _nothing(_line: str) -> Iterator[Span]:
    return iter(())


def _tokens(line: str) -> Iterator[Span]:
    """JWTs: words with dots between them; the first is a JSON object in base64, so ``eyJ``."""
    for found in _DOTTED.finditer(line):
        begin = found.start()
        parts = found[0].split(".")
        for part, behind in pairwise(parts):
            start = part.find("eyJ")
            is_token = 0 <= start <= len(part) - _JWT_PART_CHARS_MIN
            if is_token and len(behind) >= _JWT_PART_CHARS_MIN:
                yield begin + start, found.end()
                break
            begin += len(part) + 1


def _formats(line: str) -> Iterator[Span]:
    data = line.encode("utf-8", "surrogatepass")
    for number in suspects().formats.Match(data) or ():
        for found in _format(number).finditer(data):
            begin, end = found.span()
            if data[begin : begin + 2] in {b"\\n", b"\\r", b"\\t"}:
                begin += 2
            elif not data[begin : begin + 1].isalnum():
                begin += 1
            if len(data) != len(line):
                chars = end - begin  # formats are ASCII
                begin = len(data[:begin].decode("utf-8", "replace"))
                end = begin + chars
            if not FORMATS[number].looks_random or looks_random(line[begin:end]):
                yield begin, end


# -- names and values ------------------------------------------------------------------------------

_NAMES_SECRET: Final = re.compile(
    rf"{CHOSEN_NAMES}|{MADE_NAMES}(?!i[sz])"  # but no tokenizer
    rf"|(?<![a-z])(?-i:{CAPITAL_CHOSEN}|{CAPITAL_MADE})(?![A-Za-z]|_[A-Za-z])",
    re.ASCII | re.IGNORECASE,
)
_WEAK: Final = re.compile(
    # As a whole word, also inCamelCase.
    rf"(?<![a-z])(?i:{WEAK_NAMES})(?![a-z])"
    rf"|(?:{'|'.join(each.capitalize() for each in WEAK_NAMES.split('|'))})(?![a-z])",
    re.ASCII,
)
_SERVICE: Final = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(SERVICES)})", re.ASCII | re.IGNORECASE)
_PUBLIC: Final = re.compile(rf"(?:{'|'.join(PUBLIC_NAMES)})s?\Z", re.ASCII | re.IGNORECASE)
_HASHES: Final = re.compile(
    r"[0-9a-f]{32,}|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", re.ASCII
)
"""Digests and UUIDs: next to ``key`` they name what is cached, or the row of a table."""
_CLIENT_ID: Final = re.compile(r"client_?id\Z", re.ASCII | re.IGNORECASE)
_NAME_CHARS: Final = 80
"""How many characters at the end of a name are looked at."""
NAMES_KEPT: Final = 4096
"""What they say is remembered: the lines of a log have the same names."""


def names_secret(name: str) -> bool:
    """Whether what is assigned to it is one, by its name: ``DB_PASSWORD``, ``clientSecret``."""
    return _NAMES_SECRET.search(name[-_NAME_CHARS:]) is not None


def _assigned(line: str) -> Iterator[Span]:
    at = 0
    # Not `finditer`: where a value is none, the next name may begin inside it (`url=x?token=…`).
    while (found := _ASSIGNMENT.search(line, at)) is not None:
        begin, at = found.span("value")
        name, value = found["name"][-_NAME_CHARS:], found["value"]
        is_quoted = bool(found["quote"])
        is_code = (
            not is_quoted
            and _GOES_ON.match(line, at) is not None
            and _WORDS.fullmatch(value) is not None
        )
        if not is_code and _is_secret(name, value, is_quoted=is_quoted):
            if not found["quote"]:
                # The pattern is bounded, the secret is not: its end goes with it.
                at = _REST.match(line, at).end()  # type: ignore[union-attr]  # it may be empty
            yield begin, at
        else:
            at = found.end("name")  # another name may stand behind it


def _is_secret(name: str, value: str, *, is_quoted: bool) -> bool:
    # The weaker the name, the more the value itself must look like a secret: source code is full of
    # assignments to `key` and `auth` that a reader of a log needs.
    match _says(name):
        case _Says.SECRET:
            return not _is_harmless(name, value, is_quoted=is_quoted)
        case _Says.SERVICE:
            return looks_random(value, least=11) or (
                _CLIENT_ID.search(name) is not None and len(value) > 13 and value.isalnum()
            )
        case _Says.WEAK:
            return looks_random(_HASHES.sub("-", value[: 2 * _LOOKED_AT_CHARS]), least=20)
        case _:
            return False


class _Says(Enum):
    """What a name says of the value next to it."""

    SECRET = auto()
    SERVICE = auto()
    WEAK = auto()
    NOTHING = auto()


@lru_cache(NAMES_KEPT)
def _says(name: str) -> _Says:
    # A name that says secret is one whatever else it says: `password_hash` is not shown, either.
    if _NAMES_SECRET.search(name):
        return _Says.SECRET
    if _PUBLIC.search(name):
        return _Says.NOTHING
    if _SERVICE.search(name):
        return _Says.SERVICE
    return _Says.WEAK if _WEAK.search(name) else _Says.NOTHING


def _paired(line: str) -> Iterator[Span]:
    at = 0
    while (found := _PAIR.search(line, at)) is not None:
        begin, at = found.span("value")
        name, value = found["name"], found["value"]
        is_secret = names_secret(name) and (
            not _is_harmless(name, value, is_quoted=True) if found["says"] else looks_random(value)
        )
        if is_secret:
            yield begin, at
        else:
            at = max(begin, found.start() + 1)


_GOES_ON: Final = re.compile(r"[ ]{1,2}(?:[+|&*/-]|if|or|and|else|in|is|for|not)[ ]")
"""What follows a value in code, which is the name of a variable then."""
_EXAMPLE: Final = re.compile(
    r"pass|password|passwd|pwd|secret|token|key|(?:my|your)[_-]?(?:secret|password|pass|token|key)"
    r"|\$\{?[\w.]{1,80}\}?|\$\(.*|%\(?\w{0,80}\)?[sdr]|\{+[\w.() ]{0,80}\}+|<[^<>]{0,80}>|(.)\1*",
    re.ASCII | re.IGNORECASE,
)
"""Stands for a secret in documentation and in templates."""
_VERSION: Final = re.compile(r"[\^~<>=v]{0,3}\d{1,4}(?:\.\d{1,4}){1,3}(?:[-+.][\w.]{1,20})?")
_AMOUNT: Final = re.compile(
    r"[~<>]?\d[\d.,_*]{0,15}(?:[kKmMgG]|[a-z]{1,6})?|0x[0-9a-f]{1,16}|true|false|null|none",
    re.ASCII | re.IGNORECASE,
)
"""What stands after ``max_tokens=``: no secret."""
_RANDOM_KIND: Final = re.compile(r"token|key|credential", re.ASCII | re.IGNORECASE)
"""Names of things that are made by machines; a password may be a word."""
_PASSWORD: Final = re.compile(r"pass|pw|secret", re.ASCII | re.IGNORECASE)
_SAYS_VARIABLE: Final = re.compile(r"_env(?:_?(?:var|name))?\W*\Z", re.ASCII | re.IGNORECASE)
"""Names followed by the name of a variable, which whoever has to set it must be able to read."""
_VARIABLE: Final = re.compile(
    r"\$?(?=[A-Z\d_]{0,80}(?:KEY|TOKEN|SECRET|PASS|PASSWORD|AUTH|CREDENTIALS?)[:.]?\Z)"
    r"[A-Z]{1,20}\d{0,2}(?:_[A-Z]{1,20}\d{0,2}){1,6}[:.]?",
    re.ASCII,
)
"""A variable that would hold a secret, named in place of one: ``$OPENAI_API_KEY``."""
_SAYS_ABOUT: Final = re.compile(
    r"(?:FILE|PATH|DIR|NAME|ID|URL|URI|HOST|USER|TYPE|COUNT|LIMIT|LENGTH|LEN|SIZE|MAX|MIN|TTL|AGE"
    r"|ENDPOINT|EXPIR\w{0,8}|POLICY|HINT|LABEL|STATUS|STATE|MODE|INDEX|POS|REF|CLASS|FIELD)S?\Z",
    re.IGNORECASE,
)
"""Names that say something about a secret, or where it is."""
_TYPES: Final = frozenset(
    (
        *("none", "null", "undefined", "true", "false", "str", "string", "bytes"),
        *("bytearray", "int", "integer", "number", "boolean", "bool", "float"),
        *("optional", "any", "object", "dict", "list", "tuple", "set", "array"),
        *("required", "missing", "invalid", "expired", "unset", "self", "this"),
        *("default", "unknown", "empty", "disabled", "enabled", "changed"),
        *("incorrect", "redacted", "hidden", "masked", "must", "should", "cannot"),
        *("will", "was", "has", "does", "not", "the", "your", "for", "and", "with", "from"),
        *("that", "this", "when", "which", "union", "text", "type", "char", "file", "path"),
        *("literal", "sequence", "mapping", "iterable", "final", "lambda", "await"),
        *("yield", "async", "function", "return", "amd64", "arm64", "i386", "all"),
    )
)
"""Words that follow the name of a secret in code and in sentences."""
_CODE: Final = re.compile(
    r"(?:await |new |not |lambda )?[A-Za-z_][A-Za-z_.:]{0,80}\d?[(\[]"  # a call, an index
    r"|(?:self|cls|this|args?|config|settings|options|opts|os|process|req|request|ctx|env|state"
    r"|event|data|params?|props|secrets|vars?|inputs|github|context|user|account|response|res|obj"
    r")(?:\.[A-Za-z_]\w{0,60}){1,6}",
    re.ASCII,
)
_WORDS: Final = re.compile(
    r"[._-]{0,2}[A-Za-z]{1,15}(?:[.:_-]{1,2}[A-Za-z]{1,15}){0,12}_?", re.ASCII
)
_IDENTIFIER: Final = re.compile(r"[A-Za-z_.][\w.:]{1,120}", re.ASCII)
_SENTENCE: Final = re.compile(
    r"[^\s]{1,40}(?: [^\s]{1,40}){4,}|[A-Z][a-z']{0,20}(?: [a-z']{1,20}){2,}[.?!:]?"
)
_PATH: Final = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:[\w.@-]{1,40}[/\\])*[\w.@-]{0,40}"
    r"|(?:[\w@.-]{1,40}/){1,20}(?=[\w@-]*[A-Za-z])[\w@-]{1,60}\.[a-z]{1,5}|[a-z]{2,8}://[^\s@]{1,200}",
    re.ASCII,
)
"""A file's path, or a URL."""
_KEPT_CHARS_MAX: Final = 250
"""A longer value is never a word, an amount or a name."""


def _is_harmless(name: str, value: str, *, is_quoted: bool = False) -> bool:
    """Whether a value next to a secret's name is something else: a variable, code, prose."""
    if len(value) > _KEPT_CHARS_MAX:
        return False
    if _SAYS_VARIABLE.search(name) or _VARIABLE.fullmatch(value):
        return True
    bare = value[:-4] + value[-4:].rstrip(".,;:)]}>!?*'\"`")
    is_made = _RANDOM_KIND.search(name) is not None and not _PASSWORD.search(name)
    return (
        bare.lower() in _TYPES
        or _EXAMPLE.fullmatch(value) is not None
        or _VERSION.fullmatch(value) is not None
        or (is_made and _is_no_random_kind(value, bare, is_quoted=is_quoted))
        or (_SAYS_ABOUT.search(name) is not None and not looks_random(bare))
        or (is_quoted and _SENTENCE.fullmatch(value) is not None)
        or (_PATH.fullmatch(bare) is not None and not any(map(looks_random, bare.split("/"))))
        or (not is_quoted and _CODE.match(value) is not None)
        or (_WORDS.fullmatch(bare) is not None and _names_another(bare))
    )


def _is_no_random_kind(value: str, bare: str, *, is_quoted: bool) -> bool:
    """Of what machines make: an amount, a sentence, a word, a name of the same kind."""
    return (
        _AMOUNT.fullmatch(bare) is not None
        or (is_quoted and " " in value)
        or _WORDS.fullmatch(bare) is not None
        or (_IDENTIFIER.fullmatch(bare) is not None and _names_another(bare, is_made=True))
    )


def _names_another(word: str, *, is_made: bool = False) -> bool:
    """Whether a word is a name that says secret itself, as in ``password = user_password``."""
    found = _NAMES_SECRET.search(word)
    return found is not None and (
        len(found[0]) == len(word) or not word.isalnum() or (is_made and not word.islower())
    )


_ALPHABET: Final = re.compile(r"[A-Za-z0-9+/_=.:~%-]+", re.ASCII)
_LOOKED_AT_CHARS: Final = 96
"""What is random is so from its beginning; a long text of such values must not take minutes."""
_PARTS: Final = re.compile(r"[_.:~/%-]+")


def looks_random(value: str, *, least: int = 16) -> bool:
    """Whether a machine made it: no word, number, path or name of names; ``least`` characters."""
    if len(value) < least or "://" in value or _ALPHABET.fullmatch(value) is None:
        return False
    value = value[:_LOOKED_AT_CHARS].rstrip("=")
    if "=" in value:  # another assignment
        return False
    parts = _PARTS.split(value)
    return any(
        # Of n characters that all differ each has log2(n) bits, so a short part cannot have many.
        len(part) >= min(least, 11)
        and _is_mixed(part)
        and _bits(part) > min(3.0, math.log2(len(part)) - 0.8)
        for part in (*parts, "".join(part for part in parts if len(part) > 5))
    )


def _is_mixed(part: str) -> bool:
    """Kinds of characters change more often than in ``version2``, ``user_2024``, ``camelCase``."""
    kinds = ["0" if c.isdigit() else "A" if c.isupper() else "a" for c in part if c.isalnum()]
    changes = sum(map(str.__ne__, kinds, kinds[1:]))
    if "0" not in kinds:
        return len(kinds) > 23 and changes * 3 > len(kinds)
    to_digits = sum((a == "0") != (b == "0") for a, b in pairwise(kinds))
    return to_digits >= max(len(kinds) // 8, 2) or changes * 20 > len(kinds) * 9


def _bits(text: str) -> float:
    """Shannon's entropy per character."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values())


# -- all of them -----------------------------------------------------------------------------------


class Rule(NamedTuple):
    """One way in which a secret may stand in a text."""

    seen: str
    """A pattern of RE2 that is found in every line in which ``find`` finds something."""
    find: Finder


RULES: Final = (
    Rule(rf"{_BEHIND}(?:{'|'.join(each.pattern for each in FORMATS if not each.hint)})", _formats),
    Rule("|".join(each.hint for each in FORMATS if each.hint), _formats),
    Rule(rf"(?:(?i:{CHOSEN_NAMES})|{CAPITAL_CHOSEN})[\w.-]*{_MARK_SEEN}{_VALUE_SEEN}", _assigned),
    Rule(rf"(?:(?i:{MADE_NAMES})|{CAPITAL_MADE})[\w.-]*{_MARK_SEEN}{_MADE_SEEN}", _assigned),
    Rule(
        rf"(?i:{WEAK_NAMES}|{'|'.join(SERVICES)})[\w.-]*{_MARK_SEEN}(?:{_RANDOM_SEEN})", _assigned
    ),
    Rule(
        rf"(?i:{MADE_NAMES}|{CHOSEN_NAMES})[\w.-]*{_QUOTES}+[ \t]*(?:,[ \t]*)?{_QUOTES}*"
        rf"(?:(?i:value){_QUOTES}*[ \t]*[:=][ \t]*)?{_QUOTES}+[^\s\"'`\\<>]{{4}}",
        _paired,
    ),
    Rule(rf"<[\w.:-]*(?i:{MADE_NAMES}|{CHOSEN_NAMES})[\w.:-]*>[ \t]*[^\s<>]{{4}}", _in_elements),
    Rule(r"://[^\s/@\[\]]*@", _in_urls),
    Rule(rf"(?i:orization){_QUOTES}*[ \t]*[:=]", _in_headers),
    Rule(rf"(?i:cookie){_QUOTES}*[ \t]*[:=][^=\n]*=", _in_headers),
    Rule(r"(?i:bearer)[ \t]+[\w.~+/=-]{8}", partial(_values, _BEARER)),
    Rule(
        r"--[\w-]*(?i:passw(?:or)?d|passphrase|secret|token|(?:api|access)-?key)[ \t]+['\"]?"
        r"[^\s\"'`-]",
        partial(_values, _FLAG),
    ),
    Rule(r"\s(?:-u|--user)[ =]['\"]?[^\s:'\"]*:[^\s'\"]*[^\s\d'\"]", _in_commands),
    Rule(_PASSWORD_FLAG_SEEN, _in_commands),
    Rule(r"(?i:login)[ \t]+[^\s]+[ \t]+(?i:password)[ \t]+[^\s]{4}", partial(_values, _NETRC)),
    Rule(r"eyJ[\w-]{5,}\.[\w-]{8}", _tokens),
    # Of more than a line, and behind what is not to be seen: see ``redact``.
    Rule(r"PRIVATE KEY(?: BLOCK)? ?----|Private-(?:Lines|MAC):", _nothing),
    Rule(HINT.decode("ascii"), _nothing),
    Rule(ESCAPES, _nothing),
)


def spans_in_line(line: str) -> Iterator[Span]:
    """Where secrets stand in a text without line ends; they may overlap."""
    found = suspects().rules.Match(line.encode("utf-8", "surrogatepass")) or ()
    for find in dict.fromkeys(RULES[number].find for number in found):
        yield from find(line)


SEARCH_BYTES: Final = 64 << 20
"""What a search may remember of the texts that it saw; with half of it, it is half as fast."""
SET_BYTES: Final = 16 << 20
FORMAT_BYTES: Final = 1 << 20


class Suspects:
    """Finds where a secret may begin, in UTF-8."""

    # Three automata and not one: the first runs over all text and must be fast, the sets are asked
    # about the lines alone in which it saw something (decision 0046). Each takes some 10 ms to
    # compile, which a daemon's start need not wait for.
    @cached_property
    def _first(self) -> Any:
        # Asked where a match begins, RE2 reads backwards with all patterns at once, and that is a
        # hundred times slower. So a search says where it ends, and a set which patterns match.
        seen = "|".join(each.seen for each in RULES)
        return _compiled(rf"(?s:.*?)(?:{seen})", SEARCH_BYTES)

    @cached_property
    def rules(self) -> Any:
        """Says which of the ``RULES`` are worth a try."""
        return _set_of([each.seen for each in RULES])

    @cached_property
    def formats(self) -> Any:
        """Says which of the ``FORMATS`` there are."""
        return _set_of([f"{_BEHIND}(?:{each.pattern})" for each in FORMATS])

    def next(self, data: bytes, begin: int = 0) -> int | None:
        """The end of the next one's beginning, from ``begin`` on; None = there is no secret."""
        found = self._first.match(data, begin)
        return None if found is None else found.end()


@cache
def suspects() -> Suspects:
    """Compiled once."""
    return Suspects()


@cache
def _format(number: int) -> Any:
    return _compiled(f"{_BEHIND}(?:{FORMATS[number].pattern})", FORMAT_BYTES)


def _compiled(pattern: str, memory: int) -> Any:
    return _re2().compile(pattern.encode("ascii"), _options(memory))


def _set_of(patterns: Sequence[str]) -> Any:
    matching = _re2().Set.SearchSet(_options(SET_BYTES))
    for pattern in patterns:
        matching.Add(pattern.encode("ascii"))
    matching.Compile()
    return matching


def _options(memory: int) -> Any:
    options = _re2().Options()
    options.encoding = _re2().Options.Encoding.LATIN1  # any bytes are text to it
    options.log_errors = False
    options.max_mem = memory
    return options


def _re2() -> Any:
    # Loaded when text is first looked at: most commands import this, and never look at any.
    import re2  # type: ignore[import-untyped]  # noqa: PLC0415  # it brings no types

    return re2
