"""Secrets of workers: who is asked for them, and what is said when there is none."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.builders import Life

from subagents.config.settings import SecretSource
from subagents.domain.run.run import Run
from subagents.domain.run.values import replace
from subagents.errors import RuntimeUnavailable, UsageError
from subagents.runtimes.process import secret_values
from subagents.runtimes.process.secret_values import SecretValues, ask

T = TypeVar("T")
VALUE = "horse-battery-42"


def printing(script: str) -> SecretSource:
    return SecretSource(command=("/bin/sh", "-c", script))


def a_run(pid: int | None = None) -> Run:
    life = Life.begin().start()
    attempt = replace(life.run.attempt, turn=replace(life.run.attempt.turn, pid=pid))
    return replace(life.run, attempts=(attempt,))


async def here(work: Callable[[], T]) -> T:
    return work()


def values_of(sources: dict[str, SecretSource], **variables: str) -> SecretValues:
    return SecretValues(lambda: sources, lambda _: variables, os.environ, here)


@pytest.mark.requirement("environment:secrets")
def test_a_secret_is_what_its_command_prints_without_the_last_line_end() -> None:
    assert ask("x", printing(f"echo {VALUE}"), os.environ) == VALUE
    assert ask("x", printing(f"printf '{VALUE}\\ntwo\\n'"), os.environ) == f"{VALUE}\ntwo"


@pytest.mark.requirement("environment:secrets")
@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo short", "fewer than 8 characters"),
        ("printf '\\377\\377\\377\\377\\377\\377\\377\\377\\377'", "no text in UTF-8"),
        ("printf 'aaaaaaaa\\0bbbb'", "NUL"),
    ],
)
def test_a_value_that_cannot_be_kept_from_readers_or_given_is_refused(
    script: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        ask("stripe", printing(script), os.environ)
    assert 'secret "stripe"' in str(caught.value)


@pytest.mark.requirement("environment:secrets")
def test_a_command_that_fails_is_named_with_its_last_words_and_not_with_what_it_printed() -> None:
    with pytest.raises(RuntimeUnavailable) as caught:
        ask("x", printing(f"echo {VALUE}; echo 'x is locked' >&2; exit 3"), os.environ)

    assert "ended with exit code 3: x is locked; try it" in caught.value.message
    assert "subagents secret x --check" in caught.value.message
    assert VALUE not in caught.value.message


@pytest.mark.requirement("environment:secrets")
def test_a_command_that_is_not_there_is_to_be_corrected_in_the_configuration() -> None:
    with pytest.raises(UsageError, match=r"correct secrets\.x\.command"):
        ask("x", SecretSource(command=("/nowhere/pass",)), os.environ)


@pytest.mark.requirement("environment:secrets")
def test_a_command_that_waits_for_a_person_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_values, "ANSWER_S_MAX", 0.1)
    with pytest.raises(RuntimeUnavailable, match="did not answer within"):
        ask("x", printing("exec sleep 60"), os.environ)


@pytest.mark.requirement("environment:secrets")
def test_without_a_command_the_keyring_is_asked_and_says_how_to_store_one() -> None:
    environ = {**os.environ, "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    with pytest.raises(UsageError) as caught:
        ask("x", None, environ)
    assert caught.value.message == (
        'secret "x" is not in the keyring; store it: subagents secret x, or set '
        'secrets.x.command = ["pass", "show", "…"] in subagents.toml'
    )


@pytest.mark.requirement("environment:secrets")
def test_without_the_keyring_extra_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(
        UsageError, match=r"subagents\[keyring\] is not installed; .* install .*\[keyring\]"
    ):
        ask("x", None, os.environ)


@pytest.mark.requirement("environment:secrets", "environment:redacted")
def test_references_are_filled_with_what_was_loaded_and_all_of_it_stays_known(
    tmp_path: Path,
) -> None:
    """Also what an earlier attempt was given: its output may be written later."""
    file, run = tmp_path / "secret", a_run()
    file.write_text(VALUE)
    values = values_of({"x": printing(f"cat {file}")}, A="secret:x", B="plain")

    with pytest.raises(UsageError, match='secret "x" is not known'):
        values.filled(run, {"A": "secret:x"})
    asyncio.run(values.load(run))
    assert values.filled(run, {"A": "secret:x", "B": "plain"}) == {"A": VALUE, "B": "plain"}
    file.write_text("changed-by-now")
    asyncio.run(values.load(run))

    assert values.filled(run, {"A": "secret:x"}) == {"A": "changed-by-now"}
    assert values.known(run) == ("changed-by-now", VALUE)


@pytest.mark.requirement("environment:redacted")
def test_after_a_restart_the_value_is_read_from_the_worker_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The place that it came from may be locked by now, or hold another value."""
    run = a_run(os.getpid())
    values = values_of({"x": printing("exit 1")}, PATH="secret:x")

    asyncio.run(values.recall(run))

    assert values.known(run) == (secret_values._environment_of(os.getpid())["PATH"],)


@pytest.mark.requirement("environment:redacted")
def test_after_a_restart_a_value_that_nobody_has_any_more_stops_nothing() -> None:
    run = a_run()
    values = values_of({"x": printing("exit 1")}, A="secret:x")

    asyncio.run(values.recall(run))

    assert values.known(run) == ()
