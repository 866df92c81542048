"""What deploy/ says is well-formed, and means what the product calls it.

Nothing here runs a container. ``make test-deploy`` has a linter read the Dockerfile and Helm render
the chart, and holds its objects against the schemas of Kubernetes, by packages that hold all three.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from subagents.config.sources import from_environment

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "subagents"
VALUES: list[dict[str, Any]] = [
    {},
    {
        "replicas": 5,
        "cluster": {"labels": ["gpu", "linux"], "slots": 8},
        "secretEnv": {"ANTHROPIC_API_KEY": {"secretName": "models", "key": "anthropic"}},
        "home": {"storageClassName": "fast"},
        "nodeSelector": {"disk": "ssd"},
        "resources": {"limits": {"memory": "2Gi"}},
    },
]


def compose() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(DEPLOY / "compose.yaml")
    return found


@pytest.mark.requirement("deploy:compose")
def test_each_node_of_the_compose_file_has_a_name_an_address_and_a_home_of_its_own() -> None:
    found = compose()["services"]
    assert found.keys() == {"postgres", "node1", "node2", "node3", "temporal"}
    services = {name: each for name, each in found.items() if "node" in name}

    for name, node in services.items():
        environment = node["environment"]
        assert environment["SUBAGENTS_DAEMON__NODE"] == node["hostname"] == name
        assert environment["SUBAGENTS_CLUSTER__URL"] == f"https://{name}:7443"
        assert f"{name}:/var/lib/subagents" in node["volumes"]
    for name in ("SUBAGENTS_DAEMON__STORE", "SUBAGENTS_CLUSTER__SECRET"):
        assert len({each["environment"][name] for each in services.values()}) == 1


@pytest.mark.requirement("deploy:compose")
def test_the_daemon_understands_the_variables_of_the_compose_file() -> None:
    node = compose()["services"]["node1"]
    given = {key: str(value) for key, value in node["environment"].items()}

    found = {layer.origin: layer.values for layer in from_environment(given, (), None)}
    assert found["SUBAGENTS_CLUSTER__LISTEN"] == {"cluster": {"listen": "0.0.0.0:7443"}}
    assert found["SUBAGENTS_DAEMON__NODE"] == {"daemon": {"node": "node1"}}


@pytest.mark.requirement("deploy:image")
def test_the_dockerfile_passes_its_linter() -> None:
    hadolint = shutil.which("hadolint", path=Path(sys.executable).parent)
    if hadolint is None:
        pytest.skip("needs hadolint (group deploy)")
    argv = [hadolint, "--no-color", str(DEPLOY / "Dockerfile")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.requirement("deploy:helm")
@pytest.mark.parametrize("values", VALUES, ids=["defaults", "everything"])
def test_helm_renders_objects_that_kubernetes_knows(values: dict[str, Any]) -> None:
    helm = pytest.importorskip("helm_python")
    validate = pytest.importorskip("kubernetes_validate")

    with helm.Chart.load(str(CHART)) as chart:
        rendered = chart.render(values, name="agents", namespace="prod")
    objects = [
        found
        for text in rendered.values()
        for found in YAML(typ="safe").load_all(text)
        if found is not None
    ]
    for each in objects:
        validate.validate(each, "1.30", strict=True)
    kinds = sorted(each["kind"] for each in objects)
    assert kinds == ["PodDisruptionBudget", "Service", "StatefulSet"]
    container = next(
        each["spec"]["template"]["spec"]["containers"][0]
        for each in objects
        if each["kind"] == "StatefulSet"
    )
    secret = next(e for e in container["env"] if e["name"] == "SUBAGENTS_CLUSTER__SECRET")
    assert secret["valueFrom"]["secretKeyRef"] == {"name": "subagents-cluster", "key": "secret"}
    assert "drain" in container["lifecycle"]["preStop"]["exec"]["command"][-1]
