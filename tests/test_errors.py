"""The errors people meet: stable codes, exit codes of the specification, one wire form."""

import pytest

from subagents import errors
from subagents.errors import Forbidden, IllegalTransition, SubagentsError

CODES = {
    "SubagentsError": ("error", 1, False),
    "UsageError": ("invalid", 2, False),
    "ConfigError": ("config_invalid", 2, False),
    "ContractError": ("contract_invalid", 2, False),
    "NotFound": ("not_found", 3, False),
    "Forbidden": ("forbidden", 4, False),
    "RateLimited": ("rate_limited", 4, True),
    "Unauthorized": ("unauthorized", 4, False),
    "Conflict": ("conflict", 1, False),
    "AlreadyAnswered": ("already_answered", 1, False),
    "IdempotencyConflict": ("idempotency_conflict", 1, False),
    "IllegalTransition": ("illegal_transition", 1, False),
    "Unavailable": ("unavailable", 7, True),
    "DaemonUnreachable": ("daemon_unreachable", 7, True),
    "Elsewhere": ("elsewhere", 7, True),
    "NodeOver": ("node_over", 7, True),
    "NodeUnreachable": ("node_unreachable", 7, True),
    "Fenced": ("fenced", 7, True),
    "StoreUnavailable": ("store_unavailable", 1, True),
    "RuntimeUnavailable": ("runtime_unavailable", 1, True),
    "OutcomeUnknown": ("outcome_unknown", 7, False),
    "AlreadyRunning": ("already_running", 1, False),
    "CorruptState": ("corrupt_state", 1, False),
}


@pytest.mark.requirement("errors:stable")
def test_every_error_keeps_its_code_exit_code_and_retryability() -> None:
    found = {
        name: (kind.code, kind.exit_code, kind.retryable)
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, SubagentsError)
    }

    assert found == CODES


@pytest.mark.requirement("errors:stable")
def test_an_error_is_one_document_on_every_interface() -> None:
    error = Forbidden("too deep", guardrail="depth", hint="raise it")

    assert error.to_wire() == {
        "code": "forbidden",
        "message": "too deep",
        "details": {"guardrail": "depth"},
        "retryable": False,
        "hint": "raise it",
    }
    illegal = IllegalTransition("r-1", "queued", "Archived")
    assert str(illegal) == "run r-1 in phase queued cannot take Archived"
