"""What a receipt says of how its session hears of the end."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from subagents.api.answers.waking import NOT_WOKEN, Waker, wake
from subagents.domain.run.values import SessionKey

DESK = "agent:main:desk"


def said(courier: str | None, waker: Waker | None = None, *, resumes: bool | None = None) -> str:
    deliveries = SimpleNamespace(courier_of=lambda _session: courier)
    engine = SimpleNamespace(deliveries=deliveries)
    requester = None
    if resumes is not None:
        requester = SimpleNamespace(
            resolved=SimpleNamespace(abilities=SimpleNamespace(resume=resumes))
        )
    services = cast(Any, SimpleNamespace(engine=engine))
    return wake(services, SessionKey(DESK), cast(Any, requester), waker)


@pytest.mark.requirement("tools:spawn:wake")
def test_a_session_outside_is_woken_by_its_task_a_courier_or_the_hook_or_not_at_all() -> None:
    assert "MCP task" in said("webhook", Waker.TASK)
    assert "courier webhook" in said("webhook", Waker.HOOK)
    assert "hook" in said(None, Waker.HOOK)
    assert said(None) == NOT_WOKEN
    assert "sessions_wait" in NOT_WOKEN


@pytest.mark.requirement("tools:spawn:wake")
def test_a_worker_hears_in_its_turn_or_in_another_one_or_not_at_all() -> None:
    assert "into your turn" in said("steer", resumes=True)
    assert "another" in said(None, resumes=True)
    assert said(None, resumes=False) == NOT_WOKEN
