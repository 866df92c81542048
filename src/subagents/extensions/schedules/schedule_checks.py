"""What ``doctor`` says of schedules."""

from collections.abc import Iterator

from subagents.api.wire.schedule_answers import SchedulePage
from subagents.api.wire.wire_struct import read
from subagents.cli.doctor_check import OK, WARN, Check
from subagents.client.client import Document
from subagents.config.paths import Paths


def checks(_home: Paths, found: Document | None) -> Iterator[Check]:
    """Whether the newest time of each started nothing because its work was refused."""
    for each in read({"schedules": (found or {}).get("schedules") or []}, SchedulePage).schedules:
        newest = each.times[0] if each.times else None
        if newest is not None and newest.decision == "refused":
            fix = f"mend that, then try it: subagents schedule run-now {each.name}"
            yield Check("schedule", WARN, f"{each.name}: {newest.text}", fix)
        elif each.next_at is None and each.paused_at is None:
            text = f"{each.name}: never due again: {each.when} in zone {each.zone}"
            yield Check("schedule", WARN, text, "add it again, with --replace, WHEN and --zone")
        else:
            yield Check("schedule", OK, f"{each.name}: next {each.next_at or 'paused'}")
