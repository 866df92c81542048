"""Every alert is one short line without secrets."""

import msgspec
import pytest
from tests.domain.alerts.detectors.detector_inputs import (
    EVERYTHING,
    MINUTE,
    after,
    committed,
    plan,
    refused,
    see,
    shell,
    used,
)

from subagents.domain.alerts import detectors
from subagents.domain.run.alert import AlertKind


@pytest.mark.requirement("detectors:form")
def test_every_alert_is_one_short_line_whatever_a_worker_writes() -> None:
    watch, alerts = see(*EVERYTHING)
    watch, late = after(watch, 50 * MINUTE)
    alerts += late

    kinds = {each.kind for each in alerts}
    assert kinds == set(AlertKind) - {AlertKind.BUDGET_ALERT, AlertKind.SAME_PATH}
    for each in alerts:
        assert len(each.text) <= 160
        assert "\n" not in each.text
        assert "\x1b" not in each.text
        assert "\u202e" not in each.text
        assert max(map(len, each.text.replace('"', " ").split())) <= 80
        assert all(len(str(value)) <= 200 for value in each.fields.values())


@pytest.mark.requirement("detectors:form")
def test_a_secret_in_a_command_or_message_is_in_no_alert_and_no_watch() -> None:
    secret = "sk-ant-api03-" + "a1B2" * 12
    watch, alerts = see(
        shell(f"API_KEY={secret} make deploy-test KEY={secret}", "boom", code=2),
        refused(f"invalid key {secret}"),
        committed(f"add {secret}"),
        plan((f"use {secret}", "in_progress")),
        used("Task", agents=1, team=secret),
        used("Bash", command=f"curl -H 'x-api-key: {secret}' host"),
    )
    alerts += detectors.ended(watch)[1]

    assert len(alerts) >= 4
    assert secret not in msgspec.json.encode(alerts).decode()
    assert secret not in msgspec.json.encode(watch).decode()
