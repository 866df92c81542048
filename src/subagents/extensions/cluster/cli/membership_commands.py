"""``cluster init token join leave``: making a cluster, and homes that come and go."""

import os
import sys
from datetime import timedelta
from typing import Annotated

from subagents.cli import output
from subagents.cli.connection import paths
from subagents.cli.flags import Json, Parameter, Yes
from subagents.client.client import Client
from subagents.config.paths import Paths
from subagents.config.user_config import UserConfig
from subagents.errors import EXIT_FAILED, EXIT_OK, Conflict, SubagentsError, UsageError
from subagents.extensions.cluster.cli.cluster_home import ClusterHome, cluster_home
from subagents.extensions.cluster.cluster_settings import ClusterSettings
from subagents.text import duration, parse_duration

TTL_MS_MAX = 24 * 60 * 60 * 1000
TOKEN_BYTES_MAX = 4096
Ttl = Annotated[
    str, Parameter(help="How long a token can be used, at most 24h.", metavar="DURATION")
]
Url = Annotated[
    str | None,
    Parameter(
        help="Where the new machine reaches a node: https://HOST:PORT. Default: this one's, of"
        " cluster.url or cluster.listen.",
        metavar="URL",
    ),
]


def init(*, ttl: Ttl = "15m", url: Url = None, json: Json = False) -> int:
    """Make the database in daemon.store a cluster's, and this home its first one.

    Prints a token for the next machine, if it is known where that one reaches this one.
    Repeating it changes nothing but the token.

    For example:

        subagents cluster init

        subagents cluster init --url https://a.example:7443 --json
    """
    from subagents.extensions.cluster.trust.cluster_membership import make_cluster  # noqa: PLC0415

    home, life = cluster_home(paths()), _life(ttl)
    paths().ensure()
    made = make_cluster(home.files, home.tables)
    at = _url(home, url)
    token = None if at is None else _token(home, at, life)
    if json:
        output.document(
            {
                "database": home.tables.place,
                "fingerprint": made.fingerprint,
                "isNew": made.is_new,
                "token": token,
            }
        )
        return EXIT_OK
    verb = "is a cluster's now" if made.is_new else "was this cluster's already"
    output.note(f"{home.tables.place} {verb}; its CA is {made.fingerprint[:16]}…")
    if home.settings.table(ClusterSettings).listen is None:
        output.note("  start this node: subagents serve --listen 0.0.0.0:7443")
    else:
        output.note("  start this node: subagents serve")
    _say_token(token, life)
    return EXIT_OK


def token(*, ttl: Ttl = "15m", url: Url = None, json: Json = False) -> int:
    """Print a token with which one machine can join, once.

    The node that it names must be up when it is used.

    For example:

        subagents cluster token

        subagents cluster token --ttl 1h --url https://a.example:7443
    """
    home, life = cluster_home(paths()), _life(ttl)
    at = _url(home, url)
    if at is None:
        raise UsageError(
            "nobody could reach this node: neither cluster.listen nor cluster.url is set",
            hint="start it with --listen HOST:PORT, or say where a node is: --url https://HOST:PORT",
            details={"field": "--url"},
        )
    made = _token(home, at, life)
    if json:
        output.document({"token": made, "url": at, "ttlSeconds": round(life.total_seconds())})
    else:
        _say_token(made, life)
    return EXIT_OK


def _say_token(token: str | None, life: timedelta) -> None:
    if token is None:
        output.note("  then, for each other machine: subagents cluster token")
        return
    lasts = duration(round(life.total_seconds() * 1000))
    output.note(f"On another machine, once, within {lasts}: subagents cluster join 'TOKEN'")
    output.line(token)


def _token(home: ClusterHome, url: str, life: timedelta) -> str:
    from subagents.extensions.cluster.trust.cluster_membership import make_token  # noqa: PLC0415

    return make_token(home.files, home.tables, url=url, node=home.node, life=life)


def _life(ttl: str) -> timedelta:
    length_ms = parse_duration(ttl, field="--ttl")
    if not 0 < length_ms <= TTL_MS_MAX:
        raise UsageError(
            f"--ttl must be more than 0 and at most 24h, not {ttl!r}", details={"field": "--ttl"}
        )
    return timedelta(milliseconds=length_ms)


def _url(home: ClusterHome, given: str | None) -> str | None:
    """Where a new machine asks: as said, as configured, or as the daemon was started."""
    from subagents.extensions.cluster.trust.join_token import is_node_url  # noqa: PLC0415

    if given is not None:
        if not is_node_url(given):
            raise UsageError(
                f"--url must be https://HOST or https://HOST:PORT, not {given[:200]!r}",
                details={"field": "--url"},
            )
        return given
    found = home.settings.table(ClusterSettings).url_at(os.uname().nodename)
    return _url_of_daemon() if found is None else found


def _url_of_daemon() -> str | None:
    from subagents.api.wire.wire_struct import read  # noqa: PLC0415
    from subagents.extensions.cluster.api.cluster_answers import Cluster  # noqa: PLC0415

    try:
        # None is started to be asked: it would be one without the address that it is about.
        with Client(paths().socket) as client:
            nodes = read(client.get("/v1/cluster"), Cluster).nodes
    except SubagentsError:
        return None
    return next((each.url for each in nodes if each.is_self), None)


def join(
    token: Annotated[
        str,
        Parameter(
            help="As `subagents cluster token` prints it; - reads it from stdin.",
        ),
    ],
    /,
    *,
    store: Annotated[
        str | None,
        Parameter(
            help="Address of the cluster's database, which is added to subagents.toml. Default:"
            " daemon.store.",
            metavar="URL",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Bring this home into a cluster; the token can be used once.

    A daemon that runs here takes part after its next start.

    For example:

        subagents cluster join 'https://a.example:7443#…'

        subagents cluster join --store postgresql://db.example/agents - < token.txt
    """
    from subagents.extensions.cluster.trust.cluster_membership import join as join_by  # noqa: PLC0415
    from subagents.extensions.cluster.trust.join_token import parse_token  # noqa: PLC0415

    home = cluster_home(paths(), store=store)
    given = parse_token(sys.stdin.read(TOKEN_BYTES_MAX) if token == "-" else token)  # noqa: S105
    paths().ensure()
    join_by(home.files, home.tables, given)
    written = None if store is None else _keep_store(paths(), store)
    if json:
        output.document(
            {
                "database": home.tables.place,
                "fingerprint": given.fingerprint.hex(),
                "joined": True,
            }
        )
        return EXIT_OK
    output.note(f"This home belongs to the cluster of {home.tables.place} now.")
    if written is not None:
        output.note(f"  daemon.store is in {written}")
    is_configured = home.settings.table(ClusterSettings).listen is not None
    flags = "" if is_configured else " --listen 0.0.0.0:7443"
    output.note(f"  start its node: subagents serve{flags}")
    return EXIT_OK


def _keep_store(home: Paths, store: str) -> str | None:
    """Put the address into the user's file; None = the configuration has it."""
    import tomlkit  # noqa: PLC0415
    from tomlkit.exceptions import ParseError  # noqa: PLC0415

    from subagents.config.files.text_files import read_text  # noqa: PLC0415
    from subagents.config.sources import FILE_BYTES_MAX  # noqa: PLC0415

    if UserConfig(dict(os.environ), home).at_start.settings.daemon.store == store:
        return None
    file = home.config_file
    try:
        text = read_text(file, bytes_max=FILE_BYTES_MAX) if file.exists() else ""
        document = tomlkit.parse(text)
        document.setdefault("daemon", tomlkit.table())["store"] = store
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # It may have a password in it.
        file.touch(mode=0o600)
        file.write_text(tomlkit.dumps(document), "utf-8")
    except (OSError, ParseError) as error:
        raise UsageError(
            f"this home has joined, but {file} cannot be written: {error}",
            hint="add [daemon] store with the address to it yourself",
        ) from error
    return str(file)


def leave(*, yes: Yes = False, json: Json = False) -> int:
    """Take this home out of its cluster: its certificate and the cluster's secret are deleted.

    Drain the node and stop its daemon first. Other nodes go on, and what this one's home keeps
    of runs stays. Whoever copied the secret before can still make certificates.

    For example:

        subagents cluster leave

        subagents cluster drain --wait && subagents down --yes && subagents cluster leave --yes
    """
    from subagents.client.daemon_start import holder  # noqa: PLC0415
    from subagents.extensions.cluster.trust.cluster_membership import leave as leave_by  # noqa: PLC0415

    home = cluster_home(paths())
    if home.files.has_joined:
        if (found := holder(paths())) is not None:
            raise Conflict(
                f"the daemon of this home runs ({found.words})",
                hint="drain and stop it first: subagents cluster drain --wait && subagents down",
            )
        question = f"Leave the cluster of {home.tables.place}?"
        if not output.is_confirmed(question, yes=yes):
            return EXIT_FAILED
    had_joined = leave_by(home.files)
    if json:
        output.document({"left": had_joined})
    elif had_joined:
        output.note(f"This home has left the cluster of {home.tables.place}.")
    else:
        output.note("This home belongs to no cluster.")
    return EXIT_OK
