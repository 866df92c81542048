"""Work on another node than the one that decides about it, with real daemons."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.e2e.live_home import until
from tests.extensions.cluster.nodes.cluster_rig import ClusterNode, ClusterRig
from tests.extensions.cluster.nodes.node_calls import client_of, other_than, result_of, spawned
from tests.extensions.cluster.postgres.postgres_server import PostgresServer
from tests.repository import a_repository

from subagents.errors import UsageError

SESSION = "agent:main:places"
VERDICT = '{"verdict": "pass"}'
CRITIC = f"""
[agents.critic]
runtime = "command"
command = ["sh", "-c", "echo judged by $SUBAGENTS_SOCKET > judge.txt; echo $VERDICT"]
env = {{ VERDICT = '{VERDICT}' }}
"""


@pytest.mark.requirement("cluster:places")
def test_a_run_works_on_the_node_with_its_label_and_outlives_its_owners_daemon(
    server: PostgresServer, tmp_path: Path
) -> None:
    with ClusterRig(server, tmp_path, nodes=2) as rig, ExitStack() as stack:
        owner = rig.owner_of(SESSION)
        place = other_than(rig, owner)
        client = stack.enter_context(client_of(owner, SESSION))
        go, begun = tmp_path / "go", tmp_path / "begun"
        script = (
            f"echo $$ > {begun}; until test -e {go}; do sleep 0.05; done; echo $SUBAGENTS_SOCKET"
        )
        run_id = spawned(client, tmp_path, script, place=place.name)
        pid = until(lambda: begun.exists() and begun.read_text().strip(), what="it works")

        owner.kill()
        owner.start()
        go.touch()

        assert result_of(client, run_id) == ("ok", str(place.home.paths.socket))
        shown: Any = client.get(f"/v1/runs/{run_id}")
        assert [each["node"] for each in shown["attempts"]] == [place.name]
        assert begun.read_text().strip() == pid


@pytest.mark.requirement("cluster:places")
def test_a_label_that_no_node_has_is_refused_and_says_which_there_are(
    server: PostgresServer, tmp_path: Path
) -> None:
    with ClusterRig(server, tmp_path, nodes=2) as rig, ExitStack() as stack:
        owner = rig.owner_of(SESSION)
        client = stack.enter_context(client_of(owner, SESSION))
        with pytest.raises(UsageError, match=r"no node has the label .*: n1, n2"):
            spawned(client, tmp_path, "true", place="gpu")


@pytest.mark.requirement("cluster:files-at-place")
def test_a_worktree_a_contract_and_what_it_names_are_where_the_work_is(
    server: PostgresServer, tmp_path: Path
) -> None:
    repository = a_repository(tmp_path / "repository")
    contract: dict[str, object] = {
        "artifacts": [{"path": "out.txt"}],
        "commands": ['echo "checked by $HOME" > by.txt'],
    }
    judge = {"agentId": "critic", "criteria": "is it good", "access": "full"}
    with ClusterRig(server, tmp_path, nodes=2, agents=CRITIC) as rig, ExitStack() as stack:
        owner = rig.owner_of(SESSION)
        place = other_than(rig, owner)
        client = stack.enter_context(client_of(owner, SESSION))
        run_id = spawned(
            client,
            repository,
            "pwd; echo made > out.txt",
            place=place.name,
            isolation="worktree",
            verification={**contract, "judge": judge},
        )
        status, result = result_of(client, run_id)
        shown: Any = client.get(f"/v1/runs/{run_id}")
        assert (status, shown["verification"]["status"]) == ("ok", "passed"), shown
        tree = shown["workspace"]["path"]
        assert Path(tree).parent == place.home.paths.worktrees_dir
        assert str(result).strip() == tree
        diff: Any = client.get(f"/v1/runs/{run_id}/diff")
        assert f"+checked by {place.home.root}" in diff["text"]
        assert f"+judged by {place.home.paths.socket}" in diff["text"]
        assert "+made" in diff["text"]
        named: Any = client.get(f"/v1/runs/{run_id}/artifacts")
        assert [(each["path"], each["bytes"]) for each in named["artifacts"]] == [("out.txt", 5)]

        # Whose contract fails is told why, and its next attempt finds its work as it was.
        mended = spawned(
            client,
            repository,
            "if test -e half; then echo x > out.txt; else echo > half; fi",
            place=place.name,
            isolation="worktree",
            verification={**contract, "onFailure": "retry_once"},
        )
        assert result_of(client, mended)[0] == "ok"


@pytest.mark.requirement("cluster:slots")
def test_one_session_uses_the_slots_of_all_nodes(server: PostgresServer, tmp_path: Path) -> None:
    env = {"SUBAGENTS_CLUSTER__SLOTS": "1"}
    with ClusterRig(server, tmp_path, nodes=2, env=env) as rig, ExitStack() as stack:
        owner = rig.owner_of(SESSION)
        client = stack.enter_context(client_of(owner, SESSION))
        go = tmp_path / "go"
        script = f"until test -e {go}; do sleep 0.05; done; echo $SUBAGENTS_SOCKET"
        run_ids = [spawned(client, tmp_path, script) for _ in range(4)]

        def running() -> int:
            return sum(len(_workers(node)) for node in rig.nodes)

        until(lambda: running() == 2, what="two work")
        assert [len(_workers(node)) for node in rig.nodes] == [1, 1]
        go.touch()
        results = [result_of(client, each) for each in run_ids]
        assert {status for status, _ in results} == {"ok"}
        assert {socket for _, socket in results} <= {
            str(node.home.paths.socket) for node in rig.nodes
        }


HOLD = """
SET search_path = {schema};
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM pg_advisory_xact_lock_shared({key}); RETURN NEW; END $$;
CREATE TRIGGER hold BEFORE INSERT ON journal FOR EACH ROW
  WHEN (NEW.type = 'AttemptPlaced') EXECUTE FUNCTION hold();
SELECT pg_advisory_lock({key});
"""
KEY = 3434
HELD = f"FROM pg_locks WHERE objid = {KEY} AND NOT granted"


@pytest.mark.requirement("cluster:places")
@pytest.mark.parametrize("dies", ["the place", "the owner"])
def test_what_dies_between_the_yes_of_a_node_and_its_start_costs_a_run_no_retry(
    dies: str, server: PostgresServer, tmp_path: Path
) -> None:
    env = {"SUBAGENTS_CLUSTER__SLOTS": "1"}
    with ClusterRig(server, tmp_path, env=env, lease_s=4) as rig, ExitStack() as stack:
        owner = rig.owner_of(SESSION)
        asked, other = (each for each in rig.nodes if each is not owner)
        busy = stack.enter_context(client_of(owner, SESSION))
        spawned(busy, tmp_path, f"until test -e {tmp_path}/go; do sleep 0.05; done")
        until(lambda: _workers(owner), what="the owner has no slot")
        lines = tmp_path / "lines"
        with placed_later(rig):
            run_id = spawned(busy, tmp_path, f"echo $SUBAGENTS_SOCKET >> {lines}")
            until(lambda: rig.asked(f"SELECT pid {HELD}"), what="a yes", pause_s=0.01)
            if dies == "the place":
                asked.kill_with_workers()
            else:
                owner.kill_with_workers()
                rig.asked(f"SELECT pg_terminate_backend(pid) {HELD}")
        client = stack.enter_context(client_of(other, SESSION))
        assert result_of(client, run_id) == ("ok", "")
        shown: Any = client.get(f"/v1/runs/{run_id}")
        [attempt] = shown["attempts"]
        at = next(each for each in rig.nodes if each.name == attempt["node"])
        assert at.is_up
        assert at is not owner
        assert lines.read_text().split() == [str(at.home.paths.socket)]


@contextmanager
def placed_later(rig: ClusterRig) -> Iterator[None]:
    """Nobody can store where an attempt has its place until the block ends."""
    with psycopg.connect(rig.server.conninfo(), autocommit=True) as holder:
        psycopg.ClientCursor(holder).execute(HOLD.format(schema=rig.schema, key=KEY).encode())
        yield


def _workers(node: ClusterNode) -> list[Path]:
    return [
        each.parent
        for each in node.home.paths.attempts_dir.glob("*/*/pid")
        if not (each.parent / "exit").exists()
    ]
