"""The sender that is OpenTelemetry's own library, and the extra that brings it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from subagents.config.layers import load
from subagents.config.paths import Paths
from subagents.errors import ConfigError
from subagents.extensions.telemetry.otlp import traces_url
from subagents.installation import extra_command
from subagents.wiring import build_node


@pytest.mark.requirement("telemetry:otlp")
@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
        ("https://x.example/api/otel", "https://x.example/api/otel/v1/traces"),
        ("https://x.example/otlp/v1/traces", "https://x.example/otlp/v1/traces"),
    ],
)
def test_a_base_address_gets_the_path_of_traces(endpoint: str, url: str) -> None:
    assert traces_url(endpoint) == url


@pytest.mark.requirement("telemetry:extra")
def test_an_endpoint_without_the_extra_is_a_wrong_configuration_that_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {
        "SUBAGENTS_HOME": str(tmp_path),
        "SUBAGENTS_TELEMETRY__OTLP_ENDPOINT": "http://127.0.0.1:4318",
    }
    paths = Paths.resolve(environ)
    config = load(None, environ, paths=paths)
    # As Python has it for a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "subagents.extensions.telemetry.otlp", None)

    with pytest.raises(ConfigError, match=r"telemetry\.otlp_endpoint is set, but") as refused:
        build_node(paths, config)

    assert refused.value.hint == f"{extra_command('otel')}, or remove telemetry.otlp_endpoint"


@pytest.mark.requirement("telemetry:extra")
def test_a_daemon_that_sends_nothing_loads_nothing_of_opentelemetrys_exporter(
    tmp_path: Path,
) -> None:
    code = (
        "import os, sys\n"
        "from subagents.config.layers import load\n"
        "from subagents.config.paths import Paths\n"
        "from subagents.wiring import build_node\n"
        "import subagents.api.server.daemon\n"
        "paths = Paths.resolve(os.environ)\n"
        "build_node(paths, load(None, os.environ, paths=paths))\n"
        "heavy = {'opentelemetry.sdk', 'requests', 'google.protobuf', 'prometheus_client'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)\n"
    )
    environ = {"PATH": os.environ["PATH"], "SUBAGENTS_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
