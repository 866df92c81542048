"""A shell's command line, read as far as detectors need it: which programs it runs, joined how.

No expansion and no judgement: words keep their ``$NAME`` and ``$(…)`` as they were written, and
groups, loops and conditions are flattened into the commands in them. What is in a string, a
comment or a here-document is no command.

One pass over the text; what is nested deeper than ``DEPTH_MAX``, longer than ``COMMAND_CHARS_MAX``
or has more than ``STEPS_MAX`` commands is not looked at.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

COMMAND_CHARS_MAX: Final = 16_384
STEPS_MAX: Final = 200
DEPTH_MAX: Final = 16


class Joined(StrEnum):
    """By what a command follows the one before it."""

    FIRST = ""
    AND = "&&"
    OR = "||"
    THEN = ";"
    PIPE = "|"
    BESIDE = "&"


class Step(NamedTuple):
    """One simple command of a line, without assignments and redirections."""

    words: tuple[str, ...]
    joined: Joined = Joined.FIRST
    is_negated: bool = False
    """After ``!``."""
    is_hidden: bool = False
    """Some of its output goes to a file."""
    is_piped: bool = False
    """It, or the group it stands in, is read by the next program."""
    is_beside: bool = False
    """Nobody waits for it."""
    is_maybe: bool = False
    """In a loop or a condition: it ran, or not, or several times."""


_PLAIN: Final = re.compile(r"[^\s'\"\\$`;&|<>()#]+")
_HEREDOC: Final = re.compile(
    r"<<-?[ \t]{0,8}(?:'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|\\?([\w.-]{1,80}))", re.ASCII
)
_REDIRECTION: Final = re.compile(
    r"&>>?|<<<|[<>]&(?:(?:\d{1,3}|-)(?![\w./]))?|>>|>\||<>|[<>]", re.ASCII
)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w{0,200}\+?=")
_KEYWORDS: Final = frozenset(
    {"if", "then", "else", "elif", "fi", "do", "done", "while", "until", "{", "}", "time", "esac"}
)
_OPENING: Final = frozenset({"{", "if", "while", "until"})
_CLOSING: Final = frozenset({"}", "fi", "done", "esac"})
_LISTS: Final = frozenset({"for", "case", "select", "function"})
"""Their own words are no command; what they hold comes behind a separator."""


@lru_cache(maxsize=64)  # several detectors ask for the same command, one after the other
def steps_of(line: str) -> tuple[Step, ...]:
    """The commands of a line in the order they are written."""
    steps = _Reader(line[:COMMAND_CHARS_MAX]).read()
    if steps and (len(line) > COMMAND_CHARS_MAX or len(steps) >= STEPS_MAX):
        # What the line ends with is not known, so nobody's exit code is.
        steps[-1] = steps[-1]._replace(is_beside=True)
    return tuple(steps)


def here_document(word: str) -> str | None:
    """The text inside ``$(cat <<'EOF' … EOF)``, as agents write messages of several lines."""
    if not word.startswith("$("):
        return None
    found = _HEREDOC.search(word[:200])
    if found is None:
        return None
    start = word.find("\n", found.end())
    if start < 0:
        return None
    end = _heredoc_end(word, start, found[1] or found[2] or found[3])
    return word[start + 1 : end].rpartition("\n")[0]


class _Reader:
    """One pass over a line. Words are collected until a separator makes a step of them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._steps: list[Step] = []
        self._words: list[str] = []
        self._word: list[str] | None = None
        """Parts of the word being read; None between words."""
        self._is_quoted = False
        """Of the word being read: it is no keyword then, and no assignment."""
        self._joined = Joined.FIRST
        self._is_negated = False
        self._is_hidden = False
        self._heredocs: list[str] = []
        self._groups: list[tuple[int, bool]] = []
        """Where each open group begins among the steps, and whether it is a loop or condition."""
        self._closed: int | None = None
        """Where the group began that ended just now."""

    def read(self) -> list[Step]:
        while self._at < len(self._text) and len(self._steps) < STEPS_MAX:
            self._next()
        self._end_step(Joined.THEN)
        return self._steps

    def _next(self) -> None:
        text, at = self._text, self._at
        char = text[at]
        if char in " \t\r":
            self._end_word()
            self._at += 1
        elif char == "\n":
            self._end_step(Joined.THEN)
            self._at = self._behind_heredocs(at) + 1
        elif char in "'\"\\`$":
            self._read_quoted(char)
        elif char in "<>" or (char == "&" and text[at + 1 : at + 2] == ">"):
            self._read_redirection()
        elif char in ";&|":
            self._read_separator(char)
        elif char in "()":
            # A group's commands count as if they stood alone.
            self._end_word()
            if char == ")":
                self._end_step(None)
                self._close()
            else:
                self._groups.append((len(self._steps), False))
            self._at += 1
        elif char == "#" and self._word is None:
            end = text.find("\n", at)
            self._at = len(text) if end < 0 else end
        else:
            found = _PLAIN.match(text, at)
            end = found.end() if found is not None else at + 1
            self._add(text[at:end])
            self._at = end

    def _add(self, part: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(part)

    def _read_quoted(self, char: str) -> None:
        text, at = self._text, self._at
        if char == "\\":
            if text[at + 1 : at + 2] != "\n":
                self._add(text[at + 1 : at + 2])
                self._is_quoted = True
            self._at += 2
        elif char == "'":
            end = text.find("'", at + 1)
            end = len(text) if end < 0 else end
            self._add(text[at + 1 : end])
            self._is_quoted = True
            self._at = end + 1
        elif char == '"':
            end = _double_quoted_end(text, at + 1, 0)
            self._add(re.sub(r'\\([\\"$`])', r"\1", text[at + 1 : end]))
            self._is_quoted = True
            self._at = end + 1
        else:
            end = _expansion_end(text, at, 0)
            self._add(text[at:end])
            self._at = end

    def _read_redirection(self) -> None:
        heredoc = _HEREDOC.match(self._text, self._at)
        if heredoc is not None and not self._text.startswith("<<<", self._at):
            self._end_word()
            self._heredocs.append(heredoc[1] or heredoc[2] or heredoc[3])
            self._at = heredoc.end()
            return
        if self._word is not None and "".join(self._word).isdecimal():
            self._word = None  # the number of what is redirected
        self._end_word()
        found = _REDIRECTION.match(self._text, self._at)
        mark = found[0] if found is not None else self._text[self._at]
        self._at += len(mark)
        if mark[-1] in "<>&|":
            self._skip_target()
            self._is_hidden = self._is_hidden or ">" in mark

    def _skip_target(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in " \t":
            self._at += 1
        if self._text.startswith("(", self._at):  # <(…) and >(…)
            self._at = _substitution_end(self._text, self._at + 1, 0)
            return
        while self._at < len(self._text) and self._text[self._at] not in " \t\r\n;&|<>()":
            if self._text[self._at] in "'\"\\`$":
                self._read_quoted(self._text[self._at])
            else:
                self._at += 1
        self._word = None

    def _read_separator(self, char: str) -> None:
        two = self._text[self._at : self._at + 2]
        joined = {"&&": Joined.AND, "||": Joined.OR, "|&": Joined.PIPE}.get(two)
        self._at += 1 if joined is None else 2
        if joined is None:
            joined = {";": Joined.THEN, "&": Joined.BESIDE, "|": Joined.PIPE}[char]
        self._end_step(joined)

    def _end_word(self) -> None:
        if self._word is None:
            return
        word, is_quoted = "".join(self._word), self._is_quoted
        self._word, self._is_quoted = None, False
        if not self._words and word == "!":
            self._is_negated = True
        elif not self._words and not is_quoted and word in _KEYWORDS:
            if word in _OPENING:
                self._groups.append((len(self._steps), word != "{"))
            elif word in _CLOSING:
                self._close()
        elif self._words or not _ASSIGNMENT.match(word):
            self._words.append(word)

    def _close(self) -> None:
        if not self._groups:
            return
        self._closed, is_compound = self._groups.pop()
        if is_compound:
            compound = self._steps[self._closed :]
            self._steps[self._closed :] = [each._replace(is_maybe=True) for each in compound]

    def _end_step(self, behind: Joined | None) -> None:
        """Make a step of the words so far; ``behind`` None = its group ends with it."""
        self._end_word()
        words = tuple(self._words)
        self._words = []
        if words and words[0] in _LISTS:
            self._groups.append((len(self._steps), True))
            words = ()
        if words:
            step = Step(words, self._joined, self._is_negated, self._is_hidden)
            self._steps.append(step)
            self._joined = Joined.THEN
            self._closed = None
        begin = len(self._steps) - 1 if self._closed is None else self._closed
        for number in range(max(begin, 0), len(self._steps)):
            step = self._steps[number]
            if behind is Joined.PIPE:
                self._steps[number] = step._replace(is_piped=True)
            elif behind is Joined.BESIDE:
                self._steps[number] = step._replace(is_beside=True)
        if behind is not None:
            self._join(behind, is_behind=bool(words) or self._closed is not None)
            self._closed = None
        self._is_negated = self._is_hidden = False

    def _join(self, behind: Joined, *, is_behind: bool) -> None:
        """How the next step follows; ``… &&`` at the end of a line goes on in the next."""
        if not self._steps:
            self._joined = Joined.FIRST
        elif is_behind or behind is not Joined.THEN:
            self._joined = behind

    def _behind_heredocs(self, newline: int) -> int:
        at = newline
        for delimiter in self._heredocs:
            at = _heredoc_end(self._text, at, delimiter)
        self._heredocs = []
        return at


def _heredoc_end(text: str, newline: int, delimiter: str) -> int:
    """The end of the line that ends a here-document whose first line follows ``newline``."""
    found = re.compile(rf"\n[ \t]*{re.escape(delimiter)}(?=\s|\Z)").search(text, newline)
    return len(text) if found is None else found.end()


def _double_quoted_end(text: str, at: int, depth: int) -> int:
    """Where the closing quote stands, or the end of the text."""
    while at < len(text):
        char = text[at]
        if char == '"':
            return at
        if char == "\\":
            at += 2
        elif char in "$`":
            at = _expansion_end(text, at, depth)
        else:
            at += 1
    return len(text)


def _expansion_end(text: str, at: int, depth: int) -> int:
    """Behind ``$(…)``, a pair of backticks, ``${…}``, or a bare ``$``."""
    if text[at] == "`":
        end = text.find("`", at + 1)
        return len(text) if end < 0 else end + 1
    if text.startswith("$((", at):
        end = text.find("))", at)
        return len(text) if end < 0 else end + 2
    if text.startswith("$(", at):
        return _substitution_end(text, at + 2, depth)
    if text.startswith("${", at):
        end = text.find("}", at)
        return len(text) if end < 0 else end + 1
    return at + 2 if text[at + 1 : at + 2] in {"?", "$", "!", "#", "@", "*"} else at + 1


def _substitution_end(text: str, at: int, depth: int) -> int:
    """Behind the bracket that closes ``$(``; here-documents in it may hold any sign."""
    if depth >= DEPTH_MAX:
        return len(text)
    heredocs: list[str] = []
    level = 1
    while at < len(text):
        char = text[at]
        if char == "\n":
            for delimiter in heredocs:
                at = _heredoc_end(text, at, delimiter) - 1
            heredocs = []
            at += 1
        elif text.startswith("<<<", at):
            at += 3
        elif char == "<" and (found := _HEREDOC.match(text, at)) is not None:
            heredocs.append(found[1] or found[2] or found[3])
            at = found.end()
        elif char == "'":
            end = text.find("'", at + 1)
            at = len(text) if end < 0 else end + 1
        elif char == '"':
            at = _double_quoted_end(text, at + 1, depth + 1) + 1
        elif char == "\\":
            at += 2
        elif char in "$`":
            at = _expansion_end(text, at, depth + 1)
        else:
            level += {"(": 1, ")": -1}.get(char, 0)
            at += 1
            if level == 0:
                return at
    return len(text)
