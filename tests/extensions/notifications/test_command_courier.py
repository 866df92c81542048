"""The command courier: what the program is given, and what its end means."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.couriers.courier_places import ELSEWHERE, OUTSIDE, live_run
from tests.extensions.notifications.command_place import CommandPlace

from subagents.config.layers import load
from subagents.config.paths import Paths
from subagents.config.settings import Agent, AgentCourier, Settings
from subagents.config.user_config import UserConfig
from subagents.domain.run.outcome import (
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
)
from subagents.domain.run.run import Run
from subagents.domain.run.values import announcement_id
from subagents.errors import ConfigError
from subagents.extensions.notifications import command_courier as command
from subagents.extensions.notifications.command_courier import (
    ARGUMENT_BYTES_MAX,
    CommandCourier,
    arguments,
)
from subagents.extensions.testing.courier_suite import BOUND_S, announced, settled_run, until

RUN = settled_run(requester=OUTSIDE)
HANDED_OVER = Delivered(path=DeliveryPath.DIRECT)


def courier_of(*argv: str) -> CommandCourier:
    agents = {"main": Agent(courier=AgentCourier(command=argv))}
    return CommandCourier(lambda: Settings(agents=agents), os.environ)


def deliver(courier: CommandCourier, text: str = "done", run: Run = RUN) -> DeliveryOutcome:
    return asyncio.run(courier.deliver(run, announced(run, text), None))


@pytest.mark.requirement("courier:command-template")
def test_placeholders_are_filled_in_once_and_other_braces_stay() -> None:
    text = 'say "{runId}" {sessionKey}\n$(rm -rf /)'
    template = ("push", "--to={sessionKey}", "{runId}/{runId}", "{text}", '{"t":{textJson}} {x}')

    program, to, runs, plain, spelled = arguments(template, RUN, announced(RUN, text))

    assert (program, to, runs) == ("push", f"--to={OUTSIDE}", f"{RUN.id}/{RUN.id}")
    assert plain == text
    assert spelled.endswith(" {x}")
    assert json.loads(spelled.removesuffix(" {x}")) == {"t": text}


@pytest.mark.requirement("courier:command-template", "courier:long-text")
@pytest.mark.parametrize(
    "text", ["ü" * 200_000, '"\\' * 100_000, "\x01" * 200_000, "a\0b" * 70_000]
)
def test_a_text_too_long_for_an_argument_is_cut_there_and_whole_on_stdin(
    text: str, tmp_path: Path
) -> None:
    place = CommandPlace(tmp_path, "{text}", "{textJson}")

    async def scenario() -> DeliveryOutcome:
        return await (await place.courier()).deliver(RUN, announced(RUN, text), None)

    assert asyncio.run(scenario()) == HANDED_OVER
    (told,) = place.told()
    assert told["text"] == text
    argv = told["argv"]
    assert isinstance(argv, list)
    plain, spelled = map(str, argv)
    for shown in (plain, json.loads(spelled)):
        assert shown.endswith(f"… (cut: subagents result {RUN.id})")
        assert text.replace("\0", "\ufffd").startswith(shown.partition("… (cut")[0])
    assert 10_000 < len(spelled.encode()) <= ARGUMENT_BYTES_MAX + 100
    assert len(plain.encode()) <= ARGUMENT_BYTES_MAX + 100


@pytest.mark.requirement("courier:command-exit")
def test_any_end_but_exit_0_is_tried_again_with_the_programs_last_words(tmp_path: Path) -> None:
    script = "import sys; sys.stderr.write('x' * 100_000 + 'the end'); sys.exit(7)"
    failed = deliver(courier_of(sys.executable, "-c", script))
    assert isinstance(failed, DeliveryFailed)
    assert failed.retryable
    assert failed.error.startswith(f"{sys.executable}: exit code 7: xxx")
    assert failed.error.endswith("the end")
    assert len(failed.error) < command.STDERR_BYTES_MAX + 200

    assert deliver(courier_of("sh", "-c", "kill -9 $$")) == DeliveryFailed(
        retryable=True, error="sh: signal 9"
    )
    missing = str(tmp_path / "none")
    assert deliver(courier_of(missing)) == DeliveryFailed(
        retryable=True, error=f"{missing}: No such file or directory"
    )


@pytest.mark.requirement("courier:command-exit")
def test_the_programs_exit_is_its_end_whatever_it_reads_or_leaves_running() -> None:
    assert deliver(courier_of("true"), "x" * 1_000_000) == HANDED_OVER
    assert deliver(courier_of("sh", "-c", "sleep 5 & exit 0")) == HANDED_OVER
    closed = deliver(courier_of("sh", "-c", "exec <&-; exit 3"), "x" * 1_000_000)
    assert closed == DeliveryFailed(retryable=True, error="sh: exit code 3")


@pytest.mark.requirement("courier:cancel")
def test_cancelled_before_its_pipes_are_there_it_ends_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = CommandPlace(tmp_path)
    place.hang()

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        connect, go_on = loop.connect_read_pipe, asyncio.Event()

        async def late(*of: Any) -> Any:
            await go_on.wait()
            return await connect(*of)

        monkeypatch.setattr(loop, "connect_read_pipe", late)
        trying = asyncio.ensure_future(
            (await place.courier()).deliver(RUN, announced(RUN, "done"), None)
        )
        await until(place.has_begun, "it runs")
        trying.cancel()
        await asyncio.sleep(0)
        go_on.set()
        async with asyncio.timeout(BOUND_S):
            await asyncio.wait({trying})
        assert trying.cancelled()
        await until(lambda: place.left_behind() == 0, "its child is gone")

    asyncio.run(scenario())


@pytest.mark.requirement("courier:serves", "delivery:nested-is-internal")
def test_only_outside_sessions_of_an_agent_with_a_command_are_served() -> None:
    courier = courier_of("true")
    parent = live_run()

    assert courier.serves(OUTSIDE, None)
    assert not courier.serves(ELSEWHERE, None)
    assert not courier.serves(OUTSIDE, parent)


@pytest.mark.requirement("courier:idempotency-key")
def test_every_try_carries_the_same_delivery_id_and_the_users_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", "/home/me/codex")
    keep = f'printf "%s " "$SUBAGENTS_DELIVERY_ID" "$CODEX_HOME" >> {tmp_path}/seen'
    courier = courier_of("sh", "-c", keep)

    deliver(courier)
    deliver(courier)

    once = f"{announcement_id(RUN.id)} /home/me/codex "
    assert (tmp_path / "seen").read_text() == once * 2


# -- configuration -------------------------------------------------------------------------------


def config_home(tmp_path: Path, text: str) -> Paths:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path / "home")})
    paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text(text)
    return paths


@pytest.mark.requirement("courier:no-shell-injection")
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ('["sh", "-c", "notify {text}"]', "puts {text} into a shell's script"),
        ('["/bin/bash", "-c", "x {textJson}"]', "puts {text} into a shell's script"),
        ('["{text}"]', "must begin with a program"),
        ("[]", "with at least 1 item"),
    ],
)
def test_a_workers_words_can_choose_neither_a_program_nor_a_script(
    argv: str, message: str, tmp_path: Path
) -> None:
    paths = config_home(tmp_path, f"[agents.main.courier]\ncommand = {argv}\n")

    with pytest.raises(ConfigError, match=r"agents\.main\.courier\.command") as refused:
        load(None, {}, paths=paths)
    assert message in refused.value.message


@pytest.mark.requirement("courier:no-shell-injection")
def test_the_text_may_be_an_argument_of_a_shells_script(tmp_path: Path) -> None:
    argv = '["sh", "-c", "notify \\"$1\\"", "sh", "{text}"]'
    paths = config_home(tmp_path, f"[agents.main.courier]\ncommand = {argv}\n")

    command = load(None, {}, paths=paths).settings.agents["main"].courier.command

    assert command == ("sh", "-c", 'notify "$1"', "sh", "{text}")


@pytest.mark.requirement("courier:users-file-only")
def test_the_daemon_takes_couriers_from_the_users_file_as_it_is_now_and_from_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "subagents.toml").write_text('[agents.main.courier]\ncommand = ["evil"]\n')
    monkeypatch.chdir(project)
    monkeypatch.setattr("subagents.config.user_config.LOOK_AGAIN_S", 0.0)
    paths = config_home(tmp_path, "")
    now = UserConfig({}, paths).now
    courier = CommandCourier(now, {})

    assert not courier.serves(OUTSIDE, None)
    config_home(tmp_path, '[agents.main.courier]\ncommand = ["mine"]\n')
    assert courier.serves(OUTSIDE, None)
    config_home(tmp_path, "[agents.main.courier\n")
    assert now().agents["main"].courier.command == ("mine",)
