"""A daemon killed between what a courier handed over and the commit hands it over once more, under
the same id.
"""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.e2e.live_home import DEFAULTS, LiveHome, audit, live_home, until
from tests.extensions.notifications.webhook_place import Answering, Posted, WebhookPlace

from subagents.domain.run.events import AnnouncementConsumed

COURIER = """
import os, signal, sys
place = sys.argv[1]
with open(os.path.join(place, "told"), "a") as told:
    told.write(os.environ["SUBAGENTS_DELIVERY_ID"] + "\\n")
if os.path.exists(os.path.join(place, "deadly")):
    os.unlink(os.path.join(place, "deadly"))
    os.kill(os.getppid(), signal.SIGKILL)
"""


def readers(home: LiveHome, run_id: str) -> list[str]:
    return [event.reader for event in home.events(run_id, AnnouncementConsumed)]


@pytest.mark.requirement("e2e:kill:delivered", "courier:idempotency-key")
def test_a_program_that_told_and_whose_daemon_died_then_is_run_again_with_the_same_id(
    tmp_path: Path,
) -> None:
    script, told = tmp_path / "courier.py", tmp_path / "told"
    script.write_text(COURIER)
    (tmp_path / "deadly").touch()
    argv = json.dumps([sys.executable, "-S", str(script), str(tmp_path)])
    with live_home(tmp_path, config=f"[agents.main.courier]\ncommand = {argv}\n{DEFAULTS}") as home:
        run_id = home.spawn("echo done")
        until(lambda: not home.is_up(), what="the daemon's death")
        assert told.read_text().split() == [f"{run_id}:announce"]
        home.kill()
        home.start()
        home.until_phase(run_id, "completed")

        assert told.read_text().split() == [f"{run_id}:announce"] * 2
        assert readers(home, run_id) == ["command"]
        assert audit(home).consumed == {run_id: 1}


@pytest.mark.requirement("e2e:kill:delivered", "courier:idempotency-key")
def test_a_webhook_that_answered_a_daemon_that_never_read_it_is_posted_again_with_the_same_key(
    tmp_path: Path,
) -> None:
    with WebhookPlace(tmp_path) as place:
        config = f'[agents.main.courier]\nwebhook = "{place.url}"\n{DEFAULTS}'
        with live_home(tmp_path, config=config) as home:

            def stop_and_accept(_: Posted) -> Answering:
                os.kill(home.pid, signal.SIGSTOP)
                return Answering()

            place.answers = stop_and_accept
            run_id = home.spawn("echo done")
            place.until(1)
            assert place.left_behind() == 0  # the answer lies in the stopped daemon's socket
            home.kill()
            place.answers = lambda _: Answering()
            home.start()
            home.until_phase(run_id, "completed")

            keys = [each.headers["Idempotency-Key"] for each in place.until(2)]
            assert keys == [f"{run_id}:announce"] * 2
            assert readers(home, run_id) == ["webhook"]
            assert audit(home).consumed == {run_id: 1}
