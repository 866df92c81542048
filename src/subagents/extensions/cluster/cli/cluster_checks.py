"""What ``doctor`` looks at in a home of a cluster."""

import os
from collections.abc import Iterator

from subagents.api.wire.wire_struct import read
from subagents.cli.connection import session
from subagents.cli.doctor_check import FAIL, OK, WARN, Check
from subagents.client.client import Client, Document
from subagents.config.paths import Paths
from subagents.config.user_config import UserConfig
from subagents.errors import ConfigError, SubagentsError
from subagents.extensions.cluster.api.cluster_answers import Cluster
from subagents.extensions.cluster.cli.node_commands import PLACE, REFUSED, troubles
from subagents.extensions.cluster.cluster_settings import ClusterSettings
from subagents.extensions.cluster.node_parts import secret_in
from subagents.text import counted
from subagents.version import __version__


def checks(home: Paths, _diagnostics: Document | None) -> Iterator[Check]:
    """The secret and the nodes; nothing where the daemon is alone."""
    try:
        settings = UserConfig(dict(os.environ), home).at_start.settings
        if settings.table(ClusterSettings).listen is not None:
            secret_in(home, settings)
        elif not (home.state_dir / "cluster").exists():  # else it may be said by a flag of `serve`
            return
    except ConfigError as error:
        if error.details.get("keys") == ["cluster.secret"]:
            yield Check("cluster", FAIL, error.message, error.hint)
        return  # the configuration's own check says it
    yield from _nodes(home)


def _nodes(home: Paths) -> Iterator[Check]:
    """As the daemon sees them; nothing when none runs."""
    try:
        with Client(home.socket, session=session(), timeout_s=10) as client:
            found = read(client.get(PLACE, {"doors": "true"}), Cluster)
    except SubagentsError:
        return
    nodes = found.nodes
    if found.refused:
        fix = "somebody without cluster.secret calls, or writes the database: see the daemon's log"
        yield Check("cluster", WARN, REFUSED.format(found.refused), fix)
    for text, fix in troubles(found):
        yield Check("nodes", FAIL, text, fix)
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
