"""``cluster init token join leave`` as commands, and what ``doctor`` says; no daemon is needed."""

import stat
from pathlib import Path

import pytest
from tests.cli.cli_home import Home
from tests.extensions.cluster.postgres.postgres_server import PostgresServer
from tests.extensions.cluster.trust_homes import HOST, TrustHomes, listening

from subagents.config.paths import Paths
from subagents.extensions.cluster.trust.join_token import coded, parse_token
from subagents.extensions.cluster.trust.trust_files import TrustFiles

AT = f"https://{HOST}:7443"


class Cluster:
    """A home in a cluster, and the address of its database."""

    def __init__(self, home: Home, url: str) -> None:
        self.home = home
        self.url = url
        home.environ["SUBAGENTS_DAEMON__STORE"] = url

    @property
    def paths(self) -> Paths:
        return Paths.resolve(self.home.env())

    @property
    def files(self) -> TrustFiles:
        return TrustFiles(self.paths.cluster_dir)


@pytest.fixture
def cluster(home: Home, postgres: PostgresServer) -> Cluster:
    return Cluster(home, postgres.url(postgres.new_schema()))


@pytest.mark.requirement("cluster:init")
def test_init_makes_a_cluster_and_says_how_the_next_machine_joins(cluster: Cluster) -> None:
    made = cluster.home.ok("cluster", "init", "--url", AT)
    assert "is a cluster's now" in made.err
    assert "On another machine, once, within 15m" in made.err
    token = parse_token(made.out)
    assert token.url == AT
    again = cluster.home.ok("cluster", "init", "--json").json
    assert (again["isNew"], again["token"]) == (False, None)
    assert again["fingerprint"] == token.fingerprint.hex()


@pytest.mark.requirement("cluster:init")
def test_without_a_database_to_share_each_command_says_what_to_set(home: Home) -> None:
    for command in (("init",), ("token",), ("join", f"{AT}#x.y"), ("leave",)):
        refused = home.cli("cluster", *command)
        assert refused.code == 2
        assert "daemon.store is not set" in refused.err


@pytest.mark.requirement("cluster:join")
def test_a_home_joins_by_a_token_and_its_configuration_has_the_database(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.home.ok("cluster", "init")
    first = TrustHomes(cluster.url, tmp_path / "h" / "state")
    with first.trust(".") as trust, listening(trust) as url:
        token = cluster.home.ok("cluster", "token", "--url", url).out.strip()
        (tmp_path / "second" / "work").mkdir(parents=True)
        second = Home(tmp_path / "second")
        joined = second.ok("cluster", "join", "--store", cluster.url, "-", stdin=f"{token}\n")
    assert "subagents serve --listen" in joined.err
    paths = Paths.resolve(second.env())
    assert cluster.url in paths.config_file.read_text()
    assert stat.S_IMODE(paths.config_file.stat().st_mode) == 0o600
    assert TrustFiles(paths.cluster_dir).secret() == cluster.files.secret()
    repeated = second.cli("cluster", "join", token)
    assert (repeated.code, "belongs to a cluster already" in repeated.err) == (1, True)
    secret = parse_token(token).secret
    for text in (joined.out, joined.err, repeated.err):
        assert coded(secret) not in text
    left = second.ok("cluster", "leave", "--yes", "--json")
    assert left.json == {"left": True}
    used = second.cli("cluster", "join", token)
    assert (used.code, "was used, has expired or never was" in used.err) == (4, True)


@pytest.mark.requirement("cluster:join")
def test_what_is_no_token_is_refused_without_being_repeated(cluster: Cluster) -> None:
    secret = "A" * 42
    refused = cluster.home.cli("cluster", "join", f"{AT}#{secret}.{secret}", "--json")
    assert refused.code == 2
    assert secret not in refused.out + refused.err


@pytest.mark.requirement("cluster:join")
def test_a_token_needs_an_address_and_a_bounded_life(cluster: Cluster) -> None:
    cluster.home.ok("cluster", "init")
    for argv, said in (
        ((), "neither cluster.listen nor cluster.url is set"),
        (("--url", "http://a:1"), "--url must be https://HOST"),
        (("--url", AT, "--ttl", "2d"), "at most 24h"),
        (("--url", AT, "--ttl", "0"), "more than 0"),
    ):
        refused = cluster.home.cli("cluster", "token", *argv)
        assert (refused.code, said in refused.err) == (2, True), refused
    made = cluster.home.ok("cluster", "token", env={"SUBAGENTS_CLUSTER__LISTEN": f"{HOST}:7443"})
    assert made.out.startswith(f"{AT}#")


@pytest.mark.requirement("cluster:doctor")
def test_doctor_says_how_a_home_stands_in_its_cluster(cluster: Cluster) -> None:
    def checks() -> dict[str, tuple[str, str]]:
        found = cluster.home.cli("doctor", "--json").rows("checks")
        return {each["name"]: (each["status"], each["detail"]) for each in found}

    assert "cluster" not in checks()
    cluster.home.environ["SUBAGENTS_CLUSTER__LISTEN"] = f"{HOST}:7443"
    status, detail = checks()["cluster"]
    assert (status, "joined no cluster" in detail) == ("fail", True)
    cluster.home.ok("cluster", "init")
    found = checks()
    assert found["cluster"][0] == "ok"
    assert found["certificate"] == ("ok", "none yet: the node makes one when it starts")
    assert found["clock"][0] == "ok"
    with TrustHomes(cluster.url, cluster.paths.state_dir).trust("."):
        pass
    assert "good until" in checks()["certificate"][1]
    places = cluster.home.ok("config", "--paths").out
    assert str(cluster.paths.cluster_dir) in places
