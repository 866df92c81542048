"""The database is copied while it is in use."""

import pytest
from tests.cli.cli_home import Home


@pytest.mark.requirement("cli:db")
def test_the_database_can_be_copied_while_the_daemon_runs_and_never_over_a_file(
    shared: Home,
) -> None:
    target = shared.work / "copy.db"
    shared.ok("run", "true")
    assert shared.ok("db", "backup", str(target), "--json").json["bytes"] == target.stat().st_size
    assert target.stat().st_mode & 0o777 == 0o600
    again = shared.cli("db", "backup", str(target))
    assert again.code == 2
    assert "exists" in again.err
