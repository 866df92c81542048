"""The secret of a cluster, as a node is given it."""

from pathlib import Path

import pytest

from subagents.config.layers import load
from subagents.config.paths import Paths
from subagents.errors import ConfigError
from subagents.extensions.cluster.node_parts import secret_in

TABLE = '[daemon]\nstore = "postgresql:///x"\n[cluster]\nlisten = "127.0.0.1:1"\nsecret = "{}"\n'


@pytest.mark.requirement("cluster:secret")
def test_the_secret_is_in_the_environment_or_in_a_file_that_is_its_owners_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    paths.ensure()
    paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text(TABLE.format("of-sixteen-characters"))
    paths.config_file.chmod(0o644)
    settings = load(None, {}, paths=paths).settings
    with pytest.raises(ConfigError, match="others can read") as refused:
        secret_in(paths, settings)
    assert "chmod 600" in (refused.value.hint or "")
    paths.config_file.chmod(0o600)
    assert secret_in(paths, settings) == b"of-sixteen-characters"
    paths.config_file.chmod(0o644)
    given = {"SUBAGENTS_CLUSTER__SECRET": "another-of-sixteen\n"}
    monkeypatch.setenv(*next(iter(given.items())))
    assert secret_in(paths, load(None, given, paths=paths).settings) == b"another-of-sixteen"


@pytest.mark.requirement("cluster:secret")
@pytest.mark.parametrize("secret", ["fifteen-letters", "with a space inside of it"])
def test_one_that_is_too_short_is_refused_unseen_with_what_makes_one(
    secret: str, tmp_path: Path
) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    with pytest.raises(ConfigError, match="openssl rand -base64 32") as refused:
        load(None, {}, paths=paths, user_text=TABLE.format(secret))
    assert secret not in str(refused.value)


@pytest.mark.requirement("cluster:secret")
def test_a_node_without_a_secret_is_told_what_makes_one(tmp_path: Path) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    text = TABLE.format("x").replace('secret = "x"\n', "")
    with pytest.raises(ConfigError, match=r"cluster\.listen needs cluster\.secret") as refused:
        load(None, {}, paths=paths, user_text=text)
    assert "openssl rand -base64 32" in (refused.value.hint or "")
