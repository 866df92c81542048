"""Two versions on one database: the next one is a copy of ours with a version and a migration more.

The nodes are replaced one after the other under load, and one of the old version is killed and
started again when the schema is the new one's already.
"""

import re
import shutil
from pathlib import Path
from typing import Final

import pytest
from tests.extensions.cluster.nodes.cluster_load import ClusterLoad, judge, shown
from tests.extensions.cluster.nodes.cluster_rig import ClusterNode, ClusterRig
from tests.extensions.cluster.postgres.postgres_server import PostgresServer

import subagents
from subagents.extensions.cluster.postgres.postgres_migrations import scripts
from subagents.version import __version__

NEXT: Final = "999.0.0"
LEASE_S: Final = 6.0
"""Longer than a daemon takes to start again: nothing of one that was killed is repeated."""

pytestmark = pytest.mark.timeout(400)


def next_version(directory: Path) -> Path:
    """A directory from which the next version is imported."""
    package = directory / "subagents"
    ours = Path(subagents.__file__).parent
    shutil.copytree(ours, package, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / "version.py"
    text, number = re.subn(r'"[\d.]+\w*"$', f'"{NEXT}"', file.read_text(), flags=re.MULTILINE)
    assert number == 1
    file.write_text(text)
    newest = scripts()[-1][0]
    steps = package / "extensions/cluster/postgres/migrations"
    (steps / f"{newest + 1:04}_later.sql").write_text(
        f"-- {newest + 1:04} later: what only the next version writes\n--\n-- needs {newest:04}\n\n"
        "ALTER TABLE {schema}.run ADD COLUMN later text;\n"
        "CREATE TABLE {schema}.later (id integer PRIMARY KEY);\n"
    )
    return directory


def versions(rig: ClusterRig) -> set[str]:
    """Of the nodes whose right holds."""
    found = rig.asked("SELECT version FROM node WHERE NOT is_over AND until > clock_timestamp()")
    return {str(version) for (version,) in found}


def newest_migration(rig: ClusterRig) -> int:
    ((found,),) = rig.asked("SELECT max(number) FROM migration")
    return int(found)


@pytest.mark.requirement("cluster:upgrade")
def test_nodes_of_two_versions_work_beside_each_other_and_no_run_notices_the_upgrade(
    server: PostgresServer, tmp_path: Path
) -> None:
    path = next_version(tmp_path / "next")
    root = tmp_path / "rig"
    root.mkdir()
    with ClusterRig(server, root, lease_s=LEASE_S) as rig:
        before = newest_migration(rig)
        load = ClusterLoad(rig, sessions=9, runs=300, seconds=(0.5, 1.5), pause_s=2)
        load.begin()
        load.until_accepted(27)

        def upgrade(node: ClusterNode) -> None:
            load.note("drained for the next version", node.name)
            node.drain()
            node.home._env["PYTHONPATH"] = str(path)
            node.start()
            rig.until_divided()

        first, second, third = rig.nodes
        upgrade(first)
        assert versions(rig) == {__version__, NEXT}
        assert newest_migration(rig) == before + 1
        second.kill()
        second.start()
        rig.until_divided()
        assert versions(rig) == {__version__, NEXT}
        upgrade(second)
        upgrade(third)
        assert versions(rig) == {NEXT}
        assert not load.is_done, "the load was over before the upgrade was"
        load.is_enough = True
        load.finish(120)
        found = judge(load)

    assert found.wrong == [], shown(found.settled_after_s)
    assert found.repeated == 0
