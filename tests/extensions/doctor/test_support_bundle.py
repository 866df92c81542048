"""What a bug report needs is in the bundle, and no secret is."""

import tarfile
from pathlib import Path

import msgspec
import pytest
from tests.cli.cli_home import Home
from tests.planted import PLANTED

from subagents.config.paths import Paths

PASSWORD = "correct-horse-battery"


def contents(file: Path) -> dict[str, str]:
    with tarfile.open(file) as archive:
        found = {each.name: archive.extractfile(each) for each in archive.getmembers()}
        return {
            name.removeprefix("subagents-support/"): content.read().decode()
            for name, content in found.items()
            if content is not None
        }


@pytest.mark.requirement("cli:support-bundle", "security:redaction")
def test_planted_secrets_are_in_no_file_of_the_bundle(home: Home) -> None:
    paths = Paths.resolve(home.env())
    paths.config_file.parent.mkdir(parents=True)
    paths.config_file.write_text(
        '[agents.mine]\nruntime = "command"\ncommand = ["true"]\n'
        f'[agents.mine.env]\nMY_SETTING = "{PASSWORD}-one"\n'
    )
    secret_env = {"DEPLOY_PASSWORD": f"{PASSWORD}-two"}
    home.ok("run", f"echo {PASSWORD}-three", "--label", f"{PASSWORD}-four")
    with paths.log_file.open("a") as log:
        for text, secret in PLANTED.values():
            log.write(f"{text.format(secret)}\n")
        log.write(f"{PASSWORD}-one and {PASSWORD}-two\n")

    said = home.ok("doctor", "--bundle", "report.tar.gz", env=secret_env)

    found = contents(home.work / "report.tar.gz")
    whole = "\n".join(found.values())
    assert PASSWORD not in whole
    assert [kind for kind, (_, secret) in PLANTED.items() if secret in whole] == []
    assert "[redacted]" in found["daemon.log"]
    assert all(name in said.err for name in found)


@pytest.mark.requirement("cli:support-bundle")
def test_the_bundle_holds_versions_doctor_config_with_origins_log_and_states(home: Home) -> None:
    run = home.spawn("true")
    home.ok("wait", run)
    home.ok("doctor", "--bundle", "report.tar.gz", "--json")

    file = home.work / "report.tar.gz"
    found = contents(file)
    assert {*found} == {
        *("versions.json", "paths.json", "doctor.json", "config.json", "runs.json", "daemon.log"),
    }
    assert file.stat().st_mode & 0o777 == 0o600
    documents = {
        name: msgspec.json.decode(text) for name, text in found.items() if name.endswith(".json")
    }
    assert documents["versions.json"]["daemon"]["pid"]
    assert documents["doctor.json"]["checks"]
    assert all(each["origin"] for each in documents["config.json"]["values"])
    (row,) = documents["runs.json"]["runs"]
    assert (row["runId"], row["outcome"]["status"]) == (run, "ok")
    assert "task" not in row
    assert found["daemon.log"].splitlines()


@pytest.mark.requirement("cli:support-bundle")
def test_without_a_daemon_and_with_a_broken_configuration_there_is_a_bundle(home: Home) -> None:
    (home.work / "subagents.toml").write_text("nonsense = \n")
    home.ok("doctor", "--bundle", "report.tar.gz")
    found = contents(home.work / "report.tar.gz")
    assert "nonsense" in found["config.json"] or "subagents.toml" in found["config.json"]
    assert "unknown" in found["runs.json"]
    assert found["daemon.log"].startswith("no log")
    again = home.cli("doctor", "--bundle", "report.tar.gz")
    assert again.code == 2
    assert "exists" in again.err
