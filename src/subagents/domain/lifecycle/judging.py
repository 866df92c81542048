"""The judge of a contract: from checks that passed to a verdict; a part of the reducer.

The judge is an ordinary run below the judged one. Its last words are the verdict; a judge that
fails, is stopped or says something else has decided nothing, which is not the worker's fault.
"""

import json
from typing import Final

from subagents.domain.run.effects import GiveVerdict, StartJudge, Transition
from subagents.domain.run.events import ChecksPassed, ChildSettled
from subagents.domain.run.outcome import Check, CheckType, Outcome, Status, Verification, verdict_of
from subagents.domain.run.run import Run
from subagents.domain.run.values import replace
from subagents.domain.text.announcement import ending
from subagents.text import cut, one_line

REASONS_CHARS_MAX: Final = 2_000
OPENINGS_MAX: Final = 200
"""How many braces are tried as the beginning of the verdict, so that no text takes long to read."""


def checks_passed(run: Run, event: ChecksPassed) -> Transition:
    """Ask the judge; the checks are kept for the one verdict."""
    if event.attempt != run.attempt.number:
        return Transition(run, stale=True)
    record = replace(run.verification, passed=event.checks)
    run = replace(run, verification=record)
    return Transition(run, effects=(StartJudge(attempt=event.attempt),))


def judge_settled(run: Run, event: ChildSettled) -> Transition:
    """The end of its judge is the end of the verification."""
    judge = run.resolved.judge
    agent_id = "" if judge is None else judge.agent_id
    check = judged(agent_id, event.child, event.outcome, event.result)
    return Transition(run, followups=(GiveVerdict(verification=verification_of(run, check)),))


def verification_of(run: Run, judge: Check) -> Verification:
    """What the contract found, the judge's check behind those that passed before it."""
    checks = (*run.verification.passed, judge)
    return Verification(verdict=verdict_of(checks), checks=checks)


def judged(agent_id: str, run_id: str, outcome: Outcome, result: str | None) -> Check:
    """The check that the run of a judge comes to, by its outcome and the text of its result."""
    if outcome.status is not Status.OK:
        return undecided(agent_id, f"its run {ending(outcome)}", run_id=run_id)
    found = _last_object(result or "")
    verdict = str(found.get("verdict", "")).lower()
    if verdict not in {"pass", "fail"}:
        said = one_line(result or "", 80)
        why = f'its last words are no verdict: "{said}"' if said else "it said nothing"
        return undecided(agent_id, why, run_id=run_id)
    said = f"{verdict}: {_reasons(found.get('reasons'))}"
    is_pass = verdict == "pass"
    return Check(
        type=CheckType.JUDGE,
        target=target_of(agent_id),
        passed=is_pass,
        reason=None if is_pass else said,
        evidence=f"{said}\njudged by run {run_id}",
    )


def undecided(agent_id: str, why: str, *, run_id: str | None = None) -> Check:
    """The check of a judge that gave no verdict."""
    return Check(
        type=CheckType.JUDGE,
        target=target_of(agent_id),
        passed=False,
        reason=f"the judge could not decide: {cut(one_line(why, REASONS_CHARS_MAX), 500)}",
        evidence=None if run_id is None else f"judged by run {run_id}",
        could_not_check=True,
    )


def target_of(agent_id: str) -> str:
    return f"judge (agent {agent_id})"


def _reasons(given: object) -> str:
    texts = given if isinstance(given, list) else [given]
    said = [one_line(str(each), REASONS_CHARS_MAX) for each in texts if each]
    return cut("; ".join(said), REASONS_CHARS_MAX) or "no reason given"


def _last_object(text: str) -> dict[str, object]:
    """The JSON object with which the text ends, in a code block or not; empty = there is none.

    Only the end counts: what a judge quotes of the work before it may hold a verdict, too.
    """
    text = text.strip().removesuffix("```").rstrip()
    at = len(text)
    for _ in range(OPENINGS_MAX):
        at = text.rfind("{", 0, at)
        if at < 0:
            break
        try:
            found, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        if end == len(text) and isinstance(found, dict):
            return found
    return {}


_decoder: Final = json.JSONDecoder()
