"""A node's certificate: what is in it, and that a new one takes its place while it is used."""

import http.client
import ipaddress
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from tests.extensions.cluster.trust_homes import (
    HOST,
    TrustHomes,
    asked,
    listening,
    shown_certificate,
)

from subagents.errors import ConfigError
from subagents.extensions.cluster.trust.authority import EARLIER, NODE_LIFE, Authority, certifiable
from subagents.extensions.cluster.trust.cluster_trust import peer_node
from subagents.extensions.cluster.trust.node_trust import NodeTrust
from subagents.extensions.cluster.trust.trust_files import TrustFiles
from subagents.extensions.cluster.trust.trust_tables import TrustTables

SECONDS = 30.0


def until(condition: Callable[[], bool]) -> None:
    """Return once it holds; fails after ``SECONDS``."""
    due = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < due
        time.sleep(0.02)


@pytest.mark.requirement("cluster:certificates")
def test_a_certificate_is_a_days_for_a_name_and_its_hosts_on_both_ends() -> None:
    now = datetime(2026, 11, 27, 12, tzinfo=UTC)
    authority = Authority.new("a cluster", now)
    hosts = certifiable(["10.0.0.5", "fd00::5", "a.example", "a.example", "node_1", ""])
    found = authority.issue_node("a", hosts, now).certificate
    assert found.not_valid_before_utc == now - EARLIER
    assert found.not_valid_after_utc == now + NODE_LIFE == now + timedelta(hours=24)
    assert found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "a"
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.example"]
    assert names.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address("10.0.0.5"),
        ipaddress.ip_address("fd00::5"),
    ]
    usage = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(usage) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    found.verify_directly_issued_by(authority.certificate)


@pytest.mark.requirement("cluster:renewal")
def test_a_running_node_shows_a_new_certificate_and_its_connections_go_on(
    homes: TrustHomes,
) -> None:
    first = homes.make("a")
    with homes.trust("a") as a, listening(a) as url:
        homes.join("b", homes.token(first, url))
        with homes.trust("b") as b:
            server, client = a.server_context(), b.client_context()
            before = shown_certificate(url, client)
            port = int(url.rpartition(":")[2])
            kept = http.client.HTTPSConnection(HOST, port, context=client, timeout=SECONDS)
            kept.request("GET", "/")
            assert kept.getresponse().read() == b'{"node":"b"}'
            a.renew()
            b.renew()
            assert a.server_context() is server
            assert b.client_context() is client
            after = shown_certificate(url, client)
            kept.request("GET", "/")
            assert kept.getresponse().read() == b'{"node":"b"}'
            kept.close()
            assert asked(url, client) == (200, {"node": "b"})
    assert before != after
    assert x509.load_der_x509_certificate(after).issuer == first.ca().subject


@pytest.mark.requirement("cluster:renewal")
def test_a_certificate_is_renewed_at_half_its_life(homes: TrustHomes) -> None:
    homes.make("a")
    with homes.trust("a", timedelta(seconds=4)) as a, listening(a) as url:
        seen = {shown_certificate(url, a.client_context())}

        def has_third() -> bool:
            seen.add(shown_certificate(url, a.client_context()))
            return len(seen) > 2

        until(has_third)
        assert a.ends_at_ms > datetime.now(UTC).timestamp() * 1000


@pytest.mark.requirement("cluster:renewal")
def test_while_the_database_is_away_the_certificate_stays_and_is_renewed_afterwards(
    homes: TrustHomes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    homes.make("a")
    tables = TrustTables(homes.url)
    trust = NodeTrust(
        homes.files("a"), tables, node="a", hosts=[HOST], life=timedelta(seconds=60), look_s=0.02
    )
    trust.start()
    try:
        was = trust.ends_at_ms
        away = TrustTables(f"postgresql://me:hush@{HOST}:1/agents")
        trust._tables = away
        trust._wall = lambda: datetime.now(UTC) + timedelta(seconds=40)
        until(lambda: "cannot be renewed" in caplog.text)
        assert trust.ends_at_ms == was
        trust._tables = tables
        until(lambda: trust.ends_at_ms > was)
    finally:
        trust.close()
    assert "hush" not in caplog.text


@pytest.mark.requirement("cluster:join")
def test_a_home_that_did_not_join_starts_no_node_and_is_told_how(tmp_path: Path) -> None:
    trust = NodeTrust(
        TrustFiles(tmp_path / "cluster"),
        TrustTables(f"postgresql://{HOST}:1/agents"),
        node="a",
        hosts=[HOST],
    )
    with pytest.raises(ConfigError, match="belongs to no cluster") as refused:
        trust.start()
    assert "subagents cluster join TOKEN" in (refused.value.hint or "")
    trust.close()


@pytest.mark.requirement("cluster:mtls")
def test_the_name_of_a_node_is_in_its_certificate_and_that_of_a_token_is_none() -> None:
    def named(name: str) -> dict[str, object]:
        return {"subject": ((("organizationName", "x"),), (("commonName", name),))}

    assert peer_node(named("a")) == "a"
    for nobody in (None, {}, {"subject": ()}, named(""), named("join:0123456789abcdef")):
        assert peer_node(nobody) is None
