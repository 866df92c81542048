"""Which agent fits a task? A ranking with its reasons; pure, and it never starts anything.

Every point given is said in words, so that whoever asked can disagree. Agents without a
capability card take part with what is known of them.

Source: 4-observability §7; 3-tools ``agents_list``.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from subagents.domain.values import Value

COST_TIERS: Final = ("free", "cheap", "medium", "expensive")

TAG_WANTED: Final = 4.0
TAG_IN_HINT: Final = 3.0
WORD: Final = 1.0
WORDS_MAX: Final = 4
COST: Final = 2.0
"""For the tier that was asked for; each tier dearer costs as much, cheaper ones get half."""
RECORD: Final = 2.0
"""For an agent that always succeeds; half as much is neutral, as for one without a record."""
QUEUED: Final = 0.5
"""Off for each run in front, at most four times."""

_WORD: Final = re.compile(r"\w{3,}")
_COMMON: Final = frozenset(
    {
        *("agent", "all", "and", "any", "are", "but", "can", "for", "from", "has", "have", "how"),
        *("into", "its", "make", "must", "not", "our", "please", "run", "should", "some", "task"),
        *("than", "that", "the", "their", "then", "this", "use", "using", "was", "what", "when"),
        *("where", "which", "who", "will", "with", "work", "you", "your"),
    }
)
"""Say nothing of the work."""


class Record(Value, frozen=True):
    """How an agent's newest runs ended; by status, cancelled ones apart."""

    ok: int = 0
    partial: int = 0
    error: int = 0
    timeout: int = 0
    lost: int = 0
    cancelled: int = 0

    @property
    def judged(self) -> int:
        """Runs that say something of the agent: a cancelled one says something of the caller."""
        return self.ok + self.partial + self.error + self.timeout + self.lost


class Candidate(Value, frozen=True):
    """What is known of one agent."""

    agent_id: str
    description: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    cost_tier: str | None = None
    record: Record = Record()
    queued: int = 0


class Suggestion(NamedTuple):
    agent_id: str
    score: float
    reasons: tuple[str, ...]


def suggest(
    candidates: Iterable[Candidate],
    *,
    hint: str = "",
    tags: Sequence[str] = (),
    cost_tier: str | None = None,
) -> tuple[Suggestion, ...]:
    """The candidates, best first; equal ones in alphabetical order.

    Args:
        candidates: Agents the requester may spawn.
        hint: The work in words.
        tags: What the agent should be good at.
        cost_tier: One of ``COST_TIERS``: what it may cost.
    """
    words = _words(hint)
    wanted = frozenset(tag.casefold().strip() for tag in tags)
    found = [_judge(each, words, wanted, cost_tier) for each in candidates]
    return tuple(sorted(found, key=lambda each: (-each.score, each.agent_id)))


def _judge(
    candidate: Candidate, words: frozenset[str], wanted: frozenset[str], cost_tier: str | None
) -> Suggestion:
    score, reasons = 0.0, []
    own = {tag.casefold().strip(): tag for tag in candidate.tags}
    matched = sorted(own[tag] for tag in wanted & own.keys())
    if matched:
        score += TAG_WANTED * len(matched)
        reasons.append(f"has the tags: {', '.join(matched)}")
    named = sorted(own[tag] for tag in own.keys() - wanted if _mentions(words, _words(tag)))
    if named:
        score += TAG_IN_HINT * len(named)
        reasons.append(f"the hint names its tags: {', '.join(named)}")
    text = _words(f"{candidate.agent_id} {candidate.description} {candidate.notes}")
    shared = sorted(word for word in words if _mentions(text, {word}))[:WORDS_MAX]
    if shared:
        score += WORD * len(shared)
        reasons.append(f"its description has: {', '.join(shared)}")
    for points, reason in (
        _cost(candidate.cost_tier, cost_tier),
        _record(candidate.record),
        _load(candidate.queued),
    ):
        score += points
        if reason:
            reasons.append(reason)
    return Suggestion(candidate.agent_id, round(score, 2), tuple(reasons))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _COMMON


def _mentions(text: Iterable[str], words: Iterable[str]) -> bool:
    """Whether one of the words is in the text, in some form: ``tests`` for ``test``."""
    # Forms of a word begin alike, so most pairs need no closer look: there can be a million.
    alike: dict[str, list[str]] = {}
    for word in words:
        alike.setdefault(word[:1], []).append(word)
    return any(_same(here, word) for here in text for word in alike.get(here[:1], ()))


def _same(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if long in {short, f"{short}s", f"{short}es"}:
        return True
    stem = short[:-1] if len(short) >= 6 else short
    return len(short) >= 4 and len(long) - len(short) <= 3 and long.startswith(stem)


def _cost(own: str | None, asked: str | None) -> tuple[float, str]:
    if asked is None or own not in COST_TIERS or asked not in COST_TIERS:
        return 0.0, ""
    dearer = COST_TIERS.index(own) - COST_TIERS.index(asked)
    if dearer > 0:
        return -COST * dearer, f"costs more than {asked}: {own}"
    return (COST, f"cost tier {own}") if dearer == 0 else (COST / 2, f"cheaper than {asked}: {own}")


def _record(record: Record) -> tuple[float, str]:
    if record.judged == 0:
        return RECORD / 2, ""
    # The lower end of a 95 % interval (Wilson): one lucky run is no record.
    n, z = record.judged, 1.96
    rate = record.ok / n
    centre = rate + z * z / (2 * n)
    spread = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low, high = (centre - spread) / (1 + z * z / n), (centre + spread) / (1 + z * z / n)
    return RECORD * (low + high) / 2, f"ok in {record.ok} of its last {n} runs"


def _load(queued: int) -> tuple[float, str]:
    return -QUEUED * min(queued, 4), f"{queued} runs wait for it" if queued else ""
