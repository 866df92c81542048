"""Secrets out of texts that leave us, or that we keep: journal, transcripts, answers, logs.

What looks like a secret of a known format, a bearer header, a private key or what is assigned to a
name that says secret is replaced by ``[redacted]`` (``secret_spans``); a hash or a base64 picture
stays readable. Values of an agent's own variables with such a name (``own_secrets``) are replaced
wherever they stand. It is a net under the rule that workers get no secrets, not a replacement.

A secret is found behind escape sequences and characters that show nothing, too (``visible``); all
around it stays as it is. Redacting twice changes nothing, so each layer may do it without knowing
of the others. See docs/decisions/0046.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from subagents.domain.redaction.secret_spans import REDACTED, Span, spans_in_line, suspects
from subagents.domain.redaction.visible import unescaped, views, visible
from subagents.domain.run.values import Value

_PASSES_MAX: Final = 4
"""What is left behind one secret may be known as another: ``a=[redacted]b=…``."""

_KEY_BEGIN: Final = (
    r"(?:-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|Private-Lines: \d{1,4})"
)
_KEY_END: Final = re.compile(
    r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    r"|Private-MAC: [0-9a-f]{0,128}",  # PuTTY's
    re.ASCII,
)
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
_KEY_OR_END: Final = re.compile(
    rf"({_PRIVATE_KEY.pattern})|{_KEY_END.pattern}", re.ASCII | re.DOTALL
)


def redact(text: str, own: Sequence[str] = ()) -> str:
    """``text`` with every secret that can be known replaced by ``[redacted]``.

    Time grows with the length of the text and with nothing else, and
    ``redact(redact(x)) == redact(x)``. Returns the same object when nothing was secret.

    ``own`` are replaced wherever they stand, see ``own_secrets``.
    """
    # Nearly all texts hold none: those are known by one look of the set, without a position.
    if not own and not may_hold_secret(text):
        return text
    # Again on the result, so that redacting it once more would change nothing.
    for _ in range(_PASSES_MAX):
        found = _merged(_spans(text, own))  # one character may belong to what several rules found
        if not found:
            break
        pieces: list[str] = []
        at = 0
        for begin, end in found:
            pieces += text[at:begin], REDACTED
            at = end
        text = "".join((*pieces, text[at:]))
    return text


def may_hold_secret(text: str) -> bool:
    """False = ``redact`` finds nothing in it; hundreds of megabytes a second."""
    return bool(suspects().rules.Match(text.encode("utf-8", "surrogatepass")))


MARGIN_BYTES: Final = 16 * 1024
"""Read before an end that is kept: a secret that begins there is known by its beginning."""


def ending(data: bytes, bytes_max: int) -> str:
    """The end of what a program wrote, at most ``bytes_max`` bytes of it, as text.

    Redacted before it is cut: half a secret is no secret by its shape. Where the cut falls into a
    line or a word, an eighth at most is given up to begin with a whole one: a run's own secrets
    are not known here, and half of one would not be found later.

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


def _spans(text: str, own: Sequence[str]) -> Iterator[Span]:
    yield from _own_spans(text, own)
    data = text.encode("utf-8", "surrogatepass")
    at = suspects().next(data)
    if at is None:
        return
    yield from _key_spans(text)  # of many lines, so before the text is taken apart
    lines = text.split("\n")
    begin = passed = 0
    for number in _lines_at(data, at):
        begin += sum(map(len, lines[passed:number])) + number - passed
        passed = number
        for first, last in _line_spans(lines[number], own):
            yield begin + first, begin + last


def _line_spans(line: str, own: Sequence[str]) -> Iterator[Span]:
    yield from spans_in_line(line)
    read = unescaped(line)
    for view in (*views(line), *((read,) if read is not None else ())):
        for span in (*spans_in_line(view.text), *_own_spans(view.text, own)):
            yield view.original(*span)


def _own_spans(text: str, own: Sequence[str]) -> Iterator[Span]:
    for secret in own:
        at = text.find(secret)
        while at >= 0:
            yield at, at + len(secret)
            at = text.find(secret, at + len(secret))


def _merged(spans: Iterator[Span]) -> list[Span]:
    """In order, and those that touch as one."""
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif end > begin:
            merged.append((begin, end))
    return merged


def _key_spans(text: str) -> Iterator[Span]:
    """Private keys, of which the beginning or the end may have been cut off."""
    shown = visible(text)
    if "PRIVATE KEY" not in shown and "Private-" not in shown:
        return
    if shown == text:
        yield from _keys(text)
        return
    for view in views(text):
        for span in _keys(view.text):
            yield view.original(*span)


def _keys(text: str) -> Iterator[Span]:
    at = 0
    for found in _KEY_OR_END.finditer(text):
        if found[1] is not None:
            yield found.span()
        else:
            yield _begin_of_cut_key(text, at, found.start()), found.end()
        at = found.end()


def _begin_of_cut_key(text: str, at: int, end: int) -> int:
    """What stands before the end of a key whose beginning was cut off may be key."""
    head = text[at:end]
    lines = head.split("\n")
    kept = len(lines)
    while kept and _KEY_LINE.fullmatch(lines[kept - 1] or "+"):
        kept -= 1
    if kept < len(lines):
        return at + sum(len(line) + 1 for line in lines[:kept])
    # its lines may have become words of one
    words = _KEY_WORDS_REVERSED.match(head[::-1])
    return end - (words.end() if words else 0)


# -- a stream -----------------------------------------------------------------------------------

KEY_LINES_MAX: Final = 400
"""A number of lines that no private key has."""
OTHER_LINE_COST: Final = 20
"""Lines of other programs may come in between; after some of them it is over all the same."""
CHUNK_CHARS: Final = 64 * 1024


class Redactor(Value, frozen=True):
    """Redacts a stream that comes in pieces: a key printed line by line is known by its first one.

    A state to continue: ``texts, redactor = redactor.fold(texts)``.
    """

    key_lines: int = 0
    """How many lines may still follow of the private key; 0 = there is none."""

    def fold(
        self, texts: Sequence[str], own: Sequence[str] = ()
    ) -> tuple[Sequence[str], "Redactor"]:
        """The next texts without secrets, and the state behind them."""
        shown: list[str] = []
        state = self
        for chunk in _chunks(texts):
            clean, state = _folded(chunk, state, own)
            shown += clean
        return shown, state


def _folded(
    chunk: Sequence[str], state: Redactor, own: Sequence[str]
) -> tuple[Sequence[str], Redactor]:
    suspicious = _suspicious(chunk, own)
    if not suspicious and not state.key_lines:
        return chunk, state
    shown = list(chunk)
    at = number = 0
    while at < len(chunk):
        if not state.key_lines:
            number = bisect_left(suspicious, at, lo=number)
            if number == len(suspicious):
                break
            at = suspicious[number]
        shown[at], state = _one(chunk[at], state.key_lines, own)
        at += 1
    return shown, state


def _lines_at(data: bytes, at: int | None) -> Iterator[int]:
    """Numbers of the lines in which a secret may begin; ``at`` is the end of the first's."""
    number = begin = 0
    while at is not None:
        number += data.count(b"\n", begin, at - 1)
        yield number
        begin = data.find(b"\n", at - 1)
        at = None if begin < 0 else suspects().next(data, begin)


def _suspicious(chunk: Sequence[str], own: Sequence[str]) -> list[int]:
    """Which of the texts may hold a secret."""
    joined = "\n".join(chunk)
    found = {
        number
        for secret in own
        if secret in joined
        for number, text in enumerate(chunk)
        if secret in text
    }
    data = joined.encode("utf-8", "surrogatepass")
    at = suspects().next(data)
    if at is not None:
        # Only where no text has a line end in it do lines of the whole stand for texts.
        if joined.count("\n") == len(chunk) - 1:
            found.update(_lines_at(data, at))
        else:
            found.update(n for n, text in enumerate(chunk) if may_hold_secret(text))
    return sorted(found)


def _one(text: str, key_lines: int, own: Sequence[str]) -> tuple[str, Redactor]:
    """One text, and what may follow behind it."""
    if key_lines:
        # Without its colours: lines of a key are known by what they consist of.
        return _in_key(visible(text), key_lines, own)
    shown = visible(text)
    begun = _last_begin(shown)
    left = KEY_LINES_MAX if begun >= 0 and not _KEY_END.search(shown, begun) else 0
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
    if "PRIVATE KEY" not in text and "Private-" not in text:
        return -1
    return max((found.start() for found in _BEGINNINGS.finditer(text)), default=-1)


def _chunks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Texts of about ``CHUNK_CHARS`` together, where they are about as long as each other."""
    chars = sum(map(len, texts)) + len(texts)
    at_once = len(texts) * CHUNK_CHARS // chars + 1 if chars else 1
    for begin in range(0, len(texts), at_once):
        yield texts[begin : begin + at_once]
