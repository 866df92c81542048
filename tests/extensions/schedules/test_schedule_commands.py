"""``schedule``: work that a real daemon starts at its times."""

import re
from pathlib import Path

import pytest
from tests.cli.cli_home import Home, temporary_home

from subagents.cli.main import main
from subagents.errors import UsageError
from subagents.extensions.schedules import schedule_commands
from subagents.extensions.schedules.schedule_commands import local_zone


@pytest.mark.requirement("cli:schedule", "schedule:environment")
def test_a_task_is_scheduled_seen_started_and_removed(shared: Home) -> None:
    added = shared.ok(
        *("schedule", "add", "greet", "0 3 * * 1-5", "echo hello $WHO"),
        *("--zone", "Europe/Berlin", "--env", "WHO=you", "--label", "greeting"),
    )
    assert added.out.startswith("s-")
    assert "greet: At 03:00 on Monday through Friday (Europe/Berlin); " in added.err
    assert re.search(r"greet (in|to|[A-Z])", shared.ok("list").err)
    row = next(each for each in shared.ok("schedule", "list").out.splitlines() if "greet" in each)
    assert row.split()[:7] == ["greet", "waiting", "0", "3", "*", "*", "1-5"]

    run_id = shared.ok("schedule", "run-now", "greet").out.strip()
    assert "hello you" in shared.ok("wait", run_id).out
    shown = shared.ok("show", "schedule:greet").out
    assert "greet (s-" in shown.splitlines()[0]
    assert "subagents list --tag schedule:greet" in shown
    assert run_id in shown
    assert run_id in shared.ok("list", "--tag", "schedule:greet").out
    assert "greet: paused" in shared.ok("pause", "schedule:greet").err
    assert "paused" in shared.ok("schedule", "list").out
    assert re.search(r"greet: (in|to|[A-Z])", shared.ok("schedule", "resume", "greet").err)

    assert shared.cli("schedule", "remove", "greet").code == 2
    assert "was removed" in shared.ok("schedule", "remove", "greet", "--yes").err
    gone = shared.cli("show", "schedule:greet")
    assert (gone.code, "schedule list" in gone.err) == (3, True)


@pytest.mark.requirement("cli:schedule")
def test_a_schedule_says_what_its_last_times_came_to(shared: Home) -> None:
    shared.ok("schedule", "add", "broken", "0 3 * * *", "exit 3")
    (run_id,) = shared.ok("schedule", "run-now", "broken").out.split()
    assert shared.cli("wait", run_id).code == 5
    (row,) = [
        line for line in shared.ok("schedule", "list").out.splitlines() if line.startswith("broken")
    ]
    assert "  failed " in row
    assert "failed (by hand)" in shared.ok("show", "schedule:broken").out
    shared.ok("schedule", "remove", "broken", "--yes")


@pytest.mark.requirement("cli:schedule")
@pytest.mark.parametrize("line", ["15 3 * * 1 date +\\%F > day", "@daily date +\\%F > day"])
def test_a_line_of_a_crontab_is_taken_as_it_is(shared: Home, line: str) -> None:
    shared.ok("schedule", "add", "pasted", line)
    found = shared.ok("show", "schedule:pasted", "--json").json
    assert f"{found['when']} {found['task']}" == line.replace("\\%", "%")
    shared.ok("schedule", "remove", "pasted", "--yes")

    refused = shared.cli("schedule", "add", "pasted", "@reboot date").err
    assert "can call: subagents spawn TASK" in refused


@pytest.mark.requirement("cli:schedule")
def test_a_whole_crontab_is_taken_from_stdin_with_its_settings_and_names(shared: Home) -> None:
    crontab = """
        # m h dom mon dow command
        MAILTO=me@localhost
        PLACE="up there"
        */10 * * * * cd data && ./sync.sh --all
        CRON_TZ=Asia/Tokyo
        @daily A=1 /opt/sync.sh $PLACE
    """
    said = shared.ok("schedule", "add", "-", "--label", "moved", stdin=crontab).err
    assert said.startswith("warning: MAILTO is left out: a failed run is told by the channels in")
    found = [shared.ok("show", f"schedule:{name}", "--json").json for name in ("sync", "sync-2")]
    assert [(each["when"], each["task"]) for each in found] == [
        ("*/10 * * * *", "moved"),
        ("@daily", "moved"),
    ]
    assert found[0]["zone"] != found[1]["zone"] == "Asia/Tokyo"
    assert shared.ok("pause", "schedule:sync", "schedule:sync-2").err.count(": paused") == 2
    again = shared.cli("schedule", "add", "-", stdin="@daily /new.sh\n@daily ./sync.sh\n")
    assert "nothing was added; names that are taken: sync" in again.err
    assert shared.cli("show", "schedule:new").code == 3
    removed = shared.ok("schedule", "remove", "sync", "sync-2", "--yes").err
    assert removed == "sync was removed.\nsync-2 was removed.\n"


@pytest.mark.requirement("cli:schedule", "cli:bad-input")
@pytest.mark.parametrize("when", ["*/5 * * * *", "0 3 * * 1-5", "@daily", "every 15m"])
def test_a_time_in_the_place_of_the_name_is_told(shared: Home, when: str) -> None:
    refused = shared.cli("schedule", "add", when, "echo hi")
    assert (refused.code, f"NAME is missing: what is to be called that starts at '{when}'?") == (
        2,
        refused.err.removeprefix("subagents: ").strip(),
    )
    shared.ok("schedule", "add", "our night", "@daily echo hi")
    shared.ok("schedule", "remove", "our night", "--yes")


@pytest.mark.requirement("cli:schedule")
def test_what_keeps_schedules_over_a_restart_is_said_with_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with temporary_home(tmp_path) as home:
        for name, value in {**home.env(), "XDG_CONFIG_HOME": str(tmp_path)}.items():
            monkeypatch.setenv(name, value)
        said = []
        for place in (tmp_path, tmp_path / "none"):
            monkeypatch.setattr(schedule_commands, "SYSTEMD", place)
            for name in ("one", "two"):
                assert main(["schedule", "add", name, "@daily", "true"]) == 0
                said += [line for line in capsys.readouterr().err.splitlines() if "restart" in line]
            home.ok("schedule", "remove", "one", "--yes")
            home.ok("schedule", "remove", "two", "--yes")
    first, second = said
    assert first.endswith("too: subagents down --yes && subagents service install")
    assert re.search(r"in your crontab: @reboot \S*subagents up$", second)


@pytest.mark.requirement("cli:schedule", "contract:old-files")
def test_a_file_of_the_contract_that_is_there_already_is_warned_of(shared: Home) -> None:
    (shared.work / "old-report").touch()
    work = ("0 3 * * *", "true", "--verify", "old-report")
    said = shared.ok("schedule", "add", "reported", *work).err
    assert "old-report is there already and counts only if the run changes it" in said
    assert "--verify-existing" in said
    said = shared.ok("schedule", "add", "reported", *work, "--verify-existing", "--replace").err
    assert "is there already" not in said
    shared.ok("schedule", "remove", "reported", "--yes")


@pytest.mark.requirement("cli:schedule", "schedule:plan")
def test_a_plan_file_is_scheduled(shared: Home) -> None:
    file = shared.work / "checks.yaml"
    file.write_text("runs:\n- {label: c1, task: echo one}\n- {label: c2, task: echo two}\n")
    shared.ok("schedule", "add", "weekly", "@weekly", "--plan", str(file))
    found = shared.ok("show", "schedule:weekly", "--json").json
    assert (found["steps"], found["task"]) == (2, "checks")
    started = shared.ok("schedule", "run-now", "weekly").out.split()
    assert len(started) == 2
    assert shared.ok("wait", *started).code == 0
    both = shared.cli("schedule", "add", "x", "@daily", "true", "--plan", str(file))
    assert (both.code, "give no task" in both.err) == (2, True)
    shared.ok("schedule", "remove", "weekly", "--yes")


@pytest.mark.requirement("cli:schedule", "schedule:zone")
def test_a_machine_says_its_time_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/Europe/Berlin")
    monkeypatch.delenv("TZ", raising=False)
    assert local_zone(link) == "Europe/Berlin"
    assert local_zone(tmp_path / "none") == "UTC"
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert local_zone(link) == "Asia/Tokyo"


@pytest.mark.requirement("cli:schedule")
@pytest.mark.parametrize(
    ("named", "zone"),
    [
        ("Asia/Tokyo", "Asia/Tokyo"),
        (":America/New_York", "America/New_York"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        (":/usr/share/zoneinfo/America/Argentina/Salta", "America/Argentina/Salta"),
        ("/usr/share/zoneinfo/posix/Europe/Paris", "Europe/Paris"),
        ("{dir}/link", "Europe/Berlin"),
        ("{dir}/copy", "CET-1CEST,M3.5.0,M10.5.0/3"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "CET-1CEST,M3.5.0,M10.5.0/3"),
        ("JST-9", "JST-9"),
        ("", "UTC"),
        (":", "UTC"),
    ],
)
def test_tz_is_read_as_other_programs_of_the_shell_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, zone: str
) -> None:
    (tmp_path / "link").symlink_to("/usr/share/zoneinfo/Europe/Berlin")
    rule = b"\nCET-1CEST,M3.5.0,M10.5.0/3\n"
    (tmp_path / "copy").write_bytes(b"TZif2" + bytes(39) + b"TZif2" + bytes(39) + rule)
    monkeypatch.setenv("TZ", named.format(dir=tmp_path))

    assert local_zone() == zone


@pytest.mark.requirement("cli:schedule")
@pytest.mark.parametrize("content", [None, b"", b"Europe/Berlin\n"])
def test_a_file_in_tz_that_is_no_zone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    file = tmp_path / "zone"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("TZ", str(file))

    with pytest.raises(UsageError, match=f"TZ={file} names no file with a time zone") as refused:
        local_zone()
    assert "--zone" in (refused.value.hint or "")
