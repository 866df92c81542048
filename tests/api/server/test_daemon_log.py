"""The daemon's log: lines of JSON, bounded, without secrets, and for people on a terminal."""

import json
import logging
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from subagents.api.server.daemon_log import TEXT_CHARS_MAX, JsonLines, writing_log
from subagents.client.daemon_start import log_message

LOG = logging.getLogger("subagents.test")
TOKEN = "sk-abcdefghijklmnopqrstuvwxyz0123"
SCRIPT = """
import logging, sys
from pathlib import Path
from subagents.api.server.daemon_log import writing_log
with writing_log(Path(sys.argv[1]), bytes_max=10**6):
    logging.getLogger("subagents.x").info("run r-abcdefghij begins")
"""


def broken(text: str) -> None:
    raise ValueError(text)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.requirement("daemon:log:structured")
def test_a_line_says_when_how_grave_who_what_and_of_which_run(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    with writing_log(path, bytes_max=10**6):
        LOG.info('run %s said "%s"', "r-abcdefghij", "ok ✔")
        LOG.warning("nothing of a run", extra={"run_id": "r-given00000"})
        LOG.warning("another one is %s.", "r-01v89wxyz2")
        LOG.debug("not this")

    first, second, third = lines(path)
    assert first["message"] == 'run r-abcdefghij said "ok ✔"'
    assert (first["level"], first["logger"]) == ("info", "subagents.test")
    assert first["run_id"] == "r-abcdefghij"
    assert first["ts"].endswith("+00:00")
    assert "exception" not in first
    assert (second["level"], second["run_id"]) == ("warning", "r-given00000")
    assert third["run_id"] == "r-01v89wxyz2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.requirement("daemon:log:structured")
def test_an_exception_is_one_field_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    with writing_log(path, bytes_max=10**6):
        try:
            broken("the\nreason")
        except ValueError:
            LOG.exception("it broke")

    (line,) = lines(path)
    assert line["message"] == "it broke"
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: the\nreason")


@pytest.mark.requirement("daemon:log:no-secrets")
def test_a_planted_secret_is_in_no_line(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    with writing_log(path, bytes_max=10**6):
        LOG.info("a worker printed %s", TOKEN)
        try:
            broken(TOKEN)
        except ValueError:
            LOG.exception("and died of it")

    assert TOKEN not in path.read_text()
    assert lines(path)[0]["message"] == "a worker printed [redacted]"


@pytest.mark.requirement("daemon:log:no-secrets")
def test_no_half_of_a_secret_is_left_where_a_long_message_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    with writing_log(path, bytes_max=10**6):
        LOG.info("%s %s", "x" * (TEXT_CHARS_MAX - 12), TOKEN)

    assert TOKEN[:6] not in path.read_text()


@pytest.mark.requirement("daemon:log:no-secrets")
@pytest.mark.parametrize("where", ["broken()", "threading.Thread(target=broken).start()"])
def test_what_ends_the_daemon_or_a_thread_of_it_is_printed_without_secrets(where: str) -> None:
    script = f"""
import threading
from subagents.api.server.daemon_log import redact_tracebacks
def broken(): raise ValueError("it said {TOKEN}")
redact_tracebacks()
{where}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )

    assert TOKEN not in done.stderr.replace(script, "")
    assert done.stderr.endswith("ValueError: it said [redacted]\n")


@pytest.mark.requirement("daemon:log:structured")
def test_half_a_surrogate_pair_is_escaped() -> None:
    record = logging.LogRecord("subagents.x", logging.INFO, "", 0, "file \udc80", (), None)

    assert json.loads(JsonLines().format(record))["message"] == "file \\udc80"


@pytest.mark.requirement("daemon:log:rotated")
def test_a_log_that_grows_while_the_daemon_runs_stays_bounded(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    with writing_log(path, bytes_max=2000):
        for number in range(200):
            LOG.info("line %s", number)

    old = tmp_path / "daemon.log.1"
    assert {each.name for each in tmp_path.iterdir()} == {"daemon.log", "daemon.log.1"}
    assert max(path.stat().st_size, old.stat().st_size) < 2200
    kept = [line["message"] for line in (*lines(old), *lines(path))]
    assert kept == [f"line {number}" for number in range(200 - len(kept), 200)]


@pytest.mark.requirement("daemon:log:rotated")
def test_what_a_dying_daemon_prints_follows_into_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    code = (
        "import logging, sys\n"
        "from pathlib import Path\n"
        "from subagents.api.server.daemon_log import writing_log\n"
        "with writing_log(Path(sys.argv[1]), bytes_max=50):\n"
        "    logging.getLogger('subagents.x').info('a line that is long enough to be moved')\n"
        "    logging.getLogger('subagents.x').info('the next one')\n"
        "    print('last words', file=sys.stderr)\n"
    )
    with path.open("ab") as stderr:
        subprocess.run([sys.executable, "-c", code, str(path)], stderr=stderr, check=True)

    assert path.read_text().splitlines()[-1] == "last words"
    assert "long enough" in (tmp_path / "daemon.log.1").read_text()


@pytest.mark.requirement("daemon:log:terminal")
def test_on_a_terminal_people_read_sentences_and_the_file_has_json(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-c", SCRIPT, str(path)]
    subprocess.run(argv, stderr=theirs, check=True)
    shown = os.read(ours, 4096).decode()
    os.close(ours)
    os.close(theirs)

    assert "INFO    run r-abcdefghij begins" in shown
    assert "{" not in shown
    assert lines(path)[0]["message"] == "run r-abcdefghij begins"


@pytest.mark.requirement("daemon:log:terminal")
def test_without_a_terminal_nothing_is_printed(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", SCRIPT, str(tmp_path / "daemon.log")]
    done = subprocess.run(argv, capture_output=True, check=True)

    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.requirement("daemon:log:structured")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"ts":"x","message":"it broke"}', "it broke"),
        ("subagents: the database is corrupt", "subagents: the database is corrupt"),
        ("[1, 2]", "[1, 2]"),
        ("", ""),
    ],
)
def test_what_a_line_says_is_told_without_its_form(line: str, said: str) -> None:
    assert log_message(line) == said


@pytest.mark.requirement("daemon:log:structured")
def test_a_full_disk_ends_nothing_that_is_being_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "daemon.log"
    with writing_log(path, bytes_max=10):
        LOG.info("one line, so that the next one wants a new file")
        tmp_path.joinpath("daemon.log.1").mkdir()
        LOG.info("this cannot be written: the old file cannot be moved")
    assert "Logging error" in capsys.readouterr().err
