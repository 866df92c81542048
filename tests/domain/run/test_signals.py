"""What runtimes see of an attempt, as it is stored and as it is judged."""

import msgspec
import pytest

from subagents.domain.run.run import Exit, Progress
from subagents.domain.run.signals import (
    TERMINAL,
    Exited,
    ProgressSeen,
    ResultSeen,
    Signal,
    ToolSeen,
    UsageSeen,
    Vanished,
)
from subagents.domain.run.usage import Usage


@pytest.mark.requirement("journal:names")
@pytest.mark.parametrize(
    ("stored", "signal"),
    [
        (
            b'{"type":"Exited","key":"k","exit":{"signal":9},"drained":false,"stderrTail":"oops"}',
            Exited(key="k", exit=Exit(signal=9), drained=False, stderr_tail="oops"),
        ),
        (
            (
                b'{"type":"ResultSeen","key":"k","text":"done","bytesTotal":9,"isLimit":true,'
                b'"retryAfterMs":50}'
            ),
            ResultSeen(key="k", text="done", bytes_total=9, is_limit=True, retry_after_ms=50),
        ),
        (
            b'{"type":"UsageSeen","key":"k","usage":{"tokensIn":1,"costUsd":0.5}}',
            UsageSeen(key="k", usage=Usage(tokens_in=1, cost_usd=0.5)),
        ),
        (
            b'{"type":"ProgressSeen","key":"k","progress":{"phase":"p"},"isPaced":false}',
            ProgressSeen(key="k", progress=Progress(phase="p"), is_paced=False),
        ),
        (b'{"type":"ToolSeen","key":"k","name":"Bash"}', ToolSeen(key="k", name="Bash")),
        (b'{"type":"Vanished","key":"k","error":"gone"}', Vanished(key="k", error="gone")),
    ],
)
def test_a_signal_is_stored_under_its_name_and_read_back_as_it_was(
    stored: bytes, signal: Signal
) -> None:
    assert msgspec.json.decode(stored, type=Signal) == signal
    assert msgspec.json.encode(signal) == stored


@pytest.mark.requirement("signals:terminal")
def test_only_an_exit_and_a_disappearance_say_that_the_worker_is_gone() -> None:
    assert isinstance(Exited(key="k", exit=Exit(code=0), drained=True), TERMINAL)
    assert isinstance(Vanished(key="k", error="gone"), TERMINAL)
    assert not isinstance(ResultSeen(key="k", text="done"), TERMINAL)
