"""Read a regular expression before it is used: what must a text contain, how long can it take?

The library that searches can be told to stop, but that costs more than most lines do. And it looks
at every line, where finding a word costs a hundredth. So a pattern is read first:

* Words of which every matching text has one. Lines without them are never looked at.
* A bound for the steps on a text of some length. What surely ends soon needs no clock.
* Repetitions at its edges that find nothing more: ``\\w+x`` finds what ``\\wx`` finds, without
  trying each letter of each word.

Only what is surely understood is read. Of everything else ``plan`` says None.
"""

import string
from typing import Final, NamedTuple

_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HEX_DIGITS: Final = {"x": 2, "u": 4, "U": 8}
_CLASSES: Final = frozenset("dswDSW")
_EDGES: Final = frozenset("AZbB")
_FLAGS: Final = frozenset("ims")
_SPECIAL: Final = frozenset("*+?{}]")
_PLAIN_ESCAPES: Final = frozenset(string.punctuation + " ")
_ALTERNATIVES_MAX: Final = 8
_DEPTH_MAX: Final = 30
_REPEAT_MAX: Final = 1000
_TWINNED: Final = frozenset("kKsSiI")
"""ASCII letters that, without regard to case, other letters than their own pair match."""


class Plan(NamedTuple):
    """What is known of a pattern."""

    reduced: str
    """Is found in the same texts."""
    literals: tuple[str, ...]
    """A matching text contains at least one of them; empty = nothing is known."""
    is_exact: bool
    """A text that contains one of them matches."""
    ignores_case: bool
    """``literals`` are lower case, and meant so: ASCII without ``_TWINNED``."""
    choices: int | None
    """At most so many steps from each place of a text, besides ``loops``; None = more."""
    loops: int
    """Unbounded repetitions of one character: each has a choice for each character of a text."""
    is_anchored: bool
    """It can match at the beginning of a text only."""

    def steps(self, chars: int) -> float:
        """At most about so many on a text of that length."""
        if self.choices is None:
            return float("inf")
        steps = float(self.choices + chars if self.is_anchored else self.choices * chars)
        for number in range(1, self.loops + 1):
            steps *= max(chars / number, 1)
        return steps


class Redundant(Exception):
    """``(a+)+``: a repetition of nothing but a repetition; ``a+`` says the same in less time."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class _Unread(Exception):
    """Something in the pattern is not known here."""


class _Needs(NamedTuple):
    """Words of which a text must contain one."""

    words: frozenset[str] = frozenset()
    is_exact: bool = False

    @property
    def worth(self) -> int:
        return min(map(len, self.words), default=0)


class _Cost(NamedTuple):
    """See ``Plan``."""

    choices: int | None = 1
    loops: int = 0


class _Atom(NamedTuple):
    """One thing that can be repeated."""

    text: str
    literal: str | None = None
    needs: _Needs = _Needs()
    cost: _Cost = _Cost()
    is_one_char: bool = False
    repeats_only: bool = False
    """It is a group that holds nothing but one unbounded repetition."""


class _Item(NamedTuple):
    atom: _Atom
    low: int = 1
    high: int | None = 1
    suffix: str = ""

    @property
    def text(self) -> str:
        return self.atom.text + self.suffix

    @property
    def is_once(self) -> bool:
        return (self.low, self.high) == (1, 1)

    @property
    def is_loop(self) -> bool:
        """Unbounded, and able to give back."""
        is_possessive = len(self.suffix) > 1 and self.suffix.endswith("+")
        return self.high is None and not is_possessive

    @property
    def cost(self) -> _Cost:
        choices, loops = self.atom.cost
        if self.is_once or choices is None:
            return self.atom.cost
        if not self.atom.is_one_char:
            # The turns of a group can share a text in many ways; only "at most once" is simple.
            return _Cost(choices + 1, loops) if self.high == 1 else _Cost(None)
        if self.high is None:
            return _Cost(1, 1)
        return _Cost(1 + self.high - self.low)


class _Branches(NamedTuple):
    text: str
    needs: _Needs
    cost: _Cost
    is_one_loop: bool
    is_anchored: bool


def plan(pattern: str) -> Plan | None:
    """What is known of ``pattern``, which compiles; None = nothing.

    Raises:
        Redundant: It repeats a repetition.
    """
    try:
        reader = _Reader(pattern)
        found = reader.whole()
    except _Unread:
        return None
    needs = found.needs
    if reader.ignores_case:
        words = frozenset(map(_caseless, needs.words))
        needs = _Needs(words) if all(words) else _Needs()
    return Plan(
        reduced=f"{reader.flags}{found.text}",
        literals=tuple(sorted(needs.words)),
        is_exact=needs.is_exact,
        ignores_case=reader.ignores_case,
        choices=found.cost.choices,
        loops=found.cost.loops,
        is_anchored=found.is_anchored and "m" not in reader.flags,
    )


def _caseless(word: str) -> str:
    """The longest piece of it whose upper and lower case are plain; may be empty."""
    plain = "".join(c if c.isascii() and c not in _TWINNED else "\0" for c in word)
    return max(plain.lower().split("\0"), key=len)


class _Reader:
    """Reads from left to right; whatever it does not know ends it."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0
        self.flags = self._leading_flags()
        self.ignores_case = "i" in self.flags

    def _leading_flags(self) -> str:
        end = self._pattern.find(")")
        flags = self._pattern[2:end]
        if not self._pattern.startswith("(?") or end < 0 or not flags or set(flags) - _FLAGS:
            return ""
        self._at = end + 1
        return self._pattern[: self._at]

    def whole(self) -> _Branches:
        found = self._branches()
        if self._at < len(self._pattern):
            raise _Unread
        return found

    # -- what stands here --------------------------------------------------------------------

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise _Unread
        self._at += 1
        return char

    def _taken(self, text: str) -> bool:
        found = self._pattern.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    # -- from the outside in -----------------------------------------------------------------

    def _branches(self) -> _Branches:
        sequences = [self._sequence()]
        while self._taken("|"):
            sequences.append(self._sequence())
        if self._depth == 0:
            sequences = [_without_edges(each) for each in sequences]
        needs = [_needs_of(each) for each in sequences]
        words = frozenset[str]().union(*(each.words for each in needs))
        if not all(each.words for each in needs) or len(words) > _ALTERNATIVES_MAX:
            words = frozenset()
        items = sequences[0]
        return _Branches(
            "|".join("".join(item.text for item in each) for each in sequences),
            _Needs(words, is_exact=bool(words) and all(each.is_exact for each in needs)),
            _cost_of(sequences),
            len(sequences) == 1
            and len(items) == 1
            and (items[0].is_loop or (items[0].atom.repeats_only and items[0].is_once)),
            all(each and each[0].atom.text in {"^", "\\A"} for each in sequences),
        )

    def _sequence(self) -> list[_Item]:
        items = []
        while self._peek() not in {"", "|", ")"}:
            began = self._at
            item = self._repeated(self._atom())
            if item.is_loop and item.atom.repeats_only:
                raise Redundant(began)
            items.append(item)
        return items

    def _repeated(self, atom: _Atom) -> _Item:
        began = self._at
        bounds: tuple[int, int | None] = (1, 1)
        match self._peek():
            case "*":
                bounds = (0, None)
            case "+":
                bounds = (1, None)
            case "?":
                bounds = (0, 1)
            case "{":
                bounds = self._counts()
            case _:
                return _Item(atom)
        self._at += 1
        if self._peek() in {"?", "+"}:
            self._at += 1
        return _Item(atom, *bounds, self._pattern[began : self._at])

    def _counts(self) -> tuple[int, int | None]:
        """Of ``{2,3}``; leaves the last character to be taken."""
        end = self._pattern.find("}", self._at)
        low, comma, high = self._pattern[self._at + 1 : end].partition(",")
        if end < 0 or not (low + high).isdecimal() or not (low + high).isascii():
            raise _Unread
        self._at = end
        least = int(low or 0)
        most = None if comma and not high else int(high or low)
        if max(least, most or 0) > _REPEAT_MAX:
            raise _Unread
        return least, most

    def _atom(self) -> _Atom:
        match self._peek():
            case "(":
                return self._group()
            case "[":
                return self._set()
            case "\\":
                return self._escape()
        char = self._take()
        if char in _SPECIAL:
            raise _Unread
        if char in "^$":
            return _Atom(char)
        return _Atom(char, None if char == "." else char, is_one_char=True)

    def _escape(self) -> _Atom:
        began = self._at
        self._at += 1
        char = self._take()
        if char in _EDGES:
            return _Atom(f"\\{char}")
        literal = None if char in _CLASSES else self._escaped(char)
        return _Atom(self._pattern[began : self._at], literal, is_one_char=True)

    def _escaped(self, char: str) -> str:
        """The character that ``\\`` and ``char`` stand for, inside and outside of sets."""
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in _HEX_DIGITS:
            digits = self._pattern[self._at : self._at + _HEX_DIGITS[char]]
            self._at += len(digits)
            if set(digits) <= set(string.hexdigits) and int(digits, 16) < 0x110000:
                return chr(int(digits, 16))
        if char in _PLAIN_ESCAPES:
            return char
        raise _Unread

    def _set(self) -> _Atom:
        started = self._at
        self._at += 1
        self._taken("^")
        first = self._at
        while (char := self._take()) != "]" or self._at == first + 1:
            # Some of these doubled are operators to some.
            if char == "[" or (char in "&|~-" and self._peek() == char):
                raise _Unread
            if char == "\\":
                escaped = self._take()
                if escaped not in _CLASSES and escaped != "b":
                    self._escaped(escaped)
        return _Atom(self._pattern[started : self._at], is_one_char=True)

    def _group(self) -> _Atom:
        is_plain = self._taken("(?:")
        opening = "(?:" if is_plain else "("
        if not is_plain:
            self._at += 1
            if self._peek() == "?":
                raise _Unread
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise _Unread
        inside = self._branches()
        self._depth -= 1
        if not self._taken(")"):
            raise _Unread
        return _Atom(
            f"{opening}{inside.text})",
            needs=inside.needs,
            cost=inside.cost,
            repeats_only=inside.is_one_loop,
        )


def _without_edges(items: list[_Item]) -> list[_Item]:
    """A match that begins with a repetition also begins at its last turn, and may end at its first.

    What comes between looks at places in the text, not at where the match began: no look-around or
    reference is read here.
    """
    reduced = list(items)
    for edge in (0, -1):
        if reduced and reduced[edge].atom.is_one_char and reduced[edge].is_loop:
            item = reduced.pop(edge)
            kept = [_Item(item.atom)] * item.low
            reduced = [*kept, *reduced] if edge == 0 else [*reduced, *kept]
    return reduced


def _needs_of(items: list[_Item]) -> _Needs:
    """The longest words that all matches of a sequence contain."""
    if len(items) == 1 and items[0].is_once and items[0].atom.literal is None:
        return items[0].atom.needs
    found = [_Needs()]
    run = ""
    for item in items:
        literal = item.atom.literal
        if literal is None or item.low == 0:
            found.append(_word(run))
            run = ""
            if item.low:
                found.append(_Needs(item.atom.needs.words))
        elif item.is_once:
            run += literal
        else:
            # So many of it follow, and perhaps more: what comes then follows the last of them.
            found.append(_word(run + literal * item.low))
            run = literal
    if items and all(item.atom.literal is not None and item.is_once for item in items):
        return _Needs(frozenset((run,)), is_exact=True)
    return max(*found, _word(run), key=lambda each: each.worth)


def _word(run: str) -> _Needs:
    return _Needs(frozenset((run,))) if run else _Needs()


def _cost_of(sequences: list[list[_Item]]) -> _Cost:
    """The choices of a sequence multiply, those of branches add up."""
    total, most_loops = 0, 0
    for items in sequences:
        choices, loops = 1 + sum(max(item.low, 1) for item in items), 0
        for item in items:
            cost = item.cost
            if cost.choices is None:
                return _Cost(None)
            choices *= cost.choices
            loops += cost.loops
        total += choices
        most_loops = max(most_loops, loops)
    return _Cost(total, most_loops)
