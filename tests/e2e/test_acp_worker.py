"""An ACP agent works for a real daemon: our own small one (``acp_agent``).

What every runtime must do is in ``runtime_cells``; here is also what only this protocol has.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.e2e import runtime_cells as cells
from tests.e2e.acp_setups import ACP
from tests.e2e.live_home import until
from tests.e2e.runtime_cells import Place, place_of
from tests.e2e.scripted_model import Conversation, Fail, Say, Use

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place_of(ACP, tmp_path_factory.mktemp("acp")) as found:
        yield found


# -- the five tasks -------------------------------------------------------------------------------


@pytest.mark.requirement("acp:e2e:edit")
def test_a_file_is_written_and_passes_its_contract(place: Place) -> None:
    assert cells.edit(place) == cells.OK


@pytest.mark.requirement("acp:e2e:command")
def test_a_command_is_run_and_its_output_read(place: Place) -> None:
    assert cells.command(place) == cells.OK


@pytest.mark.requirement("acp:e2e:ask")
def test_the_requester_is_asked_through_a_server_that_got_no_token_in_its_environment(
    place: Place,
) -> None:
    """The agent's MCP library passes six harmless variables on; the bridge finds its own way."""
    assert cells.ask(place) == cells.OK


@pytest.mark.requirement("acp:e2e:spawn")
def test_a_child_is_spawned_and_its_result_handed_on(place: Place) -> None:
    assert cells.spawn(place) == cells.OK


@pytest.mark.requirement("children:told-once")
@pytest.mark.parametrize("is_killed", [False, True], ids=["daemon-lives", "daemon-killed"])
def test_a_worker_that_ends_right_after_its_wait_gets_no_second_turn(
    place: Place, *, is_killed: bool
) -> None:
    name = f"kept-{is_killed:d}"
    ended = threading.Event()

    def answers(seen: Conversation) -> Say:
        # Nothing acknowledges what the wait returned: neither a bridge, nor to a daemon.
        end_bridges(place, run_id)
        if is_killed:
            place.home.kill()
        ended.set()
        return Say("child said " + " ".join(seen.found("kept-result-8")[:1]))

    def child_ends(_: Conversation) -> Say:
        # Not before it is waited for: its result would be pushed, and be no answer of the wait.
        output = place.home.attempt_file(run_id, "out")
        begun = '"in_progress"'  # the spawn, then the wait
        until(lambda: output.read_text().count(begun) == 2, what="its wait", within_s=60)
        return Say("kept-result-8")

    place.model.scripts[f"{name}-child"] = [child_ends]
    place.model.scripts[name] = [
        Use("sessions_spawn", {"task": f"script:{name}-child", "agentId": place.setup.name}),
        lambda seen: Use(
            "sessions_wait",
            {"runIds": seen.found(r"r-[a-z0-9]{6,}")[:1], "timeoutSeconds": 60},
        ),
        answers,
        Say("done"),
    ]
    run_id = place.spawn(name)
    assert ended.wait(90)
    if is_killed:
        output = place.home.attempt_file(run_id, "out")
        until(lambda: "child said" in output.read_text(), what="its answer", within_s=60)
        place.home.start()

    done = place.finish(run_id)[0]

    assert done["result"].strip() == "child said kept-result-8", done
    assert place.home.show(run_id)["attempts"][-1]["turns"] == 1


def end_bridges(place: Place, run_id: str) -> None:
    """Kill the MCP servers of a worker, as a program does that ends at once."""
    for pid in place.home.of_run(run_id):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-2:] == [b"mcp", b""]:
                os.kill(pid, signal.SIGKILL)


@pytest.mark.requirement("acp:e2e:no-deliverable")
def test_done_without_the_deliverable_is_a_failed_verification(place: Place) -> None:
    assert cells.no_deliverable(place) == cells.OK


# -- in mid-turn ----------------------------------------------------------------------------------


@pytest.mark.requirement("acp:e2e:steer")
def test_a_message_is_heard_in_the_same_turn(place: Place) -> None:
    assert cells.steer(place) == "same turn"


@pytest.mark.requirement("acp:e2e:interrupt")
def test_an_interrupt_ends_the_turn_and_the_child_that_the_agent_left_alive(place: Place) -> None:
    assert cells.interrupt(place).startswith("yes")


@pytest.mark.requirement("acp:e2e:cancel")
def test_a_cancel_leaves_no_process(place: Place) -> None:
    assert cells.cancel(place).startswith("none after")


@pytest.mark.requirement("acp:e2e:kill")
def test_a_killed_daemon_takes_the_turn_up_again_and_prompts_nobody_twice(place: Place) -> None:
    assert cells.survives(place) == cells.OK


@pytest.mark.requirement("acp:e2e:scope")
def test_a_denied_shell_is_refused_also_to_a_child(place: Place) -> None:
    assert cells.scope(place) == cells.OK


@pytest.mark.requirement("acp:e2e:usage")
def test_tokens_and_dollars_are_counted(place: Place) -> None:
    assert cells.usage(place).startswith("tokens, $")


@pytest.mark.requirement("acp:e2e:resume")
def test_an_ended_session_is_gone_on_with_by_session_load(place: Place) -> None:
    assert cells.resume(place) == cells.OK


# -- what only this protocol has ------------------------------------------------------------------


@pytest.mark.requirement("acp:e2e:no-secret")
def test_no_file_of_the_attempt_holds_the_workers_token(place: Place) -> None:
    place.model.scripts["secret"] = [
        place.setup.shell(cells.LOOP.format(gate="secret-gate")),
        Say("over"),
    ]
    run_id = place.spawn("secret")
    token = place.home.token_of(run_id)
    until(lambda: "session/update" in place.home.output(run_id), what="the turn is under way")
    directory = place.home.attempt_file(run_id, "opening").parent

    held = [each for each in directory.iterdir() if each.is_file() and not each.is_fifo()]
    assert len(held) > 5
    assert [each.name for each in held if token in each.read_text(errors="replace")] == []
    place.path("secret-gate").touch()
    place.finish(run_id)


@pytest.mark.requirement("acp:e2e:transcript")
def test_the_log_shows_messages_whole_and_tools_with_their_ends(place: Place) -> None:
    place.model.scripts["shown"] = [
        Use("shell", {"command": "echo visible"}, text="I shall look", thinking="which tool"),
        Say("seen it all"),
    ]
    run_id = place.spawn("shown")
    place.finish(run_id)

    lines = place.home.get(f"/v1/runs/{run_id}/log", limit=200)["lines"]
    texts = [(line["type"], line["text"]) for line in lines]
    assert ("text", "I shall look") in texts
    assert ("text", "seen it all") in texts
    assert any(kind == "thinking" and "which tool" in text for kind, text in texts)
    assert any(kind == "tool" and text.startswith("✅ shell") for kind, text in texts)
    assert any("not JSON, as some print" in text for _, text in texts)


@pytest.mark.requirement("acp:e2e:failure")
def test_a_model_that_fails_is_an_error_of_the_run_in_its_words(place: Place) -> None:
    place.model.scripts["broken"] = [Fail(400, times=None), Say("never")]

    outcome = place.finished("broken")["outcome"]

    assert outcome["status"] == "error"
    assert "the model answered 400" in outcome["error"]


@pytest.mark.requirement("acp:e2e:missing")
def test_a_model_that_the_session_does_not_offer_ends_the_run_with_those_it_does(
    place: Place,
) -> None:
    outcome = place.finished("nothing", model="other")["outcome"]

    assert outcome["status"] == "error"
    assert "offers no model 'other' in this session; it offers: test/scripted" in outcome["error"]


@pytest.mark.requirement("acp:e2e:queued")
def test_a_message_for_an_agent_that_queues_waits_for_a_turn_of_its_own(tmp_path: Path) -> None:
    setup = replace(
        ACP,
        options={**ACP.options, "second_prompt": "queues"},
        env=lambda url, root: {**ACP.env(url, root), "ACP_AGENT_SECOND": "queues"},
    )
    with place_of(setup, tmp_path) as place:
        place.model.scripts["queue"] = [
            place.setup.shell("touch begun; " + cells.LOOP.format(gate="go-on")),
            Say("the word is mirabelle"),
        ]
        run_id = place.spawn("queue")
        until(place.path("begun").exists, what="the command")
        place.home.post(f"/v1/runs/{run_id}/steer", {"message": "and turn-left"})
        place.path("go-on").touch()
        place.finish(run_id)

        heard = place.model.until(lambda seen: "turn-left" in seen.seen)
        assert "mirabelle" in str(heard.messages), "the session was not continued"
        assert place.home.show(run_id)["attempts"][-1]["turns"] == 2
