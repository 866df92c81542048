"""What ``doctor`` looks at in a home of a cluster."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from subagents.api.wire.wire_struct import read
from subagents.cli.connection import session
from subagents.cli.doctor_check import FAIL, OK, WARN, Check
from subagents.client.client import Client, Document
from subagents.config.paths import Paths
from subagents.config.user_config import UserConfig
from subagents.errors import ConfigError, SubagentsError
from subagents.extensions.cluster.api.cluster_answers import Cluster
from subagents.extensions.cluster.cli.cluster_home import ClusterHome, cluster_home
from subagents.extensions.cluster.cli.node_commands import PLACE
from subagents.extensions.cluster.cluster_settings import ClusterSettings
from subagents.text import counted, duration
from subagents.version import __version__

CLOCK_WARN: Final = timedelta(seconds=2)
CLOCK_FAIL: Final = timedelta(minutes=5)
"""The difference of clocks at which fresh certificates are not valid yet where a clock is
behind."""
CLOCK_FIX: Final = "keep this machine's clock with NTP: timedatectl set-ntp true"


def checks(home: Paths, _diagnostics: Document | None) -> Iterator[Check]:
    """Membership, certificate, clock and the other nodes; nothing where the daemon is alone."""
    try:
        settings = UserConfig(dict(os.environ), home).at_start.settings
    except ConfigError:
        return  # the configuration's own check says it
    if settings.table(ClusterSettings).listen is None and not home.cluster_dir.exists():
        return
    try:
        found = cluster_home(home)
        yield from _membership(found)
    except SubagentsError as error:
        yield Check("cluster", FAIL, error.message, error.hint)
        return
    yield from _nodes(home)


def _membership(home: ClusterHome) -> Iterator[Check]:
    from subagents.extensions.cluster.trust.node_trust import opened  # noqa: PLC0415

    if not home.files.has_joined:
        fix = "subagents cluster join TOKEN; for a new cluster: subagents cluster init"
        yield Check("cluster", FAIL, "cluster.listen is set, and this home joined no cluster", fix)
        return
    opened(home.files, home.tables)
    yield Check("cluster", OK, f"in the cluster of {home.tables.place}")
    yield _certificate(home)
    yield _clock(home)


def _certificate(home: ClusterHome) -> Check:
    certificate = home.files.node_certificate()
    if certificate is None:
        return Check("certificate", OK, "none yet: the node makes one when it starts")
    end = certificate.not_valid_after_utc
    left = end - datetime.now(UTC)
    until = end.isoformat(timespec="minutes")
    if left <= timedelta(0):
        text = f"ended at {until}"
        return Check("certificate", WARN, text, "a daemon that runs renews it: subagents up")
    if left < (end - certificate.not_valid_before_utc) / 4:
        text = f"ends at {until}, and should have been renewed"
        return Check("certificate", WARN, text, "look into the daemon's log")
    return Check("certificate", OK, f"good until {until}")


def _clock(home: ClusterHome) -> Check:
    before = datetime.now(UTC)
    theirs = home.tables.now()
    after = datetime.now(UTC)
    apart = abs(theirs - (before + (after - before) / 2))
    text = f"{duration(round(apart.total_seconds() * 1000))} apart from the database's"
    if apart >= CLOCK_FAIL:
        return Check("clock", FAIL, f"{text}: certificates may not hold here", CLOCK_FIX)
    return Check("clock", WARN if apart >= CLOCK_WARN else OK, text, CLOCK_FIX)


def _nodes(home: Paths) -> Iterator[Check]:
    """As the daemon sees them; nothing when none runs."""
    try:
        with Client(home.socket, session=session(), timeout_s=10) as client:
            nodes = read(client.get(PLACE), Cluster).nodes
    except SubagentsError:
        return
    over = [each.name for each in nodes if not each.alive]
    alive = [each for each in nodes if each.alive]
    others = sorted({each.version for each in alive if each.version != __version__})
    text = f"{counted(len(alive), 'node')} alive"
    if over:
        text += f"; over: {', '.join(over)}"
    if others:
        yield Check(
            "nodes",
            WARN,
            f"{text}; versions {', '.join((__version__, *others))}",
            "bring all nodes to one version, one after the other: subagents cluster drain --wait",
        )
    elif not any(each.is_self for each in alive):
        yield Check("nodes", WARN, text, "this node is not among them: see the daemon's log")
    else:
        yield Check("nodes", OK, f"{text}, all {__version__}")
