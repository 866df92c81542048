"""The export of spans: to a real receiver over HTTP, from a real store, at least once."""

import json
import logging
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.builders import Life, a_resolved
from tests.otlp_receiver import Receiver, receiver
from tests.stored_lives import StoredLives

from subagents.domain.run.outcome import DeliveryFailed
from subagents.domain.run.run import Run
from subagents.domain.run.signals import ToolSeen
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import RunId
from subagents.extensions.telemetry import span_export
from subagents.extensions.telemetry.otlp import OtlpSender
from subagents.extensions.telemetry.span_export import CURSOR_FILE, NoExport, SpanExport
from subagents.extensions.telemetry.spans import spans_of
from subagents.extensions.telemetry.trace_ids import Lineage
from subagents.followers import journal_export
from subagents.ports import Batch

BOUND_S = 60.0


class Place(StoredLives):
    """A store, a receiver, and exports of the one to the other."""

    def __init__(self, root: Path, to: Receiver) -> None:
        super().__init__(root)
        self.receiver = to
        self.file = root / CURSOR_FILE
        self._runs = 0

    def export(self, *, content: bool = False) -> SpanExport:
        sender = OtlpSender(
            self.receiver.endpoint,
            headers={"X-Api-Key": "k1"},
            service_name="fleet",
            version="1.2",
        )
        found = SpanExport(
            store=self.store,
            sender=sender,
            file=self.file,
            describe=lambda agent: f"the {agent}",
            content=content,
        )
        found.retry_first_s = 0.05
        return found

    def end_run(self, *, tools: int = 0, settle: bool = True) -> Run:
        """One run from spawn to its end, as the ledger would have written it."""
        self._runs += 1
        run_id = RunId(f"r-{self._runs:010}")
        life = Life.begin(RunSpec(task="secret plan"), a_resolved(), run_id=run_id).start()
        for number in range(tools):
            life.signal(ToolSeen(key=f"t{number}", name="Bash"))
        life.result("secret result").exit()
        if settle:
            life.deliver().clean_up()
        self.write(life)
        return life.run

    def cursor(self) -> int:
        return int(json.loads(self.file.read_text())["number"])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with receiver() as to:
        made = Place(tmp_path, to)
        yield made
        made.store.close()


def until(is_so: Callable[[], bool]) -> None:
    due = time.monotonic() + BOUND_S
    while not is_so():
        assert time.monotonic() < due
        time.sleep(0.01)


@pytest.mark.requirement("telemetry:otlp")
def test_what_ends_arrives_at_the_receiver_as_opentelemetry_says(place: Place) -> None:
    sending = place.export()
    sending.start()
    run = place.end_run(tools=1)
    sending.on_commit(Batch(runs={run.id: run}))
    until(lambda: len(place.receiver.spans) == 2)
    sending.stop()

    attempt, tool = place.receiver.spans
    expected = spans_of(run, (), Lineage(root=run.id))[0]
    assert (attempt.trace_id, attempt.span_id) == (expected.trace_id, expected.span_id)
    assert (attempt.name, attempt.parent_id, attempt.kind) == ("invoke_agent worker", None, 3)
    assert (attempt.start_ms, attempt.end_ms) == (expected.start_ms, expected.end_ms)
    assert attempt.attributes["gen_ai.agent.description"] == "the worker"
    assert attempt.resource["service.name"] == "fleet"
    assert attempt.resource["service.version"] == "1.2"
    assert (tool.name, tool.parent_id) == ("execute_tool Bash", attempt.span_id)
    assert place.receiver.paths == ["/v1/traces"]
    assert place.receiver.headers[0]["x-api-key"] == "k1"
    assert "secret" not in repr(place.receiver.spans)
    assert sending.state.sent == 2


@pytest.mark.requirement("telemetry:from-now-on")
def test_the_first_export_begins_with_what_ends_from_then_on(place: Place) -> None:
    place.end_run()
    sending = place.export()
    sending.start()
    sending.stop()

    assert place.receiver.spans == []
    assert place.cursor() == place.store.newest_number()
    assert stat.S_IMODE(place.file.stat().st_mode) == 0o600


@pytest.mark.requirement("telemetry:no-loss")
def test_what_ended_while_nobody_exported_is_sent_by_the_next_one(place: Place) -> None:
    first = place.export()
    first.start()
    first.stop()
    runs = [place.end_run() for _ in range(3)]

    second = place.export()
    second.start()
    until(lambda: len(place.receiver.spans) == 3)
    second.stop()
    third = place.export()
    third.start()
    third.stop()

    assert [each.attributes["subagents.run.id"] for each in place.receiver.spans] == [
        run.id for run in runs
    ]
    assert place.cursor() == place.store.newest_number()


@pytest.mark.requirement("telemetry:same-ids")
def test_killed_between_sending_and_noting_it_sends_the_same_again(place: Place) -> None:
    sending = place.export()
    sending.start()
    sending.stop()
    before = place.file.read_bytes()
    place.end_run(tools=2)
    again = place.export()
    again.start()
    until(lambda: len(place.receiver.spans) == 3)
    again.stop()

    place.file.write_bytes(before)
    third = place.export()
    third.start()
    until(lambda: len(place.receiver.spans) == 6)
    third.stop()

    assert place.receiver.spans[:3] == place.receiver.spans[3:]


@pytest.mark.requirement("telemetry:receiver-down")
def test_a_receiver_that_is_down_loses_nothing_and_is_spoken_of_once(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="subagents")
    place.receiver.status = 503
    sending = place.export()
    sending.start()
    run = place.end_run()
    sending.on_commit(Batch(runs={run.id: run}))
    until(lambda: sending.state.last_error is not None)
    stays = place.cursor()
    second = place.end_run()
    place.receiver.status = 200
    sending.on_commit(Batch(runs={second.id: second}))
    until(lambda: len(place.receiver.spans) == 2)
    until(lambda: sending.state.last_error is None)
    sending.stop()

    assert stays < place.cursor() == place.store.newest_number()
    said = [each.message for each in caplog.records if each.name.startswith("subagents")]
    assert len([each for each in said if "cannot be sent" in each]) == 1
    assert len([each for each in said if "are sent to" in each and "again" in each]) == 1


@pytest.mark.requirement("telemetry:receiver-down")
def test_a_receiver_that_will_never_take_them_holds_up_no_later_ones(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.receiver.status = 400
    sending = place.export()
    sending.start()
    run = place.end_run()
    sending.on_commit(Batch(runs={run.id: run}))
    until(lambda: sending.state.refused == 1)
    place.receiver.status = 200
    second = place.end_run()
    sending.on_commit(Batch(runs={second.id: second}))
    until(lambda: sending.state.sent == 1)
    sending.stop()

    assert "refused 1 spans: 400" in caplog.text
    assert [each.attributes["subagents.run.id"] for each in place.receiver.spans] == [second.id]


@pytest.mark.requirement("telemetry:receiver-down")
def test_a_stop_does_not_wait_for_a_receiver_that_is_not_there(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_export, "STOP_S", 10 * BOUND_S)
    sending = place.export()
    sending.start()
    place.receiver.down()
    run = place.end_run()
    sending.on_commit(Batch(runs={run.id: run}))
    until(lambda: sending.state.last_error is not None)
    sending.stop()
    sending.stop()

    place.receiver.up()
    later = place.export()
    later.start()
    until(lambda: len(place.receiver.spans) == 1)
    later.stop()


@pytest.mark.requirement("telemetry:ended-only")
def test_a_run_whose_end_is_not_delivered_yet_is_sent_when_it_is(place: Place) -> None:
    sending = place.export()
    sending.start()
    life = Life.begin(run_id=RunId("r-0000000009")).start().exit()
    place.write(life)
    other = place.end_run()
    sending.on_commit(Batch(runs={other.id: other}))
    until(lambda: place.cursor() == place.store.newest_number())
    assert [each.attributes["subagents.run.id"] for each in place.receiver.spans] == [other.id]

    life.deliver(DeliveryFailed(retryable=False, error="gone"))
    place.write(life)
    sending.on_commit(Batch(runs={life.run.id: life.run}))
    until(lambda: len(place.receiver.spans) == 2)
    sending.stop()

    assert place.receiver.spans[1].attributes["subagents.run.id"] == life.run.id
    assert "delivery" in place.receiver.spans[1].events


@pytest.mark.requirement("telemetry:bounded")
def test_many_spans_go_in_several_requests_of_bounded_size(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_export, "SPANS_AT_ONCE", 10)
    monkeypatch.setattr(journal_export, "FEED_PAGE", 7)
    monkeypatch.setattr(span_export, "JOURNAL_PAGE", 5)
    sending = place.export()
    sending.start()
    place.end_run(tools=24)
    run = place.end_run(tools=3)
    sending.on_commit(Batch(runs={run.id: run}))
    until(lambda: len(place.receiver.spans) == 29)
    sending.stop()

    assert len(place.receiver.by_id()) == len(place.receiver.spans) == 29
    assert len(place.receiver.paths) >= 3


@pytest.mark.requirement("telemetry:off")
def test_what_ends_while_no_receiver_is_configured_is_never_sent(place: Place) -> None:
    first = place.export()
    first.start()
    first.stop()
    NoExport(place.file).start()
    place.end_run()

    assert not place.file.exists()
    assert NoExport(place.file).state is None
    second = place.export()
    second.start()
    second.stop()
    assert place.receiver.spans == []


@pytest.mark.requirement("telemetry:no-loss")
def test_a_cursor_that_cannot_be_read_is_said_and_the_export_begins_anew(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.file.write_text("{")
    place.end_run()
    sending = place.export()
    sending.start()
    sending.stop()

    assert "cannot be read" in caplog.text
    assert place.cursor() == place.store.newest_number()


@pytest.mark.requirement("telemetry:content-off")
def test_with_content_the_task_and_the_result_are_sent_too(place: Place) -> None:
    sending = place.export(content=True)
    sending.start()
    run = place.end_run()
    sending.on_commit(Batch(runs={run.id: run}))
    until(lambda: len(place.receiver.spans) == 1)
    sending.stop()

    (span,) = place.receiver.spans
    assert "secret plan" in span.attributes["gen_ai.input.messages"]
    assert "secret result" in span.attributes["gen_ai.output.messages"]
