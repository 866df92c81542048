"""What nodes with nothing to do ask the database, counted in its own log."""

import re
from pathlib import Path

import psycopg
import pytest
from tests.e2e.live_home import until
from tests.extensions.cluster.nodes.cluster_rig import ClusterRig
from tests.extensions.cluster.nodes.node_calls import client_of, other_than, result_of, spawned
from tests.extensions.cluster.postgres.postgres_server import PostgresServer

SESSION = "agent:main:idle"
RENEWALS = 16
"""Of two nodes, four in each lease: two leases."""
ROOM = 8
"""For what is tidied now and then."""


@pytest.mark.requirement("cluster:places")
def test_an_idle_node_renews_and_looks_once_each_quarter_of_a_lease_and_asks_for_no_offers(
    server: PostgresServer, tmp_path: Path
) -> None:
    with ClusterRig(server, tmp_path, nodes=2) as rig:
        owner = rig.owner_of(SESSION)
        place = other_than(rig, owner)
        with (
            psycopg.connect(server.conninfo(), autocommit=True) as asked,
            client_of(owner, SESSION) as client,
        ):
            assert result_of(client, spawned(client, tmp_path, "true"))[0] == "ok"
            asked.execute("ALTER SYSTEM SET log_statement = 'all'")
            asked.execute("SELECT pg_reload_conf()")

            def statements() -> list[str]:
                text = (server.directory / "log").read_text()
                return re.findall(r"LOG:  (?:statement|execute [^:]+): (.*)", text)

            def since_offers() -> list[str] | None:
                """Those since the last that was about offers, once they are enough."""
                found = statements()
                about = [at for at, each in enumerate(found) if ".offer" in each]
                rest = found[about[-1] + 1 if about else 0 :]
                renewed = [at for at, each in enumerate(rest) if "SET until" in each]
                return rest[: renewed[RENEWALS - 1]] if len(renewed) >= RENEWALS else None

            quiet = until(since_offers, what="nobody asks for offers")
            assert len(quiet) <= 2 * RENEWALS + ROOM, quiet

            # Nor does a run on another node: its place says yes by itself.
            before = len(statements())
            run_id = spawned(client, tmp_path, "true", place=place.name)
            assert result_of(client, run_id)[0] == "ok"
            about = [each for each in statements()[before:] if ".offer" in each]
            assert [each.split()[0] for each in about] == ["DELETE"], about
