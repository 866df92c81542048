"""The body of ``POST /v1/schedules``."""

from typing import Annotated

from msgspec import Meta

from subagents.api.wire.decoding import one_of
from subagents.api.wire.requests import SpecsBody, check_surroundings, with_specs
from subagents.domain.rules.parameter_checks import check_reachable
from subagents.domain.run.parameter import words
from subagents.domain.run.spec import PLAN_NAME_CHARS_MAX
from subagents.domain.schedules.schedule import NAME_CHARS_MAX, Missed, Overlap
from subagents.errors import UsageError


class ScheduleBody(SpecsBody, frozen=True, kw_only=True):
    """What to start each time, one run or the steps of a plan, and at which times."""

    name: Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
    when: str
    """Five fields of cron, an alias such as `@daily`, or `every 15m`."""
    zone: str = "UTC"
    """IANA name of the time zone in which `when` is meant; or a rule as POSIX has it in TZ."""
    overlap: Annotated[str, words(Overlap)] = "skip"
    """What a time does while runs of an earlier one have not ended."""
    missed: Annotated[str, words(Missed)] = "once"
    """What is done about times that passed while nothing could be started."""
    replace: bool = False
    """Take the place of the schedule of this name."""
    plan_name: Annotated[str, Meta(min_length=1, max_length=PLAN_NAME_CHARS_MAX)] | None = None
    """The runs are a plan of this name; needed where there are several."""


def parse_schedule(body: bytes) -> ScheduleBody:
    """The body of ``POST /v1/schedules``: specs as for a plan.

    Raises:
        UsageError: Names the field and what is allowed.
    """
    found = with_specs(body, ScheduleBody)
    check_surroundings(found.cwd, {}, {})
    one_of("overlap", found.overlap, [*Overlap])
    one_of("missed", found.missed, [*Missed])
    if found.plan_name is None and len(found.specs) > 1:
        raise UsageError(
            "planName is required: several specs are a plan", details={"field": "planName"}
        )
    if found.plan_name is not None:
        check_reachable("planName", found.plan_name, others=())
    if found.plan_name is None and found.budget is not None:
        raise UsageError("budget is for plans: give the run one", details={"field": "budget"})
    if found.plan_name is None and found.jobs is not None:
        raise UsageError("jobs is for plans: one run is alone", details={"field": "jobs"})
    return found
