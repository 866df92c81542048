"""The daemon in this process; imported without the parser, so that it starts sooner."""

import os
from pathlib import Path
from typing import Final

from subagents import process_settings
from subagents.cli import output
from subagents.cli.connection import paths
from subagents.client.daemon_start import take_environment
from subagents.errors import EXIT_OK
from subagents.version import __version__

UNIT_NAME: Final = "subagents.service"


def serve(
    *,
    port: int | None,
    host: str | None,
    node: str | None,
    labels: str | None,
    slots: int | None,
    listen: str | None,
    background_child: bool,
) -> int:
    """Be the daemon until a signal ends it; see ``daemon_commands.serve``."""
    if background_child:
        take_environment()
        # Whoever happened to start it decides nothing for those who use it later.
        process_settings.become_default()
    from subagents.api.server.daemon_log import redact_tracebacks  # noqa: PLC0415  the web framework
    from subagents.wiring import daemon_settings  # noqa: PLC0415
    from subagents.wiring import serve as serve_here  # noqa: PLC0415

    redact_tracebacks()
    given = {
        "daemon.http_port": port,
        "daemon.http_host": host,
        "daemon.node": node,
        "cluster.labels": None if labels is None else [*filter(None, labels.split(","))],
        "cluster.slots": slots,
        "cluster.listen": listen,
    }
    overrides = {key: value for key, value in given.items() if value is not None}
    if not background_child:
        home = paths()
        url = daemon_settings(overrides).http_url
        tcp = f" and {url} (token: {home.state_dir / 'operator.token'})" if url else ""
        nodes = f" and, for other nodes, {listen}" if listen else ""
        output.note(
            f"subagents {__version__} listens on {home.socket}{tcp}{nodes} (Ctrl-C to stop)"
        )
    serve_here(overrides)
    return EXIT_OK


def unit_file() -> Path:
    """Where systemd looks for this user's service of the daemon."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "systemd" / "user" / UNIT_NAME
