"""Many runs, and every kind of list of them."""

from subagents.domain.run.outcome import Status
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import RunId, SessionKey, replace
from subagents.extensions.testing.stored_values import NOW_MS, a_run, archived, over
from subagents.ports import Place, RunFilter

ME = SessionKey("agent:main:main")
RUN = RunId("r-1")


RUNS = 3_000
PLACE = Place(NOW_MS + 500, RunId("r-500"))
FILTERS = {
    "all": (RunFilter(), "run_created"),
    "archived": (RunFilter(listed=False, archived=True), "run_created"),
    "given up": (RunFilter(phases=(Phase.COMPLETED_GIVEUP,)), "run_given_up"),
    "open": (RunFilter(phases=(Phase.RUNNING, Phase.QUEUED)), "run_open"),
    "most phases": (RunFilter(phases=(Phase.COMPLETED, Phase.RUNNING)), "run_created"),
    "failed": (RunFilter(outcomes=(Status.ERROR, Status.TIMEOUT)), "run_outcome"),
    "most outcomes": (RunFilter(outcomes=(Status.OK, Status.ERROR)), "run_created"),
    "an agent": (RunFilter(agent_id="a1"), "run_agent"),
    "no such agent": (RunFilter(agent_id="nobody", archived=True), "run_agent"),
    "a directory": (RunFilter(directory="/srv/p3"), "run_directory"),
    "directories": (RunFilter(directory="/srv"), "run_directory"),
    "no such directory": (RunFilter(directory="/home", archived=True), "run_directory"),
    "a tag": (RunFilter(tags=("t0",)), "run_tag"),
    "no such tag": (RunFilter(tags=("none",)), "run_tag"),
    "a label": (RunFilter(requester=ME, label="label9"), "run_label"),
    "a requester": (RunFilter(requester=ME, agent_id="a1"), "run_requester"),
    "no such requester": (RunFilter(requester=SessionKey("agent:x:y")), "run_requester"),
    "since": (RunFilter(since_ms=NOW_MS + RUNS), "run_created"),
    "a run's": (RunFilter(requester=ME, requester_run=RUN), "run_parent"),
    "below a run": (RunFilter(requester=ME, label="job", below=RUN), "autoindex_run_1 (run_id=?)"),
    "a plan": (RunFilter(steps_of=("r-1", "r-2")), "run_plan"),
    "plans": (RunFilter(requester=ME, plans=True), "run_plans"),
    "a page": (RunFilter(archived=True, behind=PLACE), "run_created"),
    "the oldest": (RunFilter(oldest_first=True), "run_created"),
    "by their end": (RunFilter(by_end=True, archived=True), "run_archive"),
    "a page by their end": (RunFilter(by_end=True, behind=PLACE), "run_archive"),
    "the first ends": (RunFilter(by_end=True, behind=PLACE, oldest_first=True), "run_archive"),
    "after the oldest": (RunFilter(requester=ME, behind=PLACE, oldest_first=True), "run_requester"),
}
"""By its name: a list, and the index of SQLite that leads to it."""


def of_many(number: int) -> Run:
    """Half of them are archived; they are of three agents in ten directories.

    They ended in another order than they were spawned in, two at a time.
    """
    run, place = a_run(number), f"/srv/p{number % 10}"
    run = replace(
        run,
        spec=replace(run.spec, tags=(f"t{number % 2}",)),
        resolved=replace(run.resolved, agent_id=f"a{number % 3}", cwd=place),
        times=replace(run.times, created_at_ms=NOW_MS + number),
    )
    ended = over(run, ended_ms=NOW_MS + number * 7 % (RUNS // 2))
    return archived(ended, NOW_MS) if number < RUNS // 2 else ended
