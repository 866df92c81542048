"""The text of an XML file that a test runner wrote, made such that a parser takes it.

What programs print is put into reports as it is: colours, backspaces, bytes of no encoding. XML 1.0
has no way to write these, so a strict parser refuses the whole report for one letter of a log.
They stand for nothing that a check asks for, so each becomes U+FFFD. No markup can be made or
hidden so: every sign that markup is made of stays what it is.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Final

from subagents.engine.verification.work_root import FileFault
from subagents.text import one_line

UNKNOWN: Final = "\ufffd"
ENCODING_CHARS_MAX: Final = 40
_DECLARED: Final = re.compile(
    rb"<\?xml[^>]{1,100}?\bencoding\s{0,9}=\s{0,9}[\"']([A-Za-z0-9._:-]{1,80})[\"']"
)
_NO_CHAR: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_REFERENCE: Final = re.compile(r"&#(?:x([0-9A-Fa-f]{1,8})|([0-9]{1,10}));")
_REFERENCE_CHARS_MAX: Final = 14
_BY_BEGINNING: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)


def decoded(chunks: Iterable[bytes | bytearray]) -> Iterator[str]:
    """The text of a document in pieces, without what no XML may hold.

    Args:
        chunks: Its bytes; the first piece holds the whole declaration.

    Raises:
        FileFault: It declares an encoding that is not known.
    """
    decoder: codecs.IncrementalDecoder | None = None
    kept = ""
    for chunk in chunks:
        if decoder is None:
            decoder = codecs.getincrementaldecoder(_encoding(bytes(chunk[:256])))("replace")
        text = _NO_CHAR.sub(UNKNOWN, kept + decoder.decode(bytes(chunk)))
        # A reference may go on in the next piece.
        begun = text.rfind("&", max(len(text) - _REFERENCE_CHARS_MAX, 0))
        end = len(text) if begun < 0 or ";" in text[begun:] else begun
        kept = text[end:]
        yield _REFERENCE.sub(_allowed, text[:end])
    if decoder is not None:
        yield kept + _NO_CHAR.sub(UNKNOWN, decoder.decode(b"", final=True))


def _encoding(beginning: bytes) -> str:
    for mark, name in _BY_BEGINNING:
        if beginning.startswith(mark):
            return name
    declared = _DECLARED.match(beginning)
    name = "utf-8" if declared is None else declared[1].decode()
    try:
        codecs.lookup(name)
        # Programs that write a string of theirs to a file declare what the string was in memory.
        return name if b"<?xml".decode(name, "replace") == "<?xml" else "utf-8"
    except (LookupError, ValueError) as error:
        shown = one_line(name, ENCODING_CHARS_MAX)
        raise FileFault(f"is not valid XML: its encoding {shown} is not known") from error


def _allowed(reference: re.Match[str]) -> str:
    code = int(reference[1], 16) if reference[1] else int(reference[2])
    if code > 0x10FFFF or _NO_CHAR.match(chr(code)):
        return UNKNOWN
    return reference[0]
