"""The user's own configuration as it is now, or, while it is wrong, as it was last.

A daemon that did not start because of a typing error would leave workers whose output is neither
recorded nor verified nor delivered. So it starts as it was configured last, and only new runs wait
for the correction. The text of the file is kept, not what it was read as: keys, relative paths and
the environment go on meaning what they mean in the file.
"""

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from subagents.config.layers import LOOK_AGAIN_S, Config, ConfigCache, load
from subagents.config.paths import Paths
from subagents.config.settings import Settings
from subagents.durable_files import replace_file
from subagents.errors import ConfigError

log = logging.getLogger(__name__)


class UserConfig:
    """The user's file and environment, looked at once a second; never a project's."""

    def __init__(
        self,
        environ: Mapping[str, str],
        paths: Paths,
        overrides: Mapping[str, object] | None = None,
    ) -> None:
        """
        Args:
            environ: The environment of this process.
            paths: The home; its state directory need not exist.
            overrides: Hold for ``at_start`` alone.

        Raises:
            ConfigError: It is wrong now, and no former content that can be used is kept.
        """
        self._file = paths.last_good_config_file
        self._cache = ConfigCache(environ, paths)
        self._looked_s = time.monotonic()
        self._kept: str | None = None
        self._problem: ConfigError | None = None
        try:
            self.at_start = load(None, environ, paths=paths, overrides=overrides)
            """The configuration of this process."""
        except ConfigError as error:
            self._problem = error
            self.at_start = _last_good(self._file, environ, paths, overrides, error)
        self._known = self.at_start

    def now(self) -> Settings:
        """The settings as they are, or were before the file became wrong while it was edited."""
        return self.known().settings

    def known(self) -> Config:
        """As ``now``, with where each value came from."""
        if time.monotonic() - self._looked_s >= LOOK_AGAIN_S:
            self._looked_s = time.monotonic()
            try:
                self._known = self._cache.load(None)
                self._problem = None
            except ConfigError as error:
                self._problem = error
        if self._problem is None:
            self._keep(self._known.user_text)
        return self._known

    @property
    def problem(self) -> ConfigError | None:
        """What is wrong with it; None = nothing."""
        self.known()
        return self._problem

    def _keep(self, text: str) -> None:
        if text == self._kept:
            return
        self._kept = text
        try:
            replace_file(self._file, text.encode())
        except OSError as error:
            log.warning("the last good configuration is not kept: %s", error)


def _last_good(
    file: Path,
    environ: Mapping[str, str],
    paths: Paths,
    overrides: Mapping[str, object] | None,
    error: ConfigError,
) -> Config:
    with suppress(OSError, ValueError, ConfigError):
        text = file.read_text(encoding="utf-8")
        return load(None, environ, paths=paths, overrides=overrides, user_text=text)
    raise error
