"""The commands of docs/howto/postgresql.md do what the page says, on a real server."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.cli.cli_home import temporary_home
from tests.extensions.cluster.postgres.postgres_server import programs, running

from subagents.config.paths import Paths

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "postgresql.md"
BLOCK = re.compile(r"^```(sh|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.requirement("docs:blocks", "store:postgres", "store:backup")
def test_a_home_is_moved_to_postgresql_backed_up_and_restored_as_the_page_says(
    tmp_path: Path,
) -> None:
    with running() as server, temporary_home(tmp_path) as home:
        path = f"{programs()}{os.pathsep}{home.env()['PATH']}"
        home.environ |= {"PGHOST": str(server.directory), "PGUSER": "tests", "PATH": path}
        said = []
        for language, body in BLOCK.findall(PAGE.read_text("utf-8")):
            if language == "toml":
                file = Paths.resolve(home.env()).config_file
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(body.replace("me@db.example", "tests@"))
                continue
            commands = re.sub(r"^pip install .*$", "", body, flags=re.MULTILINE)
            done = subprocess.run(
                ["sh", "-ec", commands],
                cwd=home.work,
                env=home.env(),
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
            said.append(done.stdout)
        assert "hello" in said[1]
        assert "echo hello" in said[-1]
        assert not Paths.resolve(home.env()).database.exists()
