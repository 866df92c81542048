"""Rules that are broken: each one must be caught."""

import itertools
from typing import Any

import pytest
from tests.simulation.mutation_table import mutation, nothing, wrap

from subagents.domain.lifecycle import accounting, conclusion, turns
from subagents.domain.lifecycle import reduce as lifecycle
from subagents.domain.rules import deadlines
from subagents.domain.rules import delivery_policy as routing
from subagents.domain.rules.budgets import reservations
from subagents.domain.run import spending
from subagents.domain.run.effects import Transition
from subagents.domain.run.events import CancelWithdrawn
from subagents.domain.run.run import Attempt, Run, Steer
from subagents.domain.run.usage import Amounts
from subagents.domain.run.values import replace
from subagents.domain.text import announcement


@mutation
def announces_again_with_every_try(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def again(run: Run, at_ms: int) -> Transition:
            step: Transition = original(run, at_ms)
            return step._replace(messages=(announcement.announcement(run, consumed=False),))

        return again

    wrap(patch, conclusion, "announce_again", make)


@mutation
def takes_late_events_for_errors(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lifecycle, "STALE", frozenset())


@mutation
def forgets_planned_stops(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deadlines, "_deadlines", deadlines._of_phase)


@mutation
def stops_what_is_to_be_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(lifecycle.REACTIONS, CancelWithdrawn, lambda run, _: Transition(run))


@mutation
def does_not_count_retries(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def conclude(run: Run, *rest: Any) -> Transition:
            step: Transition = original(run, *rest)
            return step._replace(
                run=replace(step.run, retry=replace(step.run.retry, used=run.retry.used))
            )

        return conclude

    wrap(patch, lifecycle, "conclude", make)


@mutation
def tells_its_requester_no_totals(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(accounting, "_told", lambda step, _found: step)


@mutation
def spawns_without_looking_at_budgets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reservations, "check", nothing)


@mutation
def forgets_what_is_held(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spending, "held", lambda _run: Amounts())


@mutation
def retries_without_budget(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def again(run: Run, *rest: Any, **more: Any) -> Transition:
            unbounded = replace(run, budget=replace(run.budget, stop=None))
            step: Transition = original(unbounded, *rest, **more)
            return step._replace(run=replace(step.run, budget=run.budget))

        return again

    wrap(patch, conclusion, "_try_again", make)


@mutation
def starts_after_failed_dependencies(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lifecycle, "_is_usable", lambda *_: True)


@mutation
def remembers_what_is_in_no_event(patch: pytest.MonkeyPatch) -> None:
    count = itertools.count()

    def make(original: Any) -> Any:
        def settle(*given: Any) -> Transition:
            step: Transition = original(*given)
            questions = replace(step.run.questions, notices=next(count))
            return step._replace(run=replace(step.run, questions=questions))

        return settle

    wrap(patch, conclusion, "settle", make)


@mutation
def pushes_nested_results_outside(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def route(run: Run) -> routing.Route:
            lineage = replace(run.lineage, requester_run=None)
            return original(replace(run, lineage=lineage))  # type: ignore[no-any-return]

        return route

    wrap(patch, routing, "route", make)


@mutation
def forgets_what_a_worker_was_told(patch: pytest.MonkeyPatch) -> None:
    def steered(run: Run, steers: tuple[Steer, ...]) -> Run:
        return replace(run, control=replace(run.control, steers=steers))

    patch.setattr(lifecycle, "steered", steered)


@mutation
def puts_in_what_a_worker_began_with(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def first(*given: Any) -> Attempt:
            return replace(original(*given), steers_before=0)  # type: ignore[no-any-return]

        return first

    wrap(patch, turns, "first", make)
