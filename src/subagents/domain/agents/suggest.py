"""Which agent fits a task? A ranking with its reasons; pure, and it never starts anything.

Every point given has its reason in words, so that the caller can disagree. Agents without a
capability card take part with what is known of them.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from subagents.domain.agents.agent_stats import Rate, Stats
from subagents.domain.run.values import Value

COST_TIERS: Final = ("free", "cheap", "medium", "expensive")

TAG_WANTED: Final = 4.0
TAG_IN_HINT: Final = 3.0
WORD: Final = 1.0
WORDS_MAX: Final = 4
COST: Final = 2.0
"""Points for the tier that was asked for; each tier dearer costs as much, cheaper ones get half."""
RECORD: Final = 2.0
"""Points for an agent that surely always succeeds, and off for one that surely never does."""
QUEUED: Final = 0.5
"""Points off for each run in front, at most four times."""

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


class Candidate(Value, frozen=True):
    """What is known of one agent."""

    agent_id: str
    description: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    cost_tier: str | None = None
    record: Stats | None = None
    """What its ended attempts came to."""
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
    fit, reasons = 0.0, []
    own = {tag.casefold().strip(): tag for tag in candidate.tags}
    matched = sorted(own[tag] for tag in wanted & own.keys())
    if matched:
        fit += TAG_WANTED * len(matched)
        reasons.append(f"has the tags: {', '.join(matched)}")
    named = sorted(own[tag] for tag in own.keys() - wanted if _mentions(words, _words(tag)))
    if named:
        fit += TAG_IN_HINT * len(named)
        reasons.append(f"the hint names its tags: {', '.join(named)}")
    text = _words(f"{candidate.agent_id} {candidate.description} {candidate.notes}")
    shared = sorted(word for word in words if _mentions(text, {word}))[:WORDS_MAX]
    if shared:
        fit += WORD * len(shared)
        reasons.append(f"its description has: {', '.join(shared)}")
    cost, of_cost = _cost(candidate.cost_tier, cost_tier)
    record, of_record = _record(candidate.record)
    load, of_load = _load(candidate.queued)
    # What it says of itself counts as far as it can still be believed.
    score = (fit + max(cost, 0.0)) * _belief(candidate.record) + min(cost, 0.0) + record + load
    reasons += filter(None, (of_cost, of_record, of_load))
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


def _record(stats: Stats | None) -> tuple[float, str]:
    """What is sure for it counts for it, what is sure against it counts against it: few say little.

    Both ends of the interval of its successes: an agent that is new stands between one that is
    known to be good and one that is known to lie.
    """
    if stats is None or stats.success is None:
        return 0.0, ""
    success = stats.success
    return RECORD * success.low - RECORD * (1 - success.high), record_text(stats)


def _belief(stats: Stats | None) -> float:
    """The best that its record allows to hope for: 1 for a new agent."""
    return 1.0 if stats is None or stats.success is None else stats.success.high


def record_text(stats: Stats) -> str:
    """``0 of 20 runs verified (0–16 %)``; empty when nothing says something of the agent."""
    success, verified = stats.success, stats.verified
    if success is None:
        return ""
    what = "runs" if stats.runs == stats.attempt_count else "attempts"
    if verified is None:
        return f"{_of(success)} {what} ok{_span(success)}, without a contract"
    if verified.n == success.n:
        return f"{_of(verified)} {what} verified{_span(verified)}"
    return f"{_of(success)} {what} ok{_span(success)}, {_of(verified)} verified"


def _of(rate: Rate) -> str:
    return f"{rate.count} of {rate.n}"


def _span(rate: Rate) -> str:
    return f" ({rate.low * 100:.0f}–{rate.high * 100:.0f} %)"


def _load(queued: int) -> tuple[float, str]:
    return -QUEUED * min(queued, 4), f"{queued} runs wait for it" if queued else ""
