"""A crontab, line by line."""

import pytest

from subagents.errors import UsageError
from subagents.extensions.schedules.crontab import entries_of


@pytest.mark.requirement("schedule:crontab")
def test_a_line_has_the_settings_above_it_and_the_name_of_its_program() -> None:
    text = (
        "MAILTO=a@b\nPATH=/bin:/usr/bin\n"
        "5 4 * * sun /usr/local/bin/backup.sh --to disk\n"
        "  A = ' two words '  \n\n# no job\n"
        "@hourly  cd /srv; X=1 backup | gzip > $(date +\\%F)\n"
        'CRON_TZ="Europe/Berlin"\n0 0 1 1 * "$HOME/bin/tidy"\n'
    )
    path, spaced = "PATH=/bin:/usr/bin", "A= two words "

    entries = list(entries_of(text))
    assert {each.left_out for each in entries} == {("MAILTO",)}
    assert [each[:5] for each in entries] == [
        ("backup", "5 4 * * sun", "/usr/local/bin/backup.sh --to disk", (path,), None),
        ("backup-2", "@hourly", "cd /srv; X=1 backup | gzip > $(date +%F)", (path, spaced), None),
        ("tidy", "0 0 1 1 *", '"$HOME/bin/tidy"', (path, spaced), "Europe/Berlin"),
    ]


@pytest.mark.requirement("schedule:crontab")
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("0 3 * * *", "no command"),
        ("@daily mail me%hello", "after its %"),
        ("@reboot warm-up", "no time that comes again"),
        ("61 3 * * * late", "bad minute"),
        ("17 * * * * root cd / && run-parts /etc/cron.hourly", "names root, who runs it"),
    ],
)
def test_what_no_schedule_has_is_refused_with_its_line(line: str, told: str) -> None:
    with pytest.raises(UsageError, match=f"line 2 of the crontab.*{told}"):
        list(entries_of(f"# two\n{line}"))


@pytest.mark.requirement("schedule:crontab")
@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("/usr/bin/python3 /opt/c/job.py", "job"),
        ("nice -n 10 ionice -c2 backup.sh", "backup"),
        ("timeout 5m sh -c 'tidy /tmp'", "tidy"),
        ("env A=1 /opt/d/run-all", "run-all"),
        ("python3 -m reports.daily", "reports"),
        ("sh", "sh"),
        ("root of all", "root"),
        ("find / -name x", "find"),
    ],
)
def test_a_line_is_named_by_what_it_starts_and_not_by_what_starts_it(task: str, name: str) -> None:
    assert [each.name for each in entries_of(f"@daily {task}")] == [name]
