"""Making a cluster, and bringing homes into it; for the command line, everything here blocks."""

import http.client
import json
import ssl
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from cryptography import x509

from subagents.errors import (
    Conflict,
    DaemonUnreachable,
    Forbidden,
    Unavailable,
)
from subagents.extensions.cluster.trust import tls
from subagents.extensions.cluster.trust.authority import (
    Authority,
    digest,
    fingerprint,
    new_secret,
    with_join_key,
)
from subagents.extensions.cluster.trust.cluster_trust import JOIN_PATH
from subagents.extensions.cluster.trust.join_token import JoinToken, coded, decoded
from subagents.extensions.cluster.trust.node_trust import opened, unusable_token
from subagents.extensions.cluster.trust.trust_files import TrustFiles
from subagents.extensions.cluster.trust.trust_tables import StoredCa, TrustTables

ANSWER_S: Final = 15.0
ANSWER_BYTES_MAX: Final = 64 * 1024


class Made(NamedTuple):
    """A cluster."""

    fingerprint: str
    """The digest of its CA, in hexadecimal."""
    is_new: bool
    """False = this home had made it, or joined it, before."""


def make_cluster(files: TrustFiles, tables: TrustTables) -> Made:
    """Make the database a cluster's, and this home its first one. Safe to repeat.

    Raises:
        Conflict: It is the cluster of other homes, or this home belongs to another one.
        CorruptState, StoreUnavailable: See ``TrustTables.make``.
    """
    tables.make()
    if (stored := tables.ca()) is None:
        secret = new_secret()
        authority = Authority.new("subagents cluster", tables.now())
        made = StoredCa(authority.certificate, authority.locked(secret))
        _require_homeless(files, tables)
        # Before the database has it: of a key without its secret nothing could be made.
        files.put(authority.certificate, secret)
        if tables.put_ca(made):
            return Made(fingerprint(authority.certificate).hex(), is_new=True)
        files.remove()  # somebody else was first
        stored = tables.ca()
    if stored is None or not files.has_joined:
        raise Conflict(
            f"{tables.place} has a cluster already, and this home is not in it",
            hint="on one of its nodes: subagents cluster token; here: subagents cluster join TOKEN",
        )
    return Made(fingerprint(opened(files, tables).certificate).hex(), is_new=False)


def _require_homeless(files: TrustFiles, tables: TrustTables) -> None:
    if files.has_joined:
        raise Conflict(
            f"this home belongs to a cluster that {tables.place} does not know",
            hint="correct daemon.store; or leave that cluster first: subagents cluster leave",
        )


def make_token(
    files: TrustFiles, tables: TrustTables, *, url: str, node: str, life: timedelta
) -> str:
    """A text with which one machine can join, once.

    Args:
        files: Of a home in the cluster.
        tables: Of its database.
        url: Of a node that is asked.
        node: Who makes it; for people.
        life: From now on.

    Raises:
        ConfigError, CorruptState, StoreUnavailable: See ``opened``.
    """
    authority, now, secret = opened(files, tables), tables.now(), new_secret()
    certificate = authority.issue_join(secret, now, life)
    tables.put_token(digest(secret), certificate, node, now + life)
    return JoinToken(url, secret, fingerprint(authority.certificate)).text


def join(files: TrustFiles, tables: TrustTables, token: JoinToken) -> None:
    """Bring this home into the cluster, and burn the token.

    The database tells whose cluster it is, which the token's fingerprint proves; what this home
    lacks comes from a node with a certificate of that cluster.

    Raises:
        Conflict: This home belongs to a cluster.
        Forbidden: The database's CA is not the one of the token (``guardrail`` "ca"), or the token
            is of no use ("join_token").
        DaemonUnreachable: The node does not answer, or is none of the cluster.
        StoreUnavailable: The database cannot be asked.
    """
    if files.has_joined:
        raise Conflict(
            f"this home belongs to a cluster already: {files.directory}",
            hint="to join another one, leave it first: subagents cluster leave",
        )
    stored = tables.ca()
    if stored is None or fingerprint(stored.certificate) != token.fingerprint:
        whose = "has no cluster" if stored is None else "is another cluster's"
        raise Forbidden(
            f"the token is of another cluster: {tables.place} {whose}",
            guardrail="ca",
            hint="give the address that daemon.store has on the nodes of the cluster: --store URL",
        )
    certificate = tables.token(digest(token.secret))
    if certificate is None:
        raise unusable_token()
    files.directory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix="join-", dir=files.directory.parent) as directory:
        secret = _asked(token, stored.certificate, certificate, Path(directory) / "join.pem")
    # Whether it is the one, before it is kept.
    Authority.unlocked(stored.certificate, stored.locked_key, secret)
    files.put(stored.certificate, secret)


def _asked(
    token: JoinToken, ca: x509.Certificate, certificate: x509.Certificate, file: Path
) -> bytes:
    """The cluster's secret, from a node."""
    file.touch(mode=0o600)
    file.write_bytes(with_join_key(certificate, token.secret))
    at = urlsplit(token.url)
    calling = http.client.HTTPSConnection(
        at.hostname or "", at.port, timeout=ANSWER_S, context=tls.client_context(ca, file)
    )
    body = json.dumps({"secret": coded(token.secret)})
    try:
        calling.request("POST", JOIN_PATH, body, {"Content-Type": "application/json"})
        answered = calling.getresponse()
        document = json.loads(answered.read(ANSWER_BYTES_MAX))
    except ssl.SSLCertVerificationError as error:
        raise DaemonUnreachable(
            f"what answers at {token.url} has no certificate of this cluster for that host:"
            f" {error.verify_message}",
            hint="cluster.url of that node must be the address in the token; nothing was given"
            " away, and the token is as good as before",
        ) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DaemonUnreachable(
            f"the node at {token.url} does not answer: {error}",
            hint="is its daemon up, and the port open from here? The token may be used up: make a"
            " new one if it is refused",
        ) from error
    finally:
        calling.close()
    return _secret(document, answered.status, token.url)


def _secret(document: object, status: int, url: str) -> bytes:
    found = document if isinstance(document, dict) else {}
    if status == http.HTTPStatus.OK and isinstance(found.get("secret"), str):
        return decoded(found["secret"])
    details = found.get("details")
    if isinstance(details, dict) and details.get("guardrail") == "join_token":
        raise unusable_token()
    raise Unavailable(
        f"the node at {url} refused: {found.get('message') or status}",
        hint="its log says why: daemon.log in its state directory",
    )


def leave(files: TrustFiles) -> bool:
    """Forget the cluster; False = this home belonged to none."""
    had_joined = files.has_joined
    files.remove()
    return had_joined
