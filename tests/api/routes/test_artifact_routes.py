"""What a run left is read by whoever may see the run: what it named, and nothing outside."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.api.home_daemon import Home, UnixConnection, play, segment

from subagents.api.calls.call import AnswerTooLarge, RangeNotSatisfiable
from subagents.api.routes.artifact_routes import BYTES_MAX, range_of

CONTRACT = {"artifacts": [{"path": "out/report.txt"}, {"path": "logs/*.log", "minFiles": 1}]}
REPORTED = [{"path": "seen.txt"}, {"path": "link.txt"}, {"path": "/etc/hostname"}]


async def download(
    home: Home, run_id: str, path: str, headers: Mapping[str, str] | None = None
) -> tuple[int, Mapping[str, str], bytes]:
    def blocking() -> tuple[int, Mapping[str, str], bytes]:
        connection = UnixConnection(home.services.paths.socket)
        try:
            target = f"/v1/runs/{run_id}/artifacts/content?path={segment(path)}"
            connection.request("GET", target, headers=dict(headers or {}))
            answered = connection.getresponse()
            found = {name.lower(): value for name, value in answered.getheaders()}
            return answered.status, found, answered.read()
        finally:
            connection.close()

    return await asyncio.to_thread(blocking)


async def a_run(home: Home, work: Path) -> str:
    for name, text in (("out/report.txt", "0123456789"), ("logs/a.log", "log"), ("secret", "s")):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    (work / "seen.txt").write_text("seen")
    (work.parent / "outside.txt").write_text("outside")
    (work / "link.txt").symlink_to("../outside.txt")
    spec = {"task": "x", "agentId": "hang", "label": "one", "verification": CONTRACT}
    run_id = str((await home.ok("POST", "/v1/runs", {"spec": spec, "cwd": str(work)}))["runId"])
    await home.until_phase(run_id, "running")
    report = {"summary": "s", "artifacts": REPORTED}
    await home.ok("POST", f"/v1/runs/{run_id}/report", report, home.worker(run_id))
    return run_id


@pytest.mark.requirement("http:artifacts")
def test_only_files_that_the_contract_or_the_report_names_are_served_and_none_from_outside(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        run_id = await a_run(home, tmp_path / "work")

        async def status(path: str) -> int:
            return (await download(home, run_id, path))[0]

        listed = await home.ok("GET", f"/v1/runs/{run_id}/artifacts")
        sizes = {each["path"]: each["bytes"] for each in listed["artifacts"]}
        assert sizes == {
            "out/report.txt": 10,
            "seen.txt": 4,
            "link.txt": None,
            "/etc/hostname": None,
        }
        assert listed["patterns"] == ["logs/*.log"]
        assert (await download(home, run_id, "out/report.txt"))[2] == b"0123456789"
        assert [await status(path) for path in ("logs/a.log", "seen.txt")] == [200, 200]
        assert [await status(path) for path in ("secret", "logs/../secret", "../outside.txt")] == [
            *(404, 404, 404)
        ]
        assert [await status(path) for path in ("link.txt", "/etc/hostname")] == [403, 403]
        other = {"X-Subagents-Session": "agent:other:main", "X-Subagents-Caller": "agent"}
        assert (await download(home, run_id, "seen.txt", other))[0] == 403

    (tmp_path / "work").mkdir()
    play(tmp_path / "home", scenario)


@pytest.mark.requirement("http:artifacts")
def test_a_file_is_a_download_of_no_type_and_may_be_read_range_by_range(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = await a_run(home, tmp_path / "work")
        path = "out/report.txt"

        status, headers, content = await download(home, run_id, path, {"Range": "bytes=2-4"})
        assert (status, content) == (206, b"234")
        assert headers["content-range"] == "bytes 2-4/10"
        assert headers["content-type"] == "application/octet-stream"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-disposition"] == "attachment; filename*=UTF-8''report.txt"
        assert "sandbox" in headers["content-security-policy"]
        assert (await download(home, run_id, path, {"Range": "bytes=10-"}))[0] == 416

    (tmp_path / "work").mkdir()
    play(tmp_path / "home", scenario)


@pytest.mark.requirement("http:artifacts")
def test_a_range_is_within_the_file_and_within_what_one_answer_may_have() -> None:
    assert range_of(None, 10) == (0, 10, False)
    assert range_of("bytes=-3", 10) == (7, 10, True)
    assert range_of("bytes=8-99", 10) == (8, 10, True)
    assert range_of("bytes=0-1,4-5", 10) == (0, 10, False)
    assert range_of("bytes=0-99", BYTES_MAX * 3) == (0, 100, True)
    for header, size in ((None, BYTES_MAX + 1), ("bytes=0-", BYTES_MAX + 1)):
        with pytest.raises(AnswerTooLarge):
            range_of(header, size)
    for header in ("bytes=10-", "bytes=5-2", "bytes=-0"):
        with pytest.raises(RangeNotSatisfiable):
            range_of(header, 10)
