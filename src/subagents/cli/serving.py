"""``serve``: the daemon in this process."""

import gc
import os
from pathlib import Path
from typing import Final

from subagents import process_settings
from subagents.cli import output
from subagents.cli.connection import paths
from subagents.cli.flags import Annotated, Parameter
from subagents.client.daemon_start import take_environment
from subagents.version import __version__

UNIT_NAME: Final = "subagents.service"


def serve(
    *,
    port: Annotated[
        int | None, Parameter(help="Also listen on this TCP port. Default: daemon.http_port.")
    ] = None,
    host: Annotated[
        str | None,
        Parameter(help="Address to listen on. Default: daemon.http_host.", metavar="HOST"),
    ] = None,
    node: Annotated[
        str | None,
        Parameter(help="This node's name in its cluster. Default: daemon.node.", metavar="NAME"),
    ] = None,
    labels: Annotated[
        str | None,
        Parameter(
            help="What runs can ask for as their place, separated by commas. Default:"
            " cluster.labels.",
            metavar="LABEL,...",
        ),
    ] = None,
    slots: Annotated[
        int | None, Parameter(help="Workers here at most. Default: cluster.slots.")
    ] = None,
    listen: Annotated[
        str | None,
        Parameter(
            help="Where other nodes reach this one. Default: cluster.listen.", metavar="HOST:PORT"
        ),
    ] = None,
    background_child: Annotated[bool, Parameter(name="--background-child", is_shown=False)] = False,
) -> None:
    """Run the daemon in the foreground. Ctrl-C stops it; its workers keep running.

    For example:

        subagents serve

        subagents serve --port 8765

        subagents serve --node a --labels gpu,linux --slots 8 --listen 0.0.0.0:7443
    """
    if background_child:
        take_environment()
        # What started it (its limits, its umask) decides nothing for those who use it later.
        process_settings.become_default()
    # Imports make little garbage, and looking for it takes a sixth of them; on again in ``tune``.
    gc.disable()
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
    # In the background there is no person to tell: stderr is the daemon's log.
    if not background_child:
        home = paths()
        url = daemon_settings(overrides).http_url
        tcp = f" and {url} (token: {home.state_dir / 'operator.token'})" if url else ""
        nodes = f" and, for other nodes, {listen}" if listen else ""
        output.note(f"subagents {__version__} starts at {home.socket}{tcp}{nodes} (Ctrl-C to stop)")
    serve_here(overrides)


def unit_file() -> Path:
    """Where systemd looks for this user's service of the daemon."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "systemd" / "user" / UNIT_NAME
