"""The runs that a run has to know of: those it waits for and those it spawned.

There may be ten thousand, and each of them changes its record a few times. So a record is found by
its run's id, what is asked at every change is counted and summed up as it changes, and a change
copies two short tuples, not the whole list. See docs/decisions/0063.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import add, sub
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar, overload

import msgspec

from subagents.domain.run.outcome import Outcome
from subagents.domain.run.usage import Committed, Spent, Usage
from subagents.domain.run.values import RunId, Value, replace
from subagents.domain.run.workspace import BranchLeft

CHUNK: Final = 128
"""How many records share a tuple: about the root of long lists, where a change copies least."""

UNIT: Final = 1 << 1074
"""Amounts are added up as whole numbers of the smallest float's, so that no sum is rounded on the
way: it is the same in whatever order its parts came, changed and were read from the disk."""


class LinkedRun(Value, frozen=True):
    """Another run, as far as this one must know it; ``outcome`` is None until it is settled."""

    run_id: RunId
    label: str
    outcome: Outcome | None = None
    result: str | None = None


class Dependency(LinkedRun, frozen=True):
    """A run this one waits for."""

    left: BranchLeft | None = None
    """What a run with a worktree changed there; None = nothing, or it had none."""


class Child(LinkedRun, frozen=True):
    """A run this one spawned."""

    told: bool = False
    """Its result reached this run's agent or result text."""
    returned_in: tuple[int, int] | None = None
    """The attempt and turn whose worker was handed the result, and has not acknowledged it."""
    spent: Spent = Spent()
    """What it and everything below it used, as it reported last."""
    committed: Committed = Committed()
    judges: int | None = None
    """The attempt of this run that it judges; None = this run's agent spawned it."""


L = TypeVar("L", bound=LinkedRun)


class LinkedRuns(Generic[L]):
    """Records of other runs, in the order they came: an immutable sequence that finds by id.

    What is in a place stays the record of the same run, so all that came of one list by changes
    and additions share one index. Where two lists grew out of one, the second has its own.
    """

    __slots__ = ("_chunks", "_length", "_places", "active")

    def __init__(self, runs: Iterable[L] = ()) -> None:
        every = tuple(runs)
        self._length = len(every)
        self._chunks = tuple(every[at : at + CHUNK] for at in range(0, self._length, CHUNK))
        self._places = {each.run_id: place for place, each in enumerate(every)}
        self.active = sum(each.outcome is None for each in every)
        """How many are not settled yet."""

    def get(self, run_id: str) -> L | None:
        """The record of that run; None = there is none."""
        place = self._place(run_id)
        return None if place is None else self[place]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[L]:
        return chain.from_iterable(self._chunks)

    @overload
    def __getitem__(self, at: int) -> L: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[L, ...]: ...
    def __getitem__(self, at: int | slice) -> L | tuple[L, ...]:
        if isinstance(at, slice):
            return tuple(self[each] for each in range(*at.indices(self._length)))
        number, place = divmod(range(self._length)[at], CHUNK)
        return self._chunks[number][place]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, type(self)) and self._chunks == other._chunks

    def __hash__(self) -> int:
        return hash(self._chunks)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"

    def _place(self, run_id: str) -> int | None:
        place = self._places.get(run_id)  # type: ignore[call-overload]  # str on the wire, RunId here
        # The index knows what was added to later lists, too.
        return None if place is None or place >= self._length else place

    def _places_of(self, run_id: str) -> Iterable[int]:
        """All of them: a list of dependencies may name the same run twice."""
        if len(self._places) < self._length:
            return [place for place, each in enumerate(self) if each.run_id == run_id]
        place = self._place(run_id)
        return () if place is None else (place,)

    def _changed(self, place: int, value: L) -> Self:
        """With this record in the place of the one that was there."""
        number, at = divmod(place, CHUNK)
        chunk = self._chunks[number]
        new = object.__new__(type(self))
        new._chunks = (
            *self._chunks[:number],
            (*chunk[:at], value, *chunk[at + 1 :]),
            *self._chunks[number + 1 :],
        )
        new._length, new._places = self._length, self._places
        new.active = self.active - (chunk[at].outcome is None) + (value.outcome is None)
        return new

    def _added(self, value: L) -> Self:
        """With one more record behind the others."""
        new = object.__new__(type(self))
        if self._length % CHUNK:
            new._chunks = (*self._chunks[:-1], (*self._chunks[-1], value))
        else:
            new._chunks = (*self._chunks, (value,))
        new._length = self._length + 1
        new._places = self._places
        # Another list grew out of this one already, or the same run is in it twice.
        if len(self._places) != self._length or value.run_id in self._places:
            new._places = {each.run_id: at for at, each in enumerate(self)}
        # Shared with the list before, which looks at no place behind its own end.
        new._places[value.run_id] = self._length
        new.active = self.active + (value.outcome is None)
        return new


class Dependencies(LinkedRuns[Dependency]):
    """The runs that a run waits for, in the order in which they were asked for."""

    __slots__ = ()

    def settled(
        self, run_id: str, outcome: Outcome, result: str | None, left: BranchLeft | None = None
    ) -> Self:
        """With the end of one of them; the list itself when that was known."""
        new = self
        for place in self._places_of(run_id):
            if (each := self[place]).outcome is None:
                new = new._changed(place, replace(each, outcome=outcome, result=result, left=left))
        return new


Sums: TypeAlias = tuple[int, ...]
"""What children used, of how many of them each amount is known, and what they may come to; in the
order of the fields, a cost in ``UNIT``."""
_USED: Final = Usage.__struct_fields__
_MOST: Final = Committed.__struct_fields__
_NAMES: Final = (*_USED, *("",) * (len(_USED) + 2), *_MOST)
_COST: Final = "cost_usd"


def _sums(child: Child) -> Sums:
    """Those of one child alone."""
    spent, most = child.spent, child.committed
    return (
        *(_whole(name, getattr(spent, name) or 0) for name in _USED),
        *(getattr(spent, name) is not None for name in _USED),
        *(spent.runs, spent.cost_unknown_runs),
        *(_whole(name, getattr(most, name)) for name in _MOST),
    )


def _whole(name: str, amount: float) -> int:
    if name != _COST:
        return int(amount)
    numerator, denominator = amount.as_integer_ratio()
    return numerator * (UNIT // denominator)


def _summed_up(sums: Sums) -> tuple[Spent, Committed]:
    """What all of them used, and may come to; an amount that none of them knows is None."""
    found: list[Any] = [
        each / UNIT if name == _COST else each for name, each in zip(_NAMES, sums, strict=True)
    ]
    used = zip(_USED, found, sums[len(_USED) :], strict=False)
    spent = {name: each if is_known else None for name, each, is_known in used}
    runs, unknown = sums[2 * len(_USED) : -len(_MOST)]
    most = dict(zip(_MOST, found[-len(_MOST) :], strict=True))
    return Spent(**spent, runs=runs, cost_unknown_runs=unknown), Committed(**most)


class Children(LinkedRuns[Child]):
    """The runs that a run spawned, in the order of their spawns."""

    __slots__ = ("committed", "spent", "sums", "untold_number")

    spent: Spent
    """What all of them used together; an amount that none of them knows is None."""
    committed: Committed
    """The most that all of them together may come to."""
    sums: Sums
    """What both are made from: the same object until a child reports something else."""

    def __init__(self, runs: Iterable[Child] = ()) -> None:
        super().__init__(runs)
        self.untold_number = sum(not each.told for each in self)
        """How many have a result, or will, that reached neither the agent nor the run's result."""
        self.sums = tuple(map(sum, zip((0,) * len(_NAMES), *map(_sums, self), strict=True)))
        self.spent, self.committed = _summed_up(self.sums)

    @property
    def untold(self) -> tuple[Child, ...]:
        """Those whose results reached neither the run's agent nor its own result."""
        return tuple(each for each in self if not each.told) if self.untold_number else ()

    def added(self, child: Child) -> Self:
        """With one more."""
        new = self._added(child)
        new.untold_number = self.untold_number + (not child.told)
        new.sums = tuple(map(add, self.sums, _sums(child)))
        new.spent, new.committed = _summed_up(new.sums)
        return new

    # Each of these returns the list itself when nothing changes.

    def settled(self, run_id: str, outcome: Outcome, result: str | None) -> Self:
        """With the end of one that is active."""
        child = self.get(run_id)
        if child is None or child.outcome is not None:
            return self
        return self._put(replace(child, outcome=outcome, result=result))

    def told(self, run_ids: Iterable[str]) -> Self:
        """With those as children whose results reached the run's agent, or its result."""
        new = self
        for run_id in run_ids:
            child = new.get(run_id)
            if child is not None and not child.told:
                new = new._put(replace(child, told=True))
        return new

    def told_to_nobody(self) -> Self:
        """With all but judges as children whose results did not arrive."""
        return type(self)(replace(child, told=child.judges is not None) for child in self)

    def returned(self, run_id: str, place: tuple[int, int]) -> Self:
        """With the attempt and turn to which the result of one that ended went out."""
        child = self.get(run_id)
        if child is None or child.outcome is None or child.told or child.returned_in == place:
            return self
        return self._put(replace(child, returned_in=place))

    def reported(self, run_id: str, spent: Spent, committed: Committed) -> Self:
        """With what one that is active, and all below it, used and may come to."""
        child = self.get(run_id)
        if child is None or child.outcome is not None:
            return self
        if child.spent == spent and child.committed == committed:
            return self
        return self._put(replace(child, spent=spent, committed=committed))

    def _put(self, child: Child) -> Self:
        place = self._places[child.run_id]
        before = self[place]
        new = self._changed(place, child)
        new.untold_number = self.untold_number - (not before.told) + (not child.told)
        if before.spent is child.spent and before.committed is child.committed:
            new.sums, new.spent, new.committed = self.sums, self.spent, self.committed
        else:
            others = map(sub, self.sums, _sums(before))
            new.sums = tuple(map(add, others, _sums(child)))
            new.spent, new.committed = _summed_up(new.sums)
        return new


def as_list(value: object) -> object:
    """How lists of other runs are written down: as JSON lists, as they always were."""
    # NotImplementedError is what msgspec expects of a hook for anything else.
    if isinstance(value, LinkedRuns):
        return list(value)
    raise NotImplementedError(f"{type(value).__name__} is not written down")


def from_list(kind: type, found: object) -> object:
    """The reverse of ``as_list``."""
    if kind is Children:
        return Children(msgspec.convert(found, list[Child]))
    if kind is Dependencies:
        return Dependencies(msgspec.convert(found, list[Dependency]))
    raise NotImplementedError(f"{kind.__name__} is not read")
