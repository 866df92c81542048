"""``service install`` and ``uninstall``: the daemon as a systemd user service."""

import os
import shlex
import shutil
import subprocess
import sys
from typing import Annotated, Final

from subagents.cli import output
from subagents.cli.connection import paths
from subagents.cli.flags import Json, Parameter
from subagents.cli.serving import UNIT_NAME, unit_file
from subagents.client.daemon_start import answers
from subagents.errors import EXIT_OK, Conflict, Unavailable
from subagents.runtimes.process.cgroups import LEAF
from subagents.text import one_line

SYSTEMCTL_TIMEOUT_S: Final = 30
WATCHDOG_S: Final = 60
"""How long the loop may hang before systemd ends it; a second is already too long for anybody who
waits."""


def install(
    *,
    dry_run: Annotated[bool, Parameter(name="--dry-run", help="Only print the unit file.")] = False,
    json: Json = False,
) -> int:
    """Install the daemon as a systemd user service and start it.

    Stopping the service does not stop the workers.

    For example:

        subagents service install --dry-run

        subagents service install
    """
    text = unit_text()
    file = unit_file()
    if dry_run:
        output.document({"file": str(file), "unit": text}) if json else output.data(text)
        return EXIT_OK
    _require_systemd()
    if answers(paths().socket) and _run("systemctl", "--user", "is-active", UNIT_NAME).returncode:
        raise Conflict(
            "a daemon runs already, and systemd could start no second one",
            hint="workers go on meanwhile: subagents down --yes && subagents service install",
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unavailable(f"cannot write {file}: {error.strerror}") from error
    _systemctl("daemon-reload")
    _systemctl("enable", "--now", UNIT_NAME)
    if json:
        output.document({"file": str(file), "installed": True})
    else:
        output.line(f"Installed {file}; the daemon runs as {UNIT_NAME}.")
        output.line("To keep it running while you are logged out: loginctl enable-linger")
    return EXIT_OK


def uninstall(*, json: Json = False) -> int:
    """Stop and remove the systemd service. Runs and their results are kept.

    For example:

        subagents service uninstall

        subagents service uninstall --json
    """
    file = unit_file()
    was_there = file.exists()
    if was_there:
        _require_systemd()
        _systemctl("disable", "--now", UNIT_NAME)
        file.unlink()
        _systemctl("daemon-reload")
    if json:
        output.document({"file": str(file), "uninstalled": was_there})
    else:
        output.line(f"Removed {file}." if was_there else "The service was not installed.")
        output.line(f"State is kept in {paths().state_dir}; delete it if you no longer need it.")
    return EXIT_OK


def unit_text() -> str:
    """The systemd user unit.

    ``KillMode=process`` keeps workers alive when it stops; ``Delegate`` lets each have a cgroup of
    its own, and ``DelegateSubgroup`` (systemd 254) limits there. It is told when the daemon
    answers, however long a migration or repair takes, and starts it again when it hangs for
    ``WatchdogSec``. ``PATH`` is that of whoever installs it, where agents' programs are found.
    """
    home = os.environ.get("SUBAGENTS_HOME")
    search = os.environ.get("PATH") or os.defpath
    environment = f'Environment="PATH={_quoted(search)}"\n'
    if home:
        absolute = str(paths().state_dir.parent)
        environment += f'Environment="SUBAGENTS_HOME={_quoted(absolute)}"\n'
    return f"""\
[Unit]
Description=subagents: durable, verified delegation between agents
Documentation=man:subagents(1)

[Service]
Type=notify
NotifyAccess=main
WatchdogSec={WATCHDOG_S}
TimeoutStartSec=infinity
ExecStart={_exec_word(sys.executable)} -m subagents serve
{environment}WorkingDirectory=/
KillMode=process
Delegate=yes
DelegateSubgroup={LEAF}
Restart=on-failure
RestartSec=1

[Install]
WantedBy=default.target
"""


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def _exec_word(text: str) -> str:
    plain = text.replace("%", "%%").replace("$", "$$")
    return plain if shlex.quote(text) == text else f'"{_quoted(text)}"'


def _require_systemd() -> None:
    hint = "start the daemon with `subagents up`, or run `subagents serve` under another supervisor"
    if shutil.which("systemctl") is None:
        raise Unavailable("this machine has no systemd (systemctl is not on PATH)", hint=hint)
    if _run("systemctl", "--user", "show-environment").returncode != 0:
        raise Unavailable("no systemd instance is running for this user", hint=hint)


def _systemctl(*arguments: str) -> None:
    done = _run("systemctl", "--user", *arguments)
    if done.returncode != 0:
        reason = one_line(done.stderr or done.stdout, chars_max=400)
        raise Unavailable(f"systemctl --user {' '.join(arguments)} failed: {reason}")


def _run(*argv: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=SYSTEMCTL_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{argv[0]} cannot be used: {error}") from error
