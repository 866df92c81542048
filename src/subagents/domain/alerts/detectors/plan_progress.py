"""A worker's plan: which items it began and finished since it last wrote it.

Items are known by their words. One whose words changed in its place is the same item, so that a
plan that is worded better, sorted or added to is no news.
"""

from collections.abc import Sequence
from typing import Final

from subagents.domain.alerts.detectors.alert_wording import FIELD_CHARS_MAX, shown
from subagents.domain.alerts.detectors.detector_state import PlanMark, Watch, checksum
from subagents.domain.run.alert import Alert, AlertKind
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import PlanItem, PlanStatus

ITEMS_MAX: Final = 100
NEWS_MAX: Final = 4
"""The most news from one writing of a plan; of more, the newest are reported and the rest is
counted."""
_RANK: Final = {PlanStatus.PENDING: 0, PlanStatus.IN_PROGRESS: 1, PlanStatus.COMPLETED: 2}


def look(watch: Watch, plan: Sequence[PlanItem], *, key: str) -> tuple[Watch, list[Alert]]:
    """Compare a plan with the one before; only its first ``ITEMS_MAX`` items count.

    ``key`` is that of the first alert; more of them have a number behind it.
    """
    items = [each for each in plan[:ITEMS_MAX] if each.text.strip()]
    marks = tuple(PlanMark(checksum(_known_by(each.text)), each.status) for each in items)
    if marks == watch.plan or not marks:
        # An emptied plan is put away; when it is written again nothing of it is news.
        return watch, []
    before = _statuses_before(watch.plan, marks)
    news = [
        (number, each)
        for number, (each, mark) in enumerate(zip(items, marks, strict=True))
        if _RANK[each.status] > _RANK[before.get(mark.text, PlanStatus.PENDING)]
    ]
    # What is done is news before what is begun: a worker often writes both at once.
    news.sort(key=lambda found: -_RANK[found[1].status])
    left_out = max(len(news) - NEWS_MAX, 0)
    alerts = []
    for count, (number, item) in enumerate(news[left_out:], 1):
        more = f" (and {left_out} more)" if left_out and count == 1 else ""
        each_key = key if count == 1 else f"{key}.{count}"
        alerts.append(_alert(item, _progress(items, number), more, each_key))
    return replace(watch, plan=marks), alerts


def _statuses_before(old: Sequence[PlanMark], new: Sequence[PlanMark]) -> dict[int, PlanStatus]:
    """By the words of the new items: the status each had in the old plan."""
    before = {mark.text: mark.status for mark in old}
    if len(old) != len(new):
        return before
    named = {mark.text for mark in new}
    for was, now in zip(old, new, strict=True):
        if now.text not in before and was.text not in named:
            before[now.text] = was.status  # the same item in other words
    return before


def _progress(items: Sequence[PlanItem], number: int) -> str:
    """``2/5``: of what is done or begun, this is the second."""
    status = items[number].status
    ahead = sum(_RANK[each.status] > _RANK[status] for each in items)
    alike = sum(each.status is status for each in items[: number + 1])
    return f"{ahead + alike}/{len(items)}"


def _alert(item: PlanItem, progress: str, more: str, key: str) -> Alert:
    done = " ✅" if item.status is PlanStatus.COMPLETED else ""
    return Alert(
        kind=AlertKind.TASK_MILESTONE,
        text=f"📋 [{progress}] {shown(item.text)}{done}{more}",
        key=key,
        fields={
            "task": shown(item.text, FIELD_CHARS_MAX),
            "status": item.status.value,
            "progress": progress,
        },
    )


def _known_by(text: str) -> str:
    return " ".join(text.split()).casefold()
