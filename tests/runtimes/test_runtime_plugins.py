"""Runtimes of other packages: found by their entry point, and none of them can break ours."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.runtimes.attempt_harness import off_loop

from subagents.config.paths import Paths
from subagents.engine.kernel.system_clock import SystemClock
from subagents.runtimes import runtime_plugins as plugins
from subagents.runtimes.process.shim import ProcessAttempts
from subagents.runtimes.runtime_plugins import RuntimeHost
from subagents.wiring import runtimes_here

MODULE = """
from subagents.runtimes.command import CommandRuntime

class Acme(CommandRuntime):
    name = "acme"

def runtime(host):
    return Acme(host.root, host.clock, host.off_loop)

def other_name(host):
    return CommandRuntime(host.root, host.clock, host.off_loop)

def fails(host):
    raise ValueError("no licence here")

def leaves(host):
    raise SystemExit(3)

def too_little(host):
    class Half:
        name = "half"
        abilities = None
        def check(self, options): ...
    return Half()

value = 3
"""

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package as a packager would leave it: a module and its dist-info."""
    site = tmp_path / "site"
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])

    def make(package: str = "acme", **points: str) -> Path:
        monkeypatch.delitem(sys.modules, f"{package}_runtime", raising=False)
        info = site / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (site / f"{package}_runtime.py").write_text(MODULE)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name.replace('_', '-')} = {value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[subagents.runtimes]", *lines, ""]))
        return site

    return make


def host(root: Path) -> RuntimeHost:
    clock = SystemClock()
    return RuntimeHost(ProcessAttempts(root, clock, off_loop), clock, off_loop, ("bridge",))


@pytest.mark.requirement("plugins:loaded")
def test_a_runtime_of_an_installed_package_is_there_beside_ours(
    install: Install, tmp_path: Path
) -> None:
    install(acme="acme_runtime:runtime")

    runtimes, refused = runtimes_here(Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)}))

    assert refused == ()
    assert {"acme", "command", "scripted"} <= set(runtimes)
    runtimes["acme"].check({"command": ["true"]})


@pytest.mark.requirement("plugins:refused")
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("acme", "acme_runtime:fails", "ValueError: no licence here"),
        ("acme", "acme_runtime:leaves", "SystemExit: 3"),
        ("acme", "acme_runtime:nothing", "AttributeError: module 'acme_runtime' has no attribute"),
        ("acme", "acme_runtime:value", "TypeError: acme_runtime:value is not callable"),
        ("acme", "missing_module:runtime", "ModuleNotFoundError: No module named 'missing_module'"),
        (
            "acme",
            "acme_runtime:other_name",
            "its name is 'command', but the entry point's is 'acme",
        ),
        ("half", "acme_runtime:too_little", "has no method check_scope, marker, start, watch"),
        ("codex", "acme_runtime:runtime", "it has the name of a runtime of ours"),
    ],
)
def test_a_plugin_that_does_not_fit_is_refused_by_name_and_the_others_are_loaded(
    name: str, value: str, reason: str, install: Install, tmp_path: Path
) -> None:
    install(**{name: value})
    install("good", good="good_runtime:runtime")
    (tmp_path / "site" / "good_runtime.py").write_text(MODULE.replace('"acme"', '"good"'))

    loaded, refused = plugins.load(host(tmp_path))

    assert list(loaded) == ["good"]
    ((found,)) = refused
    assert (found.name, found.package) == (name, "acme")
    assert reason in found.reason


@pytest.mark.requirement("plugins:refused")
def test_two_packages_that_bring_the_same_name_are_both_left_out(
    install: Install, tmp_path: Path
) -> None:
    install("one", acme="one_runtime:runtime")
    install("two", acme="two_runtime:runtime")

    loaded, (refused,) = plugins.load(host(tmp_path))

    assert loaded == {}
    assert refused.package == "one, two"
    assert "two packages bring one of that name" in refused.reason
