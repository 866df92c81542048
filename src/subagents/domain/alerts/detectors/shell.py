"""A shell's command line, read as far as detectors need it: its commands, joined how.

Nothing is expanded: words keep their ``$NAME`` and ``$(…)`` as they were written, and groups, loops
and conditions are flattened into the commands in them. What is in a string, a comment or a
here-document is no command. One pass over the text; longer lines and deeper nesting are not read.
"""

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

COMMAND_CHARS_MAX: Final = 16_384
STEPS_MAX: Final = 200
DEPTH_MAX: Final = 16

Joined: TypeAlias = Literal["", "&&", "||", ";", "|", "&"]
"""The operator between a command and the one before it; "" = it is the first one."""


class Step(NamedTuple):
    """One simple command of a line, without assignments and redirections."""

    words: tuple[str, ...]
    joined: Joined = ""
    is_negated: bool = False
    """It follows a ``!``."""
    is_hidden: bool = False
    """Some of its output goes to a file."""
    is_piped: bool = False
    """It, or the group it stands in, is read by the next program."""
    is_beside: bool = False
    """The line goes on without waiting for it."""
    is_maybe: bool = False
    """It stands in a loop or a condition: it ran, or not, or several times."""


_HEREDOC: Final = r"<<-?[ \t]{0,8}(?:'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|\\?([\w.-]{1,80}))"
_TOKEN: Final = re.compile(
    rf"""(?P<space>[ \t\r]+|\\\n|(?<![^\s;&|()])\#[^\n]*)
    |(?P<heredoc>{_HEREDOC})
    |(?P<duplicate>(?:(?<![^\s;&|()])\d{{1,3}})?[<>]&(?:\d{{1,3}}|-)(?![\w./]))
    |(?P<nested>[<>]\(|\$\(|\$\{{|["`])
    |(?P<redirect>(?:(?<![^\s;&|()])\d{{1,3}})?(?:&>>?|<<<|[<>]&|>>|>\||<>|[<>]))
    |(?P<operator>&&|\|\||\|&|[;&|\n()])
    |(?P<quoted>'[^']*'?|\\.?)
    |(?P<plain>\$[?$!\#@*]?|[^\s'"\\$`;&|<>()]+|.)""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w{0,200}\+?=", re.ASCII)
_OPENING: Final = {"{": False, "if": True, "while": True, "until": True}
"""Whether what is inside may not run."""
_CLOSING: Final = frozenset({"}", "fi", "done", "esac"})
_KEYWORDS: Final = frozenset({*_OPENING, *_CLOSING, "then", "else", "elif", "do", "time"})
_LISTS: Final = frozenset({"for", "case", "select", "function"})
"""Their own words are no command; what they hold comes behind a separator."""


@lru_cache(maxsize=64)  # several detectors ask for the same command, one after the other
def steps_of(line: str) -> tuple[Step, ...]:
    """The commands of a line in the order they are written."""
    steps = _Reader(line[:COMMAND_CHARS_MAX]).read()
    if steps and (len(line) > COMMAND_CHARS_MAX or len(steps) >= STEPS_MAX):
        # What the line ends with is not known, so the exit code belongs to no known command.
        steps[-1] = steps[-1]._replace(is_beside=True)
    return tuple(steps)


def here_document(word: str) -> str | None:
    """The text inside ``$(cat <<'EOF' … EOF)``, as agents write messages of several lines."""
    found = re.search(_HEREDOC, word[:200], re.ASCII) if word.startswith("$(") else None
    start = -1 if found is None else word.find("\n", found.end())
    if found is None or start < 0:
        return None
    end = _heredoc_end(word, start, found[1] or found[2] or found[3])
    return word[start + 1 : end].rpartition("\n")[0]


class _Reader:
    """Collects words until a separator makes a step of them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._steps: list[Step] = []
        self._words: list[str] = []
        self._word: str | None = None
        """What there is of a word; None between words."""
        self._is_quoted = False
        """A part of that word was quoted: it is no keyword then, and no assignment."""
        self._is_target = False
        """The next word is where output goes."""
        self._joined: Joined = ""
        self._is_negated = False
        self._is_hidden = False
        self._groups: list[tuple[int, bool]] = []
        """Where each open group begins among the steps, and whether it may not run."""
        self._closed: int | None = None
        """Where the group began that ended just now."""

    def read(self) -> list[Step]:
        text, at = self._text, 0
        heredocs: list[str] = []
        while at < len(text) and len(self._steps) < STEPS_MAX:
            token = _TOKEN.match(text, at)
            assert token is not None  # noqa: S101 - the last form takes any character
            begin, at, piece = at, token.end(), token[0]
            match token.lastgroup:
                case "nested":
                    at = _closing(text, at, piece)
                    part, is_string = text[begin:at], piece == '"'
                    if is_string:
                        part = re.sub(r'\\([\\"$`])', r"\1", part[1:].removesuffix('"'))
                    self._add(part)
                    self._is_quoted = self._is_quoted or is_string
                case "quoted":
                    self._add(piece[1:].removesuffix("'") if piece[0] == "'" else piece[1:])
                    self._is_quoted = True
                case "plain":
                    self._add(piece)
                case "operator":
                    self._end(piece)
                    for name in heredocs if piece == "\n" else ():
                        at = _heredoc_end(text, at - 1, name)
                    heredocs = [] if piece == "\n" else heredocs
                case kind:
                    self._end_word()
                    if kind == "heredoc":
                        heredocs.append(next(each for each in token.groups()[2:5] if each))
                    self._is_target = self._is_target or kind == "redirect"
                    self._is_hidden = self._is_hidden or (kind == "redirect" and ">" in piece)
        self._end(";")
        return self._steps

    def _add(self, part: str) -> None:
        self._word = (self._word or "") + part

    def _end(self, operator: str) -> None:
        if operator == "(":  # a group's commands count as if they stood alone
            self._end_word()
            self._groups.append((len(self._steps), False))
        elif operator == ")":
            self._end_step(None)
            self._close()
        else:
            same: dict[str, Joined] = {"&&": "&&", "||": "||", "|": "|", "|&": "|", "&": "&"}
            self._end_step(same.get(operator, ";"))

    def _end_word(self) -> None:
        word, is_quoted, is_target = self._word, self._is_quoted, self._is_target
        if word is None:
            return
        self._word, self._is_quoted, self._is_target = None, False, False
        if is_target:
            return
        if not self._words and word == "!":
            self._is_negated = True
        elif not self._words and not is_quoted and word in _KEYWORDS:
            if word in _OPENING:
                self._groups.append((len(self._steps), _OPENING[word]))
            elif word in _CLOSING:
                self._close()
        elif self._words or not ASSIGNMENT.match(word):
            self._words.append(word)

    def _close(self) -> None:
        if self._groups:
            self._closed, is_maybe = self._groups.pop()
            if is_maybe:
                self._mark(self._closed, is_maybe=True)

    def _mark(self, begin: int, **flags: bool) -> None:
        self._steps[begin:] = [each._replace(**flags) for each in self._steps[begin:]]  # type: ignore[arg-type]

    def _end_step(self, behind: Joined | None) -> None:
        """Make a step of the words so far; ``behind`` None = its group ends with it."""
        self._end_word()
        words, self._words = tuple(self._words), []
        if words and words[0] in _LISTS:
            self._groups.append((len(self._steps), True))
            words = ()
        if words:
            self._steps.append(Step(words, self._joined, self._is_negated, self._is_hidden))
            self._joined, self._closed = ";", None
        begin = max(len(self._steps) - 1, 0) if self._closed is None else self._closed
        if behind == "|":
            self._mark(begin, is_piped=True)
        elif behind == "&":
            self._mark(begin, is_beside=True)
        if behind is not None:
            # ``… &&`` at the end of a line continues in the next one.
            if self._steps and (words or self._closed is not None or behind != ";"):
                self._joined = behind
            self._closed = None
        self._is_negated = self._is_hidden = self._is_target = False


def _heredoc_end(text: str, newline: int, name: str) -> int:
    """The end of the line that ends a here-document whose first line follows ``newline``."""
    found = re.compile(rf"\n[ \t]*{re.escape(name)}(?=\s|\Z)").search(text, newline)
    return len(text) if found is None else found.end()


def _closing(text: str, at: int, opened: str, depth: int = 0) -> int:
    """Behind the sign that closes what was opened just before ``at``."""
    if opened in {"`", "${"} or depth >= DEPTH_MAX:
        end = text.find("`" if opened == "`" else "}", at) if depth < DEPTH_MAX else -1
        return len(text) if end < 0 else end + 1
    if opened == "$(" and text.startswith("(", at):  # $((…)) may hold any sign
        end = text.find("))", at)
        return len(text) if end < 0 else end + 2
    heredocs: list[str] = []
    while at < len(text):
        token = _TOKEN.match(text, at)
        char, kind = text[at], "" if token is None else token.lastgroup
        if char == ('"' if opened == '"' else ")"):
            return at + 1
        if char == "\\":
            at += 2
        elif char in "$`" and kind == "nested" and token is not None:
            at = _closing(text, token.end(), token[0], depth + 1)
        elif opened == '"' or token is None:
            at += 1
        elif char in '("':
            at = _closing(text, at + 1, char, depth + 1)
        else:
            at = token.end()
            if kind == "heredoc":
                heredocs.append(next(each for each in token.groups()[2:5] if each))
            for name in heredocs if char == "\n" else ():
                at = _heredoc_end(text, at - 1, name)
            heredocs = [] if char == "\n" else heredocs
    return len(text)
