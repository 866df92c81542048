"""Any program is a worker: what it is given, what it never sees, and what is refused before."""

import asyncio
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.live_processes import is_running, is_stopped
from tests.runtimes.attempt_harness import BOUND_S, Ended, Harness

from subagents.domain.run.run import Exit
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import RESULT_BYTES_MAX, OutputBatch
from subagents.errors import (
    ConfigError,
    RuntimeUnavailable,
    SubagentsError,
    UsageError,
)
from subagents.runtimes.process.environment import ARGUMENT_BYTES_MAX, TASK_VARIABLE_BYTES_MAX


def _env(ended: Ended) -> dict[str, str]:
    lines = ended.result.text.splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


@pytest.mark.requirement("runtimes:task-as-argument")
def test_the_task_is_one_argument_and_no_shell_of_ours_reads_it(harness: Harness) -> None:
    task = "two  words; $(touch hacked) {prompt} 'q' \\ *"
    launch = harness.launch("printf", "[%s]", "{task}", "-{task}-", "{prompt}")
    ended = harness.ended_launch(replace(launch, task=task, prompt="the prompt"))

    assert ended.result.text == f"[{task}][-{task}-][the prompt]"
    assert not (harness.cwd / "hacked").exists()


@pytest.mark.requirement("runtimes:stdin")
@pytest.mark.parametrize(
    ("stdin", "previous", "expected"),
    [
        (None, "", ""),
        (None, "b\na\n", "b\na"),
        ("none", "b\na\n", "b\na"),
        ("task", "b\na\n", "do it"),
        ("prompt", "", "Task: do it"),
    ],
)
def test_stdin_is_what_the_agent_asks_for_or_the_results_before(
    harness: Harness, stdin: str | None, previous: str, expected: str
) -> None:
    launch = harness.launch("cat") if stdin is None else harness.launch("cat", stdin=stdin)
    launch = replace(launch, previous_results=previous)
    assert harness.ended_launch(launch).result.text == expected


@pytest.mark.requirement("runtimes:setup")
def test_a_setup_goes_before_the_program_in_its_environment_and_fails_in_its_place(
    harness: Harness,
) -> None:
    launch = replace(
        harness.launch("sh", "-c", "cat; cat made"),
        previous_results="given",
        env={"MARK": "mine"},
        setup='cat; echo loud; echo "$MARK" >made; pwd >>made',
    )
    ended = harness.ended_launch(launch)
    assert ended.result.text == f"given\nmine\n{harness.cwd}"
    failing = replace(harness.launch("touch", "started", number=2), setup="echo why >&2; exit 7")
    ended = harness.ended_launch(failing)
    assert (ended.exited.exit, ended.exited.stderr_tail) == (Exit(code=7), "why")
    assert not (harness.cwd / "started").exists()


@pytest.mark.requirement("runtimes:env-allow-list")
def test_the_daemons_secrets_never_reach_a_worker(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ("OPENAI_API_KEY", "SSH_AUTH_SOCK", "DATABASE_URL", "SUBAGENTS_TOKEN", "LC", "PATHS")
    for name in secrets:
        monkeypatch.setenv(name, "planted-secret")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    ended = harness.ended("sh", "-c", "tr '\\0' '\\n' < /proc/$PPID/environ; env")

    assert "planted-secret" not in ended.result.text
    assert _env(ended)["LC_TIME"] == "C"
    assert _env(ended)["XDG_DATA_HOME"] == "/data"
    assert _env(ended)["HOME"] == os.environ["HOME"]
    assert _env(ended)["PWD"] == str(harness.cwd)


@pytest.mark.requirement("runtimes:env-allow-list")
def test_pass_env_lets_names_and_prefixes_through_and_env_sets_more(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "AWS_A", "AWS_B", "AWSOME", "SUBAGENTS_TOKEN"):
        monkeypatch.setenv(name, f"daemon-{name}")
    launch = harness.launch(
        "env", pass_env=["OPENAI_API_KEY", "AWS_*", "SUB*"], env={"AWS_B": "set", "dir": "kept"}
    )
    env = _env(harness.ended_launch(replace(launch, env={"SUBAGENTS_SOCKET": "/s"})))

    assert env["OPENAI_API_KEY"] == "daemon-OPENAI_API_KEY"
    assert env["AWS_A"] == "daemon-AWS_A"
    assert env["AWS_B"] == "set"
    assert env["dir"] == "kept"  # the shim has variables too; none of them is in the way
    assert env["SUBAGENTS_SOCKET"] == "/s"
    assert "AWSOME" not in env
    assert "SUBAGENTS_TOKEN" not in env


@pytest.mark.requirement("runtimes:system-prompt")
def test_a_program_that_wraps_an_agent_is_given_its_system_prompt_as_one_argument(
    harness: Harness,
) -> None:
    launch = harness.launch("printf", "[%s]", "--system={system}", "{task}")
    launch = replace(launch, system_prompt="two lines\nand {task} 'q'", task="{system}")

    ended = harness.ended_launch(launch)

    assert "\n".join(each.text for each in ended.output) == (
        "[--system=two lines\nand {task} 'q'][{system}]"
    )


@pytest.mark.requirement("runtimes:worker-variables")
def test_a_worker_is_told_who_it_is_and_where_its_task_is(harness: Harness) -> None:
    launch = replace(
        harness.launch("env"),
        system_prompt="you are a sub-agent",
        retry_reason="bad\0" + "\N{SNOWMAN}" * 5_000,
    )
    env = _env(harness.ended_launch(launch))

    assert env["SUBAGENTS_RUN_ID"] == launch.run_id
    assert env["SUBAGENTS_ATTEMPT"] == launch.attempt_id
    assert env["SUBAGENTS_ATTEMPT_NUMBER"] == "1"
    assert env["SUBAGENTS_SESSION_KEY"] == launch.session_key
    assert env["SUBAGENTS_AGENT_ID"] == "build"
    assert env["SUBAGENTS_TASK"] == "do it"
    assert Path(env["SUBAGENTS_TASK_FILE"]).read_text() == "do it"
    assert Path(env["SUBAGENTS_PROMPT_FILE"]).read_text() == "Task: do it"
    assert Path(env["SUBAGENTS_SYSTEM_PROMPT_FILE"]).read_text() == "you are a sub-agent"
    assert re.fullmatch("bad\N{SNOWMAN}+", env["SUBAGENTS_RETRY_REASON"])
    assert 4_000 < len(env["SUBAGENTS_RETRY_REASON"].encode()) <= 4_096


@pytest.mark.requirement("runtimes:large-task")
@pytest.mark.parametrize("task", ["x" * (TASK_VARIABLE_BYTES_MAX + 1), "a\0b"], ids=["long", "nul"])
def test_a_task_that_fits_no_variable_is_in_its_file_and_on_stdin(
    harness: Harness, task: str
) -> None:
    script = 'cat > stdin; cp "$SUBAGENTS_TASK_FILE" file; echo "${SUBAGENTS_TASK-unset}"'
    launch = replace(harness.launch("sh", "-c", script, stdin="task"), task=task)

    assert harness.ended_launch(launch).result.text == "unset"
    assert (harness.cwd / "stdin").read_text() == task
    assert (harness.cwd / "file").read_text() == task


def _refusal(harness: Harness, *argv: str, **fields: object) -> SubagentsError:
    launch = replace(harness.launch(*argv), **fields)
    with pytest.raises(UsageError) as refused:
        asyncio.run(harness.runtime().start(launch))
    assert not harness.directory().path.exists()  # nothing was claimed or written
    return refused.value


@pytest.mark.requirement("runtimes:refused-before-start")
def test_an_argument_that_is_too_long_is_refused_with_the_way_out(harness: Harness) -> None:
    fits = replace(harness.launch("printf", "%.1s", "{task}"), task="x" * ARGUMENT_BYTES_MAX)
    refusal = _refusal(harness, "echo", "{task}", task="x" * (ARGUMENT_BYTES_MAX + 1))

    assert refusal.message == (
        "`command`: an argument of 131,072 bytes is too long with the task in it (at most "
        '131,071); hand the task over with `stdin = "task"` or read $SUBAGENTS_TASK_FILE'
    )
    assert harness.ended_launch(fits).exited.exit == Exit(code=0)


@pytest.mark.requirement("runtimes:refused-before-start")
def test_a_variable_that_no_process_can_be_given_is_refused_by_its_name(harness: Harness) -> None:
    launch = harness.launch("true", env={"LONG": "x" * ARGUMENT_BYTES_MAX})
    with pytest.raises(UsageError, match="variable LONG is too long or holds a NUL"):
        asyncio.run(harness.runtime().start(launch))
    assert not harness.directory().is_claimed


@pytest.mark.requirement("runtimes:refused-before-start")
def test_a_command_line_that_is_too_long_in_all_is_refused(harness: Harness) -> None:
    launch = replace(harness.launch("echo", *(["{task}"] * 100)), task="x" * 100_000)
    with pytest.raises(UsageError, match="longer than this system takes"):
        asyncio.run(harness.runtime().start(launch))
    assert not harness.directory().is_claimed


@pytest.mark.requirement("runtimes:refused-before-start")
def test_what_can_never_start_is_refused_and_nothing_is_claimed(harness: Harness) -> None:
    (harness.cwd / "plain").write_text("no program")
    argument = "the task contains a NUL character, which no argument can hold"

    assert "no program 'no-such-program' on the worker's PATH" in (
        _refusal(harness, "no-such-program").message
    )
    assert (
        _refusal(harness, "./gone").message == f"`command`: there is no program {harness.cwd}/gone"
    )
    assert "/plain is not executable; chmod +x it" in _refusal(harness, "./plain").message
    assert argument in _refusal(harness, "echo", "{task}", task="a\0b").message
    assert _refusal(harness, "true", cwd="/no/such/place").message == (
        "the working directory /no/such/place does not exist; name it in `cwd`"
    )


@pytest.mark.requirement("runtimes:relative-program")
def test_a_relative_program_is_found_in_the_workers_directory(harness: Harness) -> None:
    program = harness.cwd / "tool"
    program.write_text("#!/bin/sh\necho here\n")
    program.chmod(0o755)

    assert harness.ended("./tool").result.text == "here"


@pytest.mark.requirement("runtimes:options-checked")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "missing required field `command`; `command` is a list of words"),
        ({"command": []}, "`command` is a list of words"),
        ({"command": "echo hi"}, 'for a shell line use ["bash", "-c", "…"]'),
        ({"command": ["{task}"]}, "must begin with a program"),
        ({"command": [""]}, "must begin with a program"),
        ({"command": ["a\0"]}, "NUL"),
        ({"command": ["a"], "stdin": "tty"}, '`stdin` is "none", "task" or "prompt"'),
        ({"command": ["a"], "stdn": "task"}, "knows no option `stdn`; did you mean `stdin`?"),
        ({"command": ["a"], "zzz": 1}, "known are command, stdin, env, pass_env"),
        ({"command": ["a"], "env": {"A-B": "1"}}, "letters, digits and _"),
        ({"command": ["a"], "env": {"A": 1}}, "Expected `str`, got `int`"),
        ({"command": ["a"], "pass_env": ["*"]}, "in `pass_env` also a last *"),
        ({"command": ["a"], "pass_env": ["SUBAGENTS_*"]}, "are set by subagents; remove it"),
        ({"command": ["a"], "env": {"SUBAGENTS_ATTEMPT": "x"}}, "are set by subagents; remove it"),
    ],
)
def test_options_with_which_nothing_could_start_are_refused(
    harness: Harness, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        harness.runtime().check(options)
    assert message in refused.value.message


@pytest.mark.requirement("runtimes:abilities")
def test_command_declares_what_it_can_do_and_refuses_the_rest(harness: Harness) -> None:
    runtime = harness.runtime()
    runtime.check({"command": ["bash", "-c", "{task}"], "stdin": "prompt", "pass_env": ["A_*"]})

    assert runtime.name == "command"
    assert runtime.abilities == Abilities(
        survives_daemon=True, usage=True, freeze=True, isolate=True
    )
    with pytest.raises(RuntimeUnavailable, match="cannot steer"):
        asyncio.run(runtime.steer(harness.ref(), "hello", key="k"))
    with pytest.raises(RuntimeUnavailable, match="cannot resume"):
        asyncio.run(runtime.resume(harness.ref(), "hello", env={}))


@pytest.mark.requirement("runtimes:stderr-tail")
def test_the_end_of_stderr_comes_with_the_exit(harness: Harness) -> None:
    ended = harness.ended("sh", "-c", "yes early | head -n 4000 >&2; printf 'why\\377' >&2; exit 1")

    assert ended.exited.exit == Exit(code=1)
    assert ended.exited.drained
    assert ended.exited.stderr_tail is not None
    assert ended.exited.stderr_tail.endswith("early\nwhy\ufffd")
    assert len(ended.exited.stderr_tail) <= 4_096


@pytest.mark.requirement("redact:before-cutting")
def test_the_end_of_stderr_that_begins_in_the_middle_of_a_secret_shows_nothing_of_it(
    harness: Harness,
) -> None:
    script = (
        "import sys; sys.stderr.write('w' * 9_000 + ' ghp_' + 'Ab3' * 12 + '\\n' + 'z' * 4_080);"
        " sys.exit(1)"
    )
    found = harness.ended(sys.executable, "-c", script).exited.stderr_tail

    assert found is not None
    assert "Ab3" not in found
    assert found.endswith("z" * 4_000)


HUGE_BYTES = 100_000_000


@pytest.mark.requirement("runtimes:bounded-memory")
def test_200_mb_of_output_are_read_in_bounded_memory(harness: Harness) -> None:
    """Half of it in lines with some key in them, half of it one line without end."""
    script = (
        f"yes 'a line of text with \"subagents\" in it' | head -c {HUGE_BYTES}; "
        f"head -c {HUGE_BYTES} /dev/zero; printf '\\nthe end'"
    )
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before, lines = _peak_kib(), 0

    async def go() -> Ended:
        nonlocal lines
        runtime, kept = harness.runtime(), []
        await runtime.start(harness.launch("sh", "-c", script))
        async for seen, cursor in runtime.watch(harness.ref(), cursor=0, positions={}):
            if isinstance(seen, OutputBatch):
                lines += len(seen.items)
            else:
                kept.append((seen, cursor))
        return Ended(kept)

    ended = asyncio.run(go())

    assert _peak_kib() - before < 50 * 1024
    assert ended.result.text.endswith("the end")
    assert len(ended.result.text) <= RESULT_BYTES_MAX
    assert ended.result.bytes_total == 2 * HUGE_BYTES + len("\nthe end")
    whole, rest = divmod(HUGE_BYTES, len('a line of text with "subagents" in it\n'))
    assert rest  # so the long line begins behind a part of a line
    assert lines == whole + 2


def _peak_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.requirement("pause:freezes")
def test_every_process_of_a_paused_command_stands_still_until_it_goes_on(harness: Harness) -> None:
    """Also one in a session of its own with a clean environment."""
    line = "env -i setsid sleep 300 & echo $! > child; echo begun; wait"

    async def seen(is_so: Callable[[], bool]) -> None:
        """A signal takes effect when the process is next scheduled."""
        while not is_so():  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.001)

    async def go() -> None:
        runtime, ref = harness.runtime(), harness.ref()
        await runtime.start(harness.launch("sh", "-c", line))
        watch = runtime.watch(ref, cursor=0, positions={})
        async with asyncio.timeout(BOUND_S):
            await anext(watch)
            found = harness.directory().worker()
            assert found is not None
            pids = found.pid, int((harness.cwd / "child").read_text())
            for _ in range(2):
                await runtime.freeze(ref)
                await seen(lambda: all(map(is_stopped, pids)))
            await runtime.thaw(ref)
            await seen(lambda: not any(map(is_stopped, pids)))
            await runtime.freeze(ref)
            # TERM is acted upon: nobody waits for a KILL.
            await runtime.stop(ref, grace_s=10 * BOUND_S)
        assert not any(map(is_running, pids))

    asyncio.run(go())
