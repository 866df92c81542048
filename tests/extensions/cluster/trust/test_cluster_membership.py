"""Homes join a cluster over real TLS, with a real PostgreSQL, and nobody else does."""

import logging
import ssl
import stat
import threading
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from tests.extensions.cluster.postgres.postgres_server import PostgresServer
from tests.extensions.cluster.trust_homes import HOST, TrustHomes, asked, listening

from subagents.errors import (
    ConfigError,
    Conflict,
    CorruptState,
    DaemonUnreachable,
    Forbidden,
    StoreUnavailable,
)
from subagents.extensions.cluster.trust import tls
from subagents.extensions.cluster.trust.authority import (
    Authority,
    digest,
    fingerprint,
    new_secret,
    with_join_key,
)
from subagents.extensions.cluster.trust.cluster_membership import leave, make_cluster
from subagents.extensions.cluster.trust.cluster_trust import JOIN_PATH
from subagents.extensions.cluster.trust.join_token import JoinToken, coded
from subagents.extensions.cluster.trust.node_trust import opened
from subagents.extensions.cluster.trust.trust_files import TrustFiles
from subagents.extensions.cluster.trust.trust_tables import StoredCa

NOWHERE = f"https://{HOST}:1"


@pytest.mark.requirement("cluster:join")
def test_a_home_that_joined_is_a_node_among_the_others(homes: TrustHomes) -> None:
    first = homes.make("a")
    with homes.trust("a") as a, listening(a) as url:
        homes.join("b", homes.token(first, url))
        with homes.trust("b") as b, listening(b) as other:
            assert asked(url, b.client_context()) == (200, {"node": "b"})
            assert asked(other, a.client_context()) == (200, {"node": "a"})


@pytest.mark.requirement("cluster:join-once")
def test_a_token_brings_one_home_in(homes: TrustHomes) -> None:
    first = homes.make("a")
    with homes.trust("a") as a, listening(a) as url:
        token = homes.token(first, url)
        homes.join("b", token)
        with pytest.raises(Forbidden, match="was used, has expired or never was"):
            homes.join("c", token)
    assert not homes.files("c").has_joined


@pytest.mark.requirement("cluster:join-once")
def test_of_many_that_bring_a_token_at_the_same_moment_one_gets_in(homes: TrustHomes) -> None:
    first = homes.make("a")
    token = homes.token(first, NOWHERE)
    with homes.trust("a") as a:
        start, admitted = threading.Barrier(8), []

        def bring() -> None:
            start.wait()
            try:
                admitted.append(a.admit(coded(token.secret)))
            except Forbidden:
                admitted.append("")

        threads = [threading.Thread(target=bring) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert sorted(map(bool, admitted)) == [False] * 7 + [True]


@pytest.mark.requirement("cluster:join-once")
def test_a_token_that_expired_opens_nothing_neither_the_database_nor_a_node(
    homes: TrustHomes,
) -> None:
    first = homes.make("a")
    with homes.trust("a") as a, listening(a) as url:
        late = homes.token(first, url, timedelta(microseconds=1))
        with pytest.raises(Forbidden, match="has expired"):
            homes.join("b", late)
        with pytest.raises(Forbidden, match="has expired"):
            a.admit(coded(late.secret))
        with pytest.raises(Forbidden):
            a.admit("no secret at all")


@pytest.mark.requirement("cluster:join-trust")
def test_a_token_of_another_cluster_is_refused_before_anything_is_sent(
    homes: TrustHomes, postgres: PostgresServer, tmp_path: Path
) -> None:
    homes.make("a")
    (tmp_path / "elsewhere").mkdir()
    others = TrustHomes(postgres.url(postgres.new_schema()), tmp_path / "elsewhere")
    token = others.token(others.make("x"), NOWHERE)
    with pytest.raises(Forbidden, match="is another cluster's") as refused:
        homes.join("b", token)
    assert refused.value.guardrail == "ca"
    assert others.tables.token(digest(token.secret)) is not None


@pytest.mark.requirement("cluster:join-trust")
def test_a_node_with_a_certificate_of_another_ca_is_not_told_the_token(
    homes: TrustHomes, postgres: PostgresServer, tmp_path: Path
) -> None:
    first = homes.make("a")
    (tmp_path / "elsewhere").mkdir()
    others = TrustHomes(postgres.url(postgres.new_schema()), tmp_path / "elsewhere")
    others.make("x")
    with others.trust("x") as x, listening(x) as url:
        token = homes.token(first, url)
        with pytest.raises(DaemonUnreachable, match="no certificate of this cluster"):
            homes.join("b", token)
    assert homes.tables.token(digest(token.secret)) is not None


@pytest.mark.requirement("cluster:join-trust")
def test_a_node_with_a_certificate_for_another_host_is_not_told_the_token(
    homes: TrustHomes,
) -> None:
    first = homes.make("a")
    with homes.trust("a", host="10.1.2.3") as a, listening(a) as url:
        token = homes.token(first, url)
        with pytest.raises(DaemonUnreachable, match="for that host"):
            homes.join("b", token)
    assert homes.tables.token(digest(token.secret)) is not None


@pytest.mark.requirement("cluster:mtls")
def test_a_listener_for_nodes_takes_nobody_without_a_certificate_of_the_cluster(
    homes: TrustHomes, postgres: PostgresServer, tmp_path: Path
) -> None:
    first = homes.make("a")
    (tmp_path / "elsewhere").mkdir()
    others = TrustHomes(postgres.url(postgres.new_schema()), tmp_path / "elsewhere")
    foreign = others.make("x")
    with homes.trust("a") as a, others.trust("x"), listening(a) as url:
        nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        nobody.load_verify_locations(first.ca_file)
        stranger = tls.client_context(first.ca(), foreign.node_file)
        for each in (nobody, stranger):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                asked(url, each)
        old = tls.client_context(first.ca(), first.node_file)
        old.minimum_version = ssl.TLSVersion.TLSv1_2
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            asked(url, old)


@pytest.mark.requirement("cluster:join-only")
def test_the_holder_of_a_token_may_join_and_nothing_else(homes: TrustHomes, tmp_path: Path) -> None:
    first = homes.make("a")
    with homes.trust("a") as a, listening(a) as url:
        token = homes.token(first, url)
        certificate = homes.tables.token(digest(token.secret))
        assert certificate is not None
        file = tmp_path / "join.pem"
        file.write_bytes(with_join_key(certificate, token.secret))
        holder = tls.client_context(first.ca(), file)
        status, document = asked(url, holder)
        assert (status, document["message"]) == (
            403,
            "a join token is good for joining, and for nothing else",
        )
        status, document = asked(url, holder, JOIN_PATH, {"secret": coded(new_secret())})
        assert status == 403
        assert document["details"] == {"guardrail": "join_token"}


@pytest.mark.requirement("cluster:init")
def test_a_cluster_is_made_once_and_its_home_may_ask_again(homes: TrustHomes) -> None:
    first = homes.files("a")
    made = make_cluster(first, homes.tables)
    again = make_cluster(first, homes.tables)
    assert (made.is_new, again.is_new) == (True, False)
    assert made.fingerprint == again.fingerprint == fingerprint(first.ca()).hex()
    with pytest.raises(Conflict, match="this home is not in it"):
        make_cluster(homes.files("b"), homes.tables)
    assert not homes.files("b").has_joined


@pytest.mark.requirement("cluster:init")
def test_a_home_of_one_cluster_neither_makes_nor_joins_another(
    homes: TrustHomes, postgres: PostgresServer
) -> None:
    first = homes.make("a")
    other = TrustHomes(postgres.url(postgres.new_schema()), homes.root)
    with pytest.raises(Conflict, match="belongs to a cluster that"):
        make_cluster(first, other.tables)
    assert other.tables.ca() is None
    with pytest.raises(Conflict, match="belongs to a cluster already"):
        homes.join("a", homes.token(first, NOWHERE))
    with pytest.raises(ConfigError, match="has no cluster, and this home belongs to one"):
        opened(first, other.tables)


@pytest.mark.requirement("cluster:leave")
def test_a_home_that_left_has_nothing_of_the_cluster_and_can_join_again(
    homes: TrustHomes,
) -> None:
    first = homes.make("a")
    with homes.trust("a") as a, listening(a) as url:
        second = homes.join("b", homes.token(first, url))
        with homes.trust("b"):
            pass
        assert leave(second)
        assert [*second.directory.iterdir()] == []
        assert not leave(second)
        with pytest.raises(ConfigError, match="this home belongs to no cluster"):
            opened(second, homes.tables)
        homes.join("b", homes.token(first, url))
    assert second.has_joined


# -- what is secret ------------------------------------------------------------------------------


@pytest.mark.requirement("cluster:secrets")
def test_nothing_secret_is_in_the_database_in_logs_or_open_to_others(
    homes: TrustHomes, postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    first = homes.make("a")
    with homes.trust("a") as a, listening(a) as url:
        used, unused = homes.token(first, url), homes.token(first, url)
        second = homes.join("b", used)
        with pytest.raises(Forbidden):
            homes.join("c", used)
    secrets = [first.secret(), used.secret, unused.secret]
    key = first.node_file.read_text().partition("-----BEGIN PRIVATE KEY-----")[2]
    forms = [form for each in secrets for form in (each, each.hex().encode(), coded(each).encode())]
    dumped = _everything(homes, postgres)
    assert b"cluster_ca" in dumped
    assert b"PRIVATE KEY" not in dumped
    logged = caplog.text.encode()
    assert b"joined the cluster" in logged
    for form in (*forms, key.encode()[:64]):
        assert form not in dumped
        assert form not in logged
    for files in (first, second):
        for each in files.directory.iterdir():
            assert stat.S_IMODE(each.stat().st_mode) == 0o600, each
        assert stat.S_IMODE(files.directory.stat().st_mode) == 0o700
    assert "secret=" not in repr(unused)


def _everything(homes: TrustHomes, postgres: PostgresServer) -> bytes:
    """Each row of the schema, with bytes as they are and in hex, after its table's name."""
    schema = homes.url.rpartition("schema=")[2]
    parts = []
    with psycopg.connect(postgres.conninfo()) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)
        ).fetchall()
        for (table,) in tables:
            parts.append(table.encode())
            for row in connection.execute(f"TABLE {schema}.{table}".encode()):
                for value in row:
                    parts += [value, value.hex().encode()] if isinstance(value, bytes) else []
                    parts.append(str(value).encode())
    return b"\n".join(parts)


@pytest.mark.requirement("cluster:secrets")
def test_whoever_has_the_database_alone_cannot_open_the_cas_key(homes: TrustHomes) -> None:
    homes.make("a")
    stored = homes.tables.ca()
    assert stored is not None
    with pytest.raises(CorruptState, match="does not open with this home's secret"):
        Authority.unlocked(stored.certificate, stored.locked_key, new_secret())


@pytest.mark.requirement("cluster:secrets")
def test_a_ca_that_was_put_in_the_place_of_the_clusters_is_not_believed(
    homes: TrustHomes, postgres: PostgresServer
) -> None:
    first = homes.make("a")
    forged = Authority.new("forged", homes.tables.now())
    schema = homes.url.rpartition("schema=")[2]
    with psycopg.connect(postgres.conninfo(), autocommit=True) as connection:
        connection.execute(f"TRUNCATE {schema}.cluster_ca".encode())
    assert homes.tables.put_ca(StoredCa(forged.certificate, forged.locked(new_secret())))
    with pytest.raises(ConfigError, match="is that of another cluster"):
        opened(first, homes.tables)
    assert fingerprint(first.ca()) != fingerprint(forged.certificate)


@pytest.mark.requirement("cluster:secrets")
def test_a_secret_that_others_could_read_is_used_no_more(homes: TrustHomes) -> None:
    first = homes.make("a")
    first.secret_file.chmod(0o644)
    with pytest.raises(ConfigError, match="open to others"):
        opened(first, homes.tables)
    first.secret_file.chmod(0o600)
    first.secret_file.write_text("short\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        opened(first, homes.tables)


@pytest.mark.requirement("cluster:join-trust")
def test_a_database_that_cannot_be_reached_is_named_without_its_password(tmp_path: Path) -> None:
    homes = TrustHomes(f"postgresql://me:hush@{HOST}:1/agents", tmp_path)
    token = JoinToken(NOWHERE, new_secret(), new_secret())
    with pytest.raises(StoreUnavailable, match=rf"postgresql://me@{HOST}:1/agents") as refused:
        homes.join("b", token)
    assert "hush" not in str(refused.value)
    assert not TrustFiles(tmp_path / "b" / "cluster").has_joined
