"""``cluster status drain`` with two real daemons on one database."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.cli_home import Home, temporary_home, until
from tests.extensions.cluster.pinned_nodes import HOST, SECRET
from tests.extensions.cluster.postgres.postgres_server import PostgresServer
from tests.free_ports import free_port

from subagents.cli.main import main
from subagents.config.paths import Paths
from subagents.errors import EXIT_UNREACHABLE


class Node:
    """A home with a daemon that is a node."""

    def __init__(self, home: Home, name: str, url: str) -> None:
        self.home = home
        self.name = name
        self.listen = f"{HOST}:{free_port()}"
        home.environ["SUBAGENTS_DAEMON__STORE"] = url
        home.environ["SUBAGENTS_CLUSTER__SECRET"] = SECRET
        self.daemon: subprocess.Popen[str] | None = None

    def serve(self, *flags: str) -> None:
        argv = ("serve", "--node", self.name, "--listen", self.listen, *flags)
        self.daemon = daemon = self.home.start(*argv)
        socket = Paths.resolve(self.home.env()).socket
        until(lambda: socket.exists() or daemon.poll() is not None, "it answers")
        assert daemon.poll() is None, daemon.communicate()

    def rows(self) -> dict[str, dict[str, object]]:
        found = self.home.ok("cluster", "status", "--json").rows("nodes")
        return {str(each["name"]): each for each in found if each["alive"]}

    def parts(self, name: str) -> int:
        row = self.rows().get(name)
        return int(str(row["partitions"])) if row else 0


def has_both(seen_by: Node) -> bool:
    """Whether each of the two decides about something."""
    rows = seen_by.rows()
    return len(rows) == 2 and all(int(str(each["partitions"])) for each in rows.values())


@pytest.fixture
def nodes(tmp_path: Path, postgres: PostgresServer) -> Iterator[tuple[Node, Node]]:
    """Two nodes of one cluster."""
    url = postgres.url(postgres.new_schema())
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with temporary_home(tmp_path / "a") as first, temporary_home(tmp_path / "b") as second:
        a, b = Node(first, "a", url), Node(second, "b", url)
        try:
            a.serve("--labels", "gpu,linux", "--slots", "8")
            b.serve()
            yield a, b
        finally:
            for each in (a, b):
                if each.daemon is not None:
                    each.daemon.terminate()
                    each.daemon.communicate(timeout=60)


@pytest.mark.requirement("cluster:status", "cluster:drain")
def test_nodes_are_listed_and_one_is_drained_and_taken_back(nodes: tuple[Node, Node]) -> None:
    a, b = nodes
    until(lambda: has_both(a), "both have some")
    row = a.rows()["a"]
    assert (row["labels"], row["slots"], row["isSelf"]) == (["gpu", "linux"], 8, True)
    assert row["url"] == f"https://{a.listen}"
    table = b.home.ok("cluster", "status").out.splitlines()
    assert table[0].split() == ["NODE", "STATE", "PARTS", "SLOTS", "LABELS", "VERSION", "URL"]
    assert re.match(r"a +alive +\d+ +8 +gpu,linux +\S+ +https://", table[1])
    assert re.match(r"b \(here\) +alive +\d+ +- +- +\S+ +https://", table[2])
    assert all(len(line) <= 80 for line in table)

    drained = a.home.ok("cluster", "drain", "--wait", "--timeout", "60s")
    assert "it decides about nothing" in drained.err
    assert (b.parts("a"), b.rows()["a"]["draining"]) == (0, True)
    until(lambda: b.parts("b") == 256, "the other one has them all")
    alive = b.home.cli("cluster", "forget", "a", "--yes")
    assert (alive.code, "node a is alive" in alive.err) == (1, True)
    assert 'no node "c"' in b.home.cli("cluster", "forget", "c", "--yes").err
    assert "no other node is alive" in b.home.ok("cluster", "drain", "--wait").err
    assert "256 partitions without a node" in b.home.ok("cluster", "status").err
    b.home.ok("cluster", "drain", "--undo")
    a.home.ok("cluster", "drain", "--undo")
    until(lambda: has_both(b), "both have some again")

    checks = {each["name"]: each for each in b.home.cli("doctor", "--json").rows("checks")}
    assert checks["nodes"]["status"] == "ok", checks


@pytest.mark.requirement("cluster:doors-called")
def test_a_node_that_is_not_reached_at_its_url_is_named_with_what_mends_it(
    nodes: tuple[Node, Node],
) -> None:
    a, b = nodes
    # A door of nobody, then that of the other one.
    for url, why in (
        (f"https://{HOST}:{free_port()}", ""),
        (f"https://{a.listen}", "node a answers"),
    ):
        assert b.daemon is not None
        b.daemon.terminate()
        b.daemon.communicate(timeout=60)
        b.home.environ["SUBAGENTS_CLUSTER__URL"] = url
        b.serve()
        for node in (a, b):
            until(lambda at=node: "b" in at.rows(), "it is listed")  # type: ignore[misc]
            said = node.home.ok("cluster", "status").err
            assert f"node b is not reached at {url}: {why}" in said, said
            assert "node a is not reached" not in said
            assert "on b, set cluster.url" in said
            checks = node.home.cli("doctor", "--json").rows("checks")
            [found] = [e for e in checks if "is not reached" in str(e["detail"])]
            assert (found["name"], found["status"]) == ("nodes", "fail")


@pytest.mark.requirement("cluster:secrets")
def test_the_logs_of_nodes_have_no_secret_of_the_cluster(nodes: tuple[Node, Node]) -> None:
    for node in nodes:
        paths = Paths.resolve(node.home.env())
        log = paths.log_file.read_text()
        assert "other nodes reach us" in log
        assert "PRIVATE KEY" not in log
        assert SECRET not in log
        for command in (("cluster", "status", "--json"), ("config",), ("config", "--json")):
            assert SECRET not in node.home.ok(*command).out
        assert SECRET not in node.home.cli("doctor", "--json").out


@pytest.mark.requirement("cluster:join")
@pytest.mark.parametrize("name", ["init", "join", "leave", "token"])
def test_a_command_that_is_gone_says_what_to_do_instead(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", name, "--json"]) == 2
    assert "cluster.secret on each node" in capsys.readouterr().out


@pytest.mark.requirement("cluster:join")
@pytest.mark.parametrize("words", [("status",), ("drain",), ("forget", "b", "--yes")])
def test_no_command_about_nodes_starts_a_daemon_in_place_of_the_one_that_is_to_be_the_node(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SUBAGENTS_HOME", str(tmp_path))
    monkeypatch.delenv("SUBAGENTS_SOCKET", raising=False)
    assert main(["cluster", *words]) == EXIT_UNREACHABLE
    assert "no daemon answers" in capsys.readouterr().err
    assert not Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)}).state_dir.exists()
