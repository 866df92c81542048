r"""Files of ``NAME=VALUE`` lines, as python-dotenv reads them, where others read the same.

There is no standard for these files. What each line here comes to is what python-dotenv makes of
it (https://saurabh-kumar.com/python-dotenv/reference/): quotes are taken off, ``#`` behind a blank
begins a comment, escapes are read within double quotes alone, a quoted value may have several
lines, and ``${NAME}`` is replaced. Where Compose, a shell or another version would make something
else of a line that looks as if it meant that, it is refused: a value that changes silently is found
days later.

One thing is different: ``NAME`` alone is passed on, as with docker. python-dotenv leaves it as it
is, which in the program that loads the file is the same.

Not the package itself: it skips lines that it cannot read with a line in a log, takes time with the
square of a value's blanks, and its patch releases change what it makes of backslashes and comments.
The tests compare with it.
"""

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from subagents.errors import UsageError

CHARS_MAX: Final = 256 * 1024
_BLANK: Final = " \t"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXPORT: Final = re.compile(r"export[ \t]+")
_SINGLE: Final = re.compile(r"'([^']*)'")
_DOUBLE: Final = re.compile(r'"((?:\\.|[^"\\])*)"', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {
    "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r",
    "t": "\t", "v": "\v",
}  # fmt: skip
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}$]*))?\}")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")


class _Value(NamedTuple):
    text: str
    end: int
    """The position after it and its closing quote."""


def variables_of(
    text: str, environ: Mapping[str, str], *, where: str, chars_max: int = CHARS_MAX
) -> Iterator[tuple[str, str]]:
    """The variables of a file in its order; the last one of a name counts.

    Args:
        text: Of the file, without a byte order mark.
        environ: What ``NAME`` alone and ``${NAME}`` are looked up in; for the latter, the lines
            above are stronger.
        where: The file, for messages.
        chars_max: Of all names and values: each line can be twice the one above.

    Raises:
        UsageError: Names the line and what to write instead; nothing of the line is in it.
    """
    reader = _Reader(text, where)
    known: dict[str, str] = {}
    seen = ChainMap(known, dict(environ))
    left = chars_max
    while reader.is_at_statement():
        name = reader.name()
        if reader.ends_here():
            if name not in environ:
                raise reader.refusal(
                    "a name alone passes on the variable of your shell, which has none of it",
                    "write NAME=VALUE; a value of several lines is put in quotes",
                )
            value = environ[name]
        else:
            value = reader.value(seen, chars_max=left)
        left -= len(name) + len(value)
        if left < 0:
            raise reader.refusal(f"up to here all values are more than {chars_max:,} characters")
        known[name] = value
        yield name, value


class _Reader:
    """Goes through the text statement by statement."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        self._at = 0
        self._line = 1
        """Where the statement begins."""
        self._counted = 0
        self._left = 0
        """Characters that references may still make of a value."""

    def refusal(self, why: str, hint: str | None = None) -> UsageError:
        return UsageError(f"{self._where}:{self._line}: {why}", hint=hint)

    def is_at_statement(self) -> bool:
        """Go to the next one, over empty lines and comments; False = there is none."""
        while self._at < len(self._text):
            self._blanks()
            if self._text.startswith("#", self._at):
                self._at = self._line_end()
            if not self._at_line_end():
                break
            self._next_line()
        self._line += len(_LINE_END.findall(self._text, self._counted, self._at))
        self._counted = self._at
        return self._at < len(self._text)

    def name(self) -> str:
        """The name, and the blanks behind it."""
        if found := _EXPORT.match(self._text, self._at):
            self._at = found.end()
        found = _NAME.match(self._text, self._at)
        if found is None:
            raise self.refusal(
                "it does not begin with the name of a variable",
                "write NAME=VALUE, with a NAME of letters, digits and _, or begin it with #",
            )
        self._at = found.end()
        self._blanks()
        if not self._text.startswith(("=", "#"), self._at) and not self._at_line_end():
            raise self.refusal(
                "there is no = behind the name of a variable",
                "write NAME=VALUE; a value of several lines is put in quotes",
            )
        return found[0]

    def ends_here(self) -> bool:
        """Whether it was a name alone."""
        return not self._text.startswith("=", self._at)

    def value(self, environ: Mapping[str, str], *, chars_max: int) -> str:
        """What stands behind the ``=``, which is here."""
        self._left = chars_max
        self._at += 1
        has_blank = self._blanks()
        quote = self._text[self._at : self._at + 1]
        if quote == "'":
            return self._single()
        if quote == '"':
            return self._replaced(self._double(), environ)
        line = self._text[self._at : self._line_end()]
        self._at += len(line)
        if has_blank and line.startswith("#"):
            return ""
        # By the character before it: a pattern for all blanks takes time with their square.
        value = re.split(r"(?<=[ \t])#", line, maxsplit=1)[0].rstrip(_BLANK)
        if value != re.split(r"(?<=\s)#", line, maxsplit=1)[0].strip():
            raise self.refusal(
                "a value has a blank that is no space at its end or before a #",
                "put the value in quotes, or take the character out",
            )
        return self._replaced(value, environ)

    def _single(self) -> str:
        found = _SINGLE.match(self._text, self._at)
        value = "" if found is None else found[1]
        if value.endswith("\\") or "\\\\" in value:
            raise self.refusal(
                "a backslash before a quote or another backslash, in single quotes, is read in"
                " two ways",
                'in double quotes \\\\ is a backslash and \\" a quote',
            )
        if "${" in value:
            raise self.refusal(
                "a ${ in single quotes is replaced by some programs and kept by others",
                "give this variable by --env NAME='VALUE'",
            )
        return self._closed(None if found is None else _Value(value, found.end()))

    def _double(self) -> str:
        found = _DOUBLE.match(self._text, self._at)
        if found is None:
            return self._closed(None)
        if any(each not in _ESCAPES for each in _ESCAPE.findall(found[1])):
            raise self.refusal(
                "in double quotes a backslash stands before something that is no escape",
                "\\\\ is a backslash; in single quotes it needs no other",
            )
        text = _ESCAPE.sub(lambda match: _ESCAPES[match[1]], found[1])
        return self._closed(_Value(text, found.end()))

    def _closed(self, value: _Value | None) -> str:
        if value is None:
            raise self.refusal("a quote is not closed", 'close it; within itself it is \\"')
        self._at = value.end
        self._blanks()
        if self._text.startswith("#", self._at):
            self._at = self._line_end()
        if not self._at_line_end():
            raise self.refusal(
                "something stands behind the closing quote",
                'a quote within double quotes is \\"; a comment begins with #',
            )
        return value.text

    def _replaced(self, value: str, environ: Mapping[str, str]) -> str:
        def found(match: re.Match[str]) -> str:
            text = environ.get(match[1], match[2])
            if text is None:
                raise self.refusal(
                    "a ${NAME} is set neither in the lines above nor in your shell",
                    "${NAME:-VALUE} has a value of its own; a plain ${ is given by --env",
                )
            self._left -= len(text)
            if self._left < 0:
                raise self.refusal("its references make more of it than a process may be given")
            return text

        if "${" in _REFERENCE.sub("", value):
            raise self.refusal(
                "a ${ is neither ${NAME} nor ${NAME:-VALUE}",
                "a plain ${ is given by --env NAME='VALUE'",
            )
        return _REFERENCE.sub(found, value)

    def _blanks(self) -> bool:
        start = self._at
        while self._text[self._at : self._at + 1] in tuple(_BLANK):
            self._at += 1
        return self._at > start

    def _at_line_end(self) -> bool:
        return self._text[self._at : self._at + 1] in {"", "\n", "\r"}

    def _line_end(self) -> int:
        found = _LINE_END.search(self._text, self._at)
        return len(self._text) if found is None else found.start()

    def _next_line(self) -> None:
        found = _LINE_END.match(self._text, self._at)
        self._at = len(self._text) if found is None else found.end()
