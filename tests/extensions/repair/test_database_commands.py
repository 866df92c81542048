"""The database is copied while it is in use; one that cannot be used is named and kept."""

import gzip
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.cli_home import Home, until

from subagents.config.paths import Paths


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


@pytest.mark.requirement("store:newer-schema", "cli:db")
def test_every_command_says_that_a_database_is_newer_and_leaves_it_alone(home: Home) -> None:
    home.ok("run", "true")
    home.down()
    file = Paths.resolve(home.env()).database
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = file.read_bytes()

    for command in (("db", "check"), ("db", "backup", "copy.db"), ("up",)):
        said = home.cli(*command)
        assert said.code in {1, 7}, said
        assert "has schema 99, this version knows" in said.err
        assert "install the newer subagents again" in said.err
    doctor = home.cli("doctor", "--json")
    assert doctor.code == 1
    found = {each["name"]: each for each in doctor.rows("checks")}["database"]
    assert found["status"] == "fail"
    assert "has schema 99" in found["detail"]
    assert file.read_bytes() == before


@pytest.mark.requirement("store:never-empty")
def test_no_daemon_starts_empty_beside_the_files_of_runs(home: Home) -> None:
    home.ok("run", "true")
    home.down()
    file = Paths.resolve(home.env()).database
    file.unlink()

    said = home.cli("up")
    assert said.code == 7
    assert "is not there, but" in said.err
    assert "subagents db backup" in said.err
    assert not file.exists()
    assert home.cli("doctor").code == 1


def damaged(home: Home, *statements: str) -> Path:
    """The database of a home without a daemon, after these statements."""
    file = Paths.resolve(home.env()).database
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return file


@pytest.mark.requirement("cli:db:repair")
def test_a_damaged_run_is_rebuilt_and_no_worker_starts_twice_nor_a_result_is_told_again(
    home: Home,
) -> None:
    home.ok("run", "echo first")
    unread = home.spawn("echo ran >>ran")
    work = home.spawn("echo ran >>ran; until [ -e go ]; do sleep 0.05; done; echo worked")
    until(lambda: home.field(unread, "phase") == "completed", "it ended")
    until(lambda: (home.work / "ran").read_text() == "ran\n" * 2, "both ran")
    refused = home.cli("db", "repair", "--yes")
    assert (refused.code, "another process is using" in refused.err) == (1, True)
    home.kill_daemon()
    file = damaged(home, "UPDATE run SET state = x'00'")

    asked = home.cli("db", "repair")
    assert asked.code == 2
    assert "3 runs repaired" in asked.err
    assert home.cli("db", "check").code != 0
    said = home.ok("db", "repair", "--yes", "--json")
    home.ok("up")
    (home.work / "go").touch()

    assert {each["runId"] for each in said.rows("runs")} >= {unread, work}
    assert not any(each["lost"] for each in said.rows("runs"))
    assert (Path(str(said.json["aside"])) / file.name).is_file()
    until(lambda: home.field(work, "phase") == "completed", "the worker's end was seen")
    assert "its record was repaired" in home.ok("why", unread).out
    messages = home.ok("inbox", "--json").rows("messages")
    assert sorted(each["runId"] for each in messages) == sorted([unread, work])
    assert (home.work / "ran").read_text() == "ran\n" * 2
    assert home.cli("doctor").code == 0


@pytest.mark.requirement("cli:db:repair", "store:never-empty")
def test_of_a_deleted_database_the_runs_are_listed_as_lost_and_nothing_is_announced(
    home: Home,
) -> None:
    home.ok("run", "echo first")
    unread = home.spawn("echo second")
    until(lambda: home.field(unread, "phase") == "completed", "it ended")
    home.down()
    damaged(home).unlink()

    home.ok("db", "repair", "--yes")
    home.ok("up")

    runs = home.ok("list", "--json").rows("runs")
    assert {(each["agentId"], each["outcome"]["reason"]) for each in runs} == {
        ("command", "record_lost")
    }
    assert home.ok("why", unread).out.count("attempt 1 came to success") >= 1
    assert "second" in home.ok("log", unread).out
    assert home.ok("inbox", "--json").rows("messages") == []


@pytest.mark.requirement("cli:db:repair", "store:never-empty")
def test_starting_empty_moves_everything_of_runs_aside(home: Home) -> None:
    home.ok("run", "echo first")
    home.down()
    state = damaged(home).parent

    assert home.cli("db", "repair", "--empty").code == 2
    aside = Path(str(home.ok("db", "repair", "--empty", "--yes", "--json").json["aside"]))
    home.ok("up")

    assert home.ok("list", "--json").rows("runs") == []
    assert {each.name for each in aside.iterdir()} >= {"subagents.db", "attempts", "transcripts"}
    assert aside.parent == state


@pytest.mark.requirement("cli:db:repair", "store:newer-schema")
def test_a_database_of_a_newer_version_is_not_repaired(home: Home) -> None:
    home.ok("run", "true")
    home.down()
    before = damaged(home, "PRAGMA user_version = 99").read_bytes()

    said = home.cli("db", "repair", "--yes")

    assert said.code == 1
    assert "has schema 99" in said.err
    assert damaged(home).read_bytes() == before


@pytest.mark.requirement("cli:db", "cli:db-restore")
def test_a_backup_takes_the_databases_place_and_the_old_one_is_kept(home: Home) -> None:
    before = home.spawn("true", "--label", "before")
    home.ok("wait", before)
    home.ok("db", "backup", "copy.db")
    after = home.spawn("true", "--label", "after")
    home.ok("wait", after)
    busy = home.cli("db", "restore", "copy.db", "--yes")
    assert busy.code != 0
    assert "subagents down" in busy.err
    home.down()

    done = home.ok("db", "restore", "copy.db", "--yes", "--json").json

    assert done["restored"] == "copy.db"
    assert (Path(str(done["aside"])) / "subagents.db").is_file()
    home.ok("up")
    assert home.ok("show", before, "--json").json["label"] == "before"
    assert home.cli("show", after).code == 3
    assert (home.work / "copy.db").is_file()


@pytest.mark.requirement("cli:db-restore")
def test_what_is_no_sound_backup_of_ours_is_not_restored(home: Home) -> None:
    home.ok("run", "true")
    home.ok("db", "backup", "good.db")
    home.down()
    database = Paths.resolve(home.env()).database
    kept = database.read_bytes()
    good = (home.work / "good.db").read_bytes()
    (home.work / "text.db").write_text("no database at all\n" * 1000)
    (home.work / "torn.db").write_bytes(good[: len(good) // 2])
    with closing(sqlite3.connect(home.work / "other.db")) as connection:
        connection.execute("CREATE TABLE songs (name)")
        connection.commit()
    (home.work / "empty.db").touch()

    (home.work / "packed.db").write_bytes(gzip.compress(good))
    (home.work / "zeros.db").write_bytes(bytes(20_000))
    (home.work / "short.db").write_bytes(good[:3000])
    shutil.copy(home.work / "good.db", home.work / "trigger.db")
    with closing(sqlite3.connect(home.work / "trigger.db")) as connection:
        connection.execute("CREATE TRIGGER x AFTER INSERT ON journal BEGIN DELETE FROM inbox; END")
        connection.commit()
    with closing(sqlite3.connect(home.work / "blank.db")) as connection:
        connection.executescript("CREATE TABLE x (a); DROP TABLE x")

    for name, says in {
        "text.db": "text.db is no database: it does not begin as those of SQLite do",
        "zeros.db": "zeros.db is no database",
        "packed.db": "packed.db is compressed (gzip): unpack it first",
        "torn.db": "torn.db",
        "short.db": "short.db",
        "other.db": "other.db is a database of another program",
        "blank.db": "blank.db is a database without a table",
        "empty.db": "empty.db is empty",
        "missing.db": "there is no file missing.db",
        "trigger.db": "trigger.db is damaged: the trigger x is not ours",
    }.items():
        said = home.cli("db", "restore", name, "--yes")
        assert said.code != 0, (name, said)
        assert says in said.err
        assert "is empty" not in said.err or name == "empty.db"
        assert "Traceback" not in said.err
    assert database.read_bytes() == kept
    assert not list(database.parent.glob("aside-*"))


@pytest.mark.requirement("cli:db-restore")
def test_a_copy_on_another_machine_says_what_it_would_start_and_pauses_its_schedules(
    home: Home, tmp_path: Path
) -> None:
    home.ok("run", "seq 1 30000", "--label", "long")
    for name in ("nightly", "weekly", "hourly"):
        home.ok("schedule", "add", name, "@yearly", "true")
    home.ok("schedule", "pause", "hourly")
    first = home.spawn("until [ -e go ]; do sleep 0.05; done")
    home.ok("spawn", "touch started", "--after", first)
    home.ok("db", "backup", "copy.db")
    (home.work / "go").touch()
    home.down()
    here = home.cli("db", "restore", "copy.db", "--yes", "--json")
    assert (here.json["pausedSchedules"], here.json["openRuns"]) == ([], 2)

    (home.work / "started").unlink(missing_ok=True)
    Paths.resolve(home.env()).state_dir.rename(tmp_path / "away")
    there = home.cli("db", "restore", "copy.db", "--yes")
    assert there.code == 0
    assert there.out == "copy.db is restored; there was no database before\n"
    assert "2 runs in copy.db have not ended: a daemon starts what waits there" in there.err
    assert "2 schedules are paused" in there.err
    assert "subagents resume schedule:nightly schedule:weekly" in there.err
    assert "hourly" not in there.err
    home.ok("up")
    listed = home.ok("schedule", "list", "--json").rows("schedules")
    assert [each["pausedAt"] is None for each in listed] == [False] * 3
    # The variables of its worker came along, of which a backup has a copy.
    home.ok("schedule", "run-now", "nightly")
    assert home.cli("wait", "nightly").code == 0
    assert home.ok("db", "check")
    for command in (("result", "long"), ("wait", "long"), ("result", "long", "--json")):
        cut = home.cli(*command)
        assert (cut.code, cut.err.count("the result is cut")) == (10, 1)
        assert "only 32765 of 168893 bytes are here" in cut.err
        assert "a backup of the database has no long results" in cut.err
        assert "max_result_mb" not in cut.err


@pytest.mark.requirement("cli:db-restore", "cli:db:repair")
def test_nothing_is_said_to_be_kept_where_nothing_was(home: Home) -> None:
    home.ok("up")
    home.ok("db", "backup", "copy.db")
    home.down()
    shutil.rmtree(Paths.resolve(home.env()).state_dir)

    assert "there is nothing to move" in home.ok("db", "repair", "--empty", "--yes").out
    assert home.ok("db", "repair", "--yes").out.endswith("there was none before\n")
    Paths.resolve(home.env()).database.unlink()
    assert home.ok("db", "restore", "copy.db", "--yes", "--json").json["aside"] is None
    assert not list(Paths.resolve(home.env()).state_dir.glob("aside-*"))


@pytest.mark.requirement("cli:db-restore", "cli:confirm")
def test_nobody_restores_without_agreeing(home: Home) -> None:
    home.ok("run", "true")
    home.ok("db", "backup", "copy.db")
    home.down()
    said = home.cli("db", "restore", "copy.db")
    assert said.code == 2
    assert "confirm with --yes" in said.err
    assert not list(Paths.resolve(home.env()).state_dir.glob("aside-*"))


@pytest.mark.requirement("cli:db", "store:place")
def test_a_database_that_is_no_file_of_this_machine_is_left_to_its_own_programs(
    home: Home,
) -> None:
    home.environ["SUBAGENTS_DAEMON__STORE"] = "postgresql://me:password@db.example/subagents"
    for command in (
        ("db", "backup", "copy.db"),
        ("db", "repair", "--yes"),
    ):
        said = home.cli(*command)
        assert (said.code, said.out) == (2, "")
        assert "is no file of this machine" in said.err
        assert "pg_dump" in said.err
    doctor = {each["name"]: each for each in home.cli("doctor", "--json").rows("checks")}
    assert doctor["database"]["status"] == "fail"
    assert "me@db.example/subagents cannot be reached" in doctor["database"]["detail"]
    checked = home.cli("db", "check")
    assert (checked.code, checked.out) == (1, "")
    assert "password" not in checked.err
    assert "database" not in home.ok("config", "--paths", "--json").json
    assert home.ok("version", "--json").json["schema"] is None
    up = home.cli("up")
    assert up.code != 0
    assert "me@db.example/subagents cannot be reached" in up.err
    assert "password" not in up.err
