"""How a daemon comes to its row in the database: who keeps it out, and what it writes.

Alone it has the whole database, which belongs to its home, and its right ends with the lock of that
home. As a member it shares the database with other homes, and its right ends by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from hmac import compare_digest
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from subagents.errors import AlreadyRunning, ConfigError, CorruptState
from subagents.extensions.cluster.postgres.home_lock import HomeLock
from subagents.extensions.cluster.postgres.link import Link
from subagents.extensions.cluster.shared_store import Member
from subagents.store import rows
from subagents.store.batch_rows import Written
from subagents.text import counted
from subagents.version import __version__

if TYPE_CHECKING:  # of an extra that a daemon alone does not need
    from subagents.extensions.cluster.trust.signing import Signer

NAMES_SHOWN_MAX: Final = 5


class Node(NamedTuple):
    """The row of one start of a daemon."""

    identity: str
    home: str
    epoch: int
    name: str
    version: str
    is_over: bool
    silent_s: float | None
    """How long it could have been replaced, in seconds; negative while it has a lease to go, or
    missed less than one. None = its lease does not end by itself."""


class Cluster(NamedTuple):
    """What a start looks at."""

    home: str
    """Whose it is alone; empty = it is new, or was shared."""
    epoch: int
    base: int
    """Added to the numbers of this server's transactions from now on."""
    is_signed: bool
    """Whether every run and schedule is."""
    secret_check: bytes | None
    """See ``Signer.check``; None = nobody has signed anything."""
    nodes: Sequence[Node]

    def others(self, home: str) -> Iterator[Node]:
        """Nodes of other homes that are not over."""
        return (each for each in self.nodes if not each.is_over and each.home != home)


def read_cluster(link: Link, sql: Mapping[str, str], shown: str) -> Cluster:
    """Look at who is there.

    Raises:
        CorruptState: It is damaged.
    """
    ((home, epoch, base, checksum, is_signed, check, newest, following),) = link.ask(
        sql["read_cluster"]
    )
    nodes = []
    try:
        rows.verify(checksum, epoch, base)
        for identity, of_home, its_epoch, name, version, is_over, written, silent_s in link.ask(
            sql["read_nodes"]
        ):
            rows.verify(written, identity, of_home, its_epoch)
            nodes.append(
                Node(
                    *(str(identity), str(of_home), int(str(its_epoch)), str(name), str(version)),
                    is_over=bool(is_over),
                    silent_s=None if silent_s is None else float(str(silent_s)),
                )
            )
    except rows.DAMAGE as error:
        raise CorruptState(f"{shown} is damaged: its epoch: {error}") from error
    # Of a copy that was restored into another server, whose transactions have smaller numbers.
    least = int(str(newest)) - int(str(following)) + 1
    base = max(int(str(base)), least)
    known = check if isinstance(check, bytes) else None
    return Cluster(str(home), int(str(epoch)), base, bool(is_signed), known, nodes)


def require_signed(cluster: Cluster, signer: "Signer | None", shown: str, lock: HomeLock) -> None:
    """Refuse a database whose rows a node with this secret, or with none, must not start from.

    What was never signed is taken from the database by a home that had it before, until all of it
    is signed. From then on this home has a file that says so, whatever the database says.

    Raises:
        ConfigError: It is one; nothing was changed.
    """
    if signer is None:
        if cluster.is_signed:
            raise ConfigError(
                f"the runs in {shown} are signed, and this daemon has no secret for them",
                hint="set cluster.listen, and cluster.secret as on its other nodes",
                details={"keys": ["cluster.listen", "cluster.secret"]},
            )
        return
    if cluster.secret_check is not None and not compare_digest(cluster.secret_check, signer.check):
        raise ConfigError(
            f"cluster.secret is not the one with which {shown} was signed",
            hint="give every node of a cluster the same one",
            details={"keys": ["cluster.secret"]},
        )
    if cluster.is_signed or not cluster.epoch:
        signer.require()
    elif signer.is_required:
        raise ConfigError(
            f"{shown} says that its runs are not signed, and this home knew them signed",
            hint="somebody may have changed it. If it is another database, or an older backup:"
            f" rm {signer.marker}",
        )
    elif not lock.has_home:
        raise ConfigError(
            f"runs in {shown} are not signed yet, and this home never worked on it",
            hint="first upgrade the nodes that did: subagents cluster status on one of them. If no"
            f" home of theirs is left: uuidgen > {lock.path}",
        )


def require_alone(cluster: Cluster, home: str, shown: str, lock: Path) -> None:
    """Refuse a database that a daemon of this home cannot have for itself.

    Raises:
        CorruptState: It is another home's.
        AlreadyRunning: Nodes of a cluster work on it.
    """
    if cluster.home not in {"", home}:
        raise CorruptState(
            f"{shown} belongs to another home; nothing was changed",
            hint="name another schema (?schema=NAME), or, if that home is no more, let this"
            f" one have it: echo {cluster.home} > {lock}",
        )
    if names := [e.name for e in cluster.others(home) if e.silent_s is None or e.silent_s < 0]:
        raise AlreadyRunning(
            f"{counted(len(names), 'node')} of a cluster may be at work on {shown}:"
            f" {', '.join(names[:NAMES_SHOWN_MAX])}",
            hint="set cluster.listen to be one of them, or stop them first: subagents down. A node"
            " that was killed is waited for twice as long as its lease.",
        )


def require_shared(cluster: Cluster, home: str, shown: str, lock: Path, name: str) -> None:
    """Refuse a database that another home has for itself, and a name that another node has.

    Raises:
        AlreadyRunning: Its daemon runs, or was killed.
    """
    for node in cluster.others(home):
        if node.silent_s is None:
            raise AlreadyRunning(
                f"a daemon that is no member of a cluster has {shown} for itself: {node.name}",
                hint="stop it (subagents down), and start it with cluster.listen. If it was killed"
                f" and its home is no more, let this one be it: echo {node.home} > {lock}",
            )
        if node.name == name and node.silent_s < 0:
            # Attempts record the name, and calls find the node by it.
            raise AlreadyRunning(
                f"a node called {name} is part of the cluster already, with another home",
                hint="give this one a name of its own: daemon.node, or serve --node NAME",
                details={"keys": ["daemon.node"]},
            )


def joined(
    cluster: Cluster,
    identity: str,
    home: str,
    *,
    owner: str,
    member: Member | None,
    signer: "Signer | None",
) -> Iterator[Written]:
    """What makes a daemon a node; the right of those that had what it takes is over by it."""
    epoch, base = cluster.epoch + 1, cluster.base
    is_alone = member is None
    its_home = home if is_alone else ""
    yield "join_cluster", [(epoch, its_home, base, rows.checksum(epoch, base))]
    yield "end_home", [(None if is_alone else home,)]
    said = member or Member(name=owner, url=None, labels=(), slots=None, lease_s=0)
    lease_ms = None if member is None else round(member.lease_s * 1000)
    labels = msgspec.json.encode(said.labels).decode()
    node = (identity, home, epoch, owner, said.name, said.url, labels, said.slots, __version__)
    shown = None if signer is None else said.certificate
    signature = signer.sign("node", identity, said.name, shown) if signer and shown else None
    checksum = rows.checksum(identity, home, epoch)
    yield "insert_node", [(*node, lease_ms, checksum, shown, signature)]
    if signer is not None:
        yield "sign_cluster", [(signer.check, int(signer.is_required))]
    yield "inherit_parts", [(identity, None if is_alone else home)]
    yield "forget_nodes", [()]
