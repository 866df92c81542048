"""A home with a user file and a project, from which configuration is loaded."""

import os
from pathlib import Path

import pytest

from subagents.config.layers import Config, load
from subagents.config.paths import Paths
from subagents.errors import ConfigError

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/home/somebody"}


class ConfigHome:
    """A home with its user file, and a project directory with its own."""

    def __init__(self, root: Path) -> None:
        self.environ = {**ENVIRON, "SUBAGENTS_HOME": str(root / "home")}
        self.paths = Paths.resolve(self.environ)
        self.user = self.paths.config_file
        self.user.parent.mkdir(parents=True)
        self.cwd = root / "project" / "deep" / "down"
        self.cwd.mkdir(parents=True)
        self.project = root / "project" / "subagents.toml"

    def load(self, **overrides: object) -> Config:
        dotted = {key.replace("__", "."): value for key, value in overrides.items()}
        return load(self.cwd, self.environ, paths=self.paths, overrides=dotted)

    def refusal(self, **overrides: object) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            self.load(**overrides)
        return caught.value


@pytest.fixture
def home(tmp_path: Path) -> ConfigHome:
    return ConfigHome(tmp_path)


LIMIT = "agents.defaults.subagents.max_concurrent"


LIMIT_VARIABLE = "SUBAGENTS_AGENTS__DEFAULTS__SUBAGENTS__MAX_CONCURRENT"
