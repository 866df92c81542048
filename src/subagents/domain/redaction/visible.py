"""Text as a reader sees it: without characters that show nothing and can hide what stands there.

An escape sequence or a zero-width space inside a key keeps every pattern from finding it, and a
person who copies the key from a screen does not notice. So do the escapes that programs write by
themselves: of URLs (``%5F``), of JSON and source (``\\u005f``, ``\\x5f``, ``\\/``), of HTML
(``&quot;``, ``&#x3D;``).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

_ESCAPE_SEQUENCE: Final = (
    r"(?:\[[0-?]{0,64}+[ -/]{0,8}+[@-~]"  # colours, cursor
    "|[\\]PX^_][^\x07\x1b\n]{0,4096}+(?:\x07|\x1b\\\\)"  # titles, links
    r"|[ -/]{0,8}+[0-Z\\^-~])?"
)
_INVISIBLE: Final = re.compile(
    rf"(?:\x1b{_ESCAPE_SEQUENCE}|\x9b[0-?]{{0,64}}+[ -/]{{0,8}}+[@-~]"
    # The same, escaped in JSON or in source.
    r"|\\{1,8}(?:u00(?:1[bB]|9[bB])|x1[bB]|033)(?:\[[0-?]{0,64}+[@-~])?"
    r"|\\{1,8}u(?:200[b-fB-F]|202[a-eA-E]|206[0-9a-fA-F]|(?:fe|FE)(?:ff|FF|0[0-9a-fA-F])"
    r"|00[aA][dD])"
    # Zero width, direction, joiners, variation selectors, tags; control characters.
    "|[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
    "\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9a\x9c-\x9f])++"
)
HINT: Final = (
    rb"[\x00-\x08\x0e-\x1f\x7f]|\xc2[\x80-\x9f\xad]|\xcd\x8f|\xd8\x9c|\xe1\x85[\x9f\xa0]"
    rb"|\xe1\x9e[\xb4\xb5]|\xe1\xa0[\x8b-\x8f]|\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xaf]"
    rb"|\xe3\x85\xa4|\xef\xb8[\x80-\x8f]|\xef\xbb\xbf|\xef\xbe\xa0|\xf3\xa0"
    rb"|\\(?:u00(?:1b|1B|9b|9B|[aA][dD])|x1[bB]|033|u20[026]|u[fF][eE])"
)
"""A pattern of RE2 on UTF-8: one of these begins all that shows nothing."""


_ESCAPED: Final = re.compile(
    r"%(?P<url>2[1-9A-F]|[3-7][0-9A-F])|\\{1,8}(?:u00|x)(?P<json>2[1-9A-F]|[3-7][0-9A-F])"
    r"|\\{1,8}(?=/)|&(?P<name>quot|apos|amp);|&#(?:x(?P<hex>[2-7][0-9A-F])|(?P<number>\d{2,3}));",
    re.ASCII | re.IGNORECASE,
)
ESCAPES: Final = (
    r"%(?:2[1-9A-Fa-f]|[3-7][0-9A-Fa-f])|\\(?:u00|x)(?:2[1-9A-Fa-f]|[3-7][0-9A-Fa-f])|\\/"
    r"|&(?:quot|apos|amp|#)"
)
"""A pattern of RE2: one of these begins every character that is written in another way."""
_HTML: Final = {"quot": '"', "apos": "'", "amp": "&"}


class View(NamedTuple):
    """A text without what shows nothing."""

    text: str
    origins: Sequence[int]
    """Where each character stood, and the end."""
    is_whole: bool = False
    """Nothing is left out: each character stood up to where the next one did."""

    def original(self, begin: int, end: int) -> tuple[int, int]:
        """A part of it, which is not empty, as a part of the text itself."""
        last = self.origins[end] if self.is_whole else self.origins[end - 1] + 1
        return self.origins[begin], last


def views(text: str) -> list[View]:
    """How a text with something invisible in it reads; none of one without.

    Two, for it can hide a secret either way: between the characters of one, or as the only thing
    that separates it from a word.
    """
    found = [] if _is_plain(text) else [hidden.span() for hidden in _INVISIBLE.finditer(text)]
    ways = ("", " ") if found else ()
    return [_rewritten(text, ((*span, instead) for span in found)) for instead in ways]


def unescaped(text: str) -> View | None:
    """How a text reads whose escapes of printable ASCII are undone once; None = it has none."""
    found = [(*each.span(), _meant(each)) for each in _ESCAPED.finditer(text)]
    return _rewritten(text, found, is_whole=True) if found else None


def _meant(found: re.Match[str]) -> str:
    code = found["url"] or found["json"] or found["hex"]
    if code:
        number = int(code, 16)
    elif found["number"]:
        number = int(found["number"])
    else:
        return _HTML.get((found["name"] or "").lower(), "")
    return chr(number) if 0x20 < number < 0x7F else " "


def _rewritten(
    text: str, replaced: Iterable[tuple[int, int, str]], *, is_whole: bool = False
) -> View:
    """The text with these parts of it replaced, each given as begin, end and what stands there."""
    shown: list[str] = []
    origins: list[int] = []
    at = 0
    for begin, end, instead in replaced:
        shown += text[at:begin], instead
        origins += range(at, begin)
        origins += [begin] * len(instead)
        at = end
    shown.append(text[at:])
    origins += range(at, len(text) + 1)
    return View("".join(shown), origins, is_whole)


def visible(text: str) -> str:
    """``text`` without what shows nothing."""
    return text if _is_plain(text) else _INVISIBLE.sub("", text)


def _is_plain(text: str) -> bool:
    """A quick look: True = all of it shows something; of most lines it is."""
    return text.isascii() and text.isprintable() and "\\" not in text
