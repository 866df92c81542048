# ruff: noqa: E501 - one line per requirement, so that each can be found, moved and counted
"""What this project promises: id → (source, sentence), by the part that proves most of it.

An id is ``area:behaviour``; tests name the ids they prove with ``@pytest.mark.requirement``.
Sources are the specification, the seeds ("seed 000 §2.7 box 6") and the failures seen in the field.
"""

from typing import Final

Lines = dict[str, tuple[str, str]]

CORE: Final[Lines] = {
    "announcement:cut-on-display": (
        "2-lifecycle §7",
        "A long result is cut on display with a pointer, and kept whole.",
    ),
    "announcement:failed-checks": ("2-lifecycle §6", "Failed checks are in the announcement."),
    "announcement:report": ("2-lifecycle §3, §7", "A completion report is told before the result."),
    "announcement:text": ("2-lifecycle §7", "The announcement of every outcome, to the letter."),
    "announcement:untrusted": (
        "2-lifecycle §7",
        "What a worker wrote is fenced data: no backticks, fake system messages or error texts get out of it.",
    ),
    "announcement:usage-unknown": (
        "seed 000 §7.1",
        "Usage that nobody reported stays unknown and is never 0.",
    ),
    "attempts:numbered": (
        "2-lifecycle §4",
        "A retry is a new attempt of the same run, in a new session, that names the one before.",
    ),
    "cancel:cascaded-is-quiet": (
        "2-lifecycle §7, §10",
        "A child that ended with its parent is recorded and pushed to nobody.",
    ),
    "cancel:cascades": (
        "2-lifecycle §10",
        "A cancel or timeout reaches running, queued and waiting descendants.",
    ),
    "cancel:confirmed-by-state": (
        "2-lifecycle §10",
        "A cancelled live run ends when its worker has ended.",
    ),
    "cancel:every-phase": (
        "2-lifecycle §10",
        "A cancel works in every phase before announcing, is durable first, and never lets a run start.",
    ),
    "cancel:idempotent": (
        "2-lifecycle §10",
        "Repeating a cancel is harmless; a finished run is left alone.",
    ),
    "cancel:unknown": ("2-lifecycle §10", "Cancelling an unknown run says that it is unknown."),
    "children:appended": (
        "2-lifecycle §5 last paragraph",
        "Without turns the children's results are appended to the run's.",
    ),
    "children:follow-up-turn": (
        "2-lifecycle §5 last paragraph",
        "A resumable session gets one follow-up turn with all the results, within its deadline.",
    ),
    "children:no-announce-while-active": (
        "2-lifecycle §5 last paragraph",
        "A run with live children does not announce.",
    ),
    "children:parent-told": (
        "2-lifecycle §3, §5",
        "The parent and the dependants hear of an end in its own commit.",
    ),
    "children:told-once": (
        "2-lifecycle §7",
        "Children whose results the agent read itself are not told again.",
    ),
    "cleanup:keep-or-delete": (
        "2-lifecycle §11",
        "Child sessions are deleted only when asked; never run, result, usage or journal.",
    ),
    "commit:failure-recovers": (
        "2-lifecycle §12.3; 5-surfaces §7 (disk full)",
        "After failed commits the engine forgets its memory, waits for the disk and goes on; no call is served meanwhile.",
    ),
    "commit:groups": ("2-lifecycle §12.3", "What arrives during a commit shares the next one."),
    "commit:nothing-observable-before": (
        "2-lifecycle §12.3",
        "Nothing is observable before its commit: no answer, effect, view or delivery.",
    ),
    "commit:poison": (
        "2-lifecycle §12.3",
        "A value that cannot be written harms nothing but its own call.",
    ),
    "deadline:enforced-by-us": (
        "2-lifecycle §5",
        "The engine enforces the deadline and keeps partial output.",
    ),
    "deadline:stays-timeout": (
        "2-lifecycle §5",
        "An attempt stopped at its deadline is a timeout, also when it then exits 0.",
    ),
    "deadline:stored-absolute": (
        "2-lifecycle §5",
        "The deadline is stored absolute at the attempt's start and outlives a restart.",
    ),
    "deadline:warned": (
        "2-lifecycle §5",
        "A worker that can be told is warned once at 90 percent of its time.",
    ),
    "delivery:backoff": (
        "2-lifecycle §7",
        "Tries back off from 15 s to 5 min with 20 percent jitter that a replay repeats.",
    ),
    "delivery:bubbles": (
        "2-lifecycle §7",
        "What a dead session never read goes to the nearest living ancestor.",
    ),
    "delivery:consumed-once": (
        "2-lifecycle §7",
        "Whichever door is first, a result is consumed once, for good.",
    ),
    "delivery:deferred-goes-on": (
        "2-lifecycle §7, §11",
        "A deferred delivery is tried at its stored time until it arrives, also after a restart.",
    ),
    "delivery:direct-consumes": (
        "2-lifecycle §7",
        "A courier that carried the text has consumed the message for every door.",
    ),
    "delivery:gives-up-after-30-minutes": (
        "2-lifecycle §7",
        "Retryable failures are given up after 30 minutes; progress starts that time again.",
    ),
    "delivery:giveup-keeps-result": (
        "2-lifecycle §1, §7",
        "Giving up keeps the result, lists it under attention, and can be undone by hand.",
    ),
    "delivery:nested-is-internal": (
        "2-lifecycle §7",
        "A nested result goes to no outside channel.",
    ),
    "delivery:no-silent-expiry": ("2-lifecycle §7", "A deferral never ends in giving up."),
    "delivery:offer-lease": (
        "2-lifecycle §7",
        "An offer leases the message to one reader; unacknowledged, it is offered again.",
    ),
    "delivery:order": (
        "2-lifecycle §7",
        "Doors are tried in the order that expectsCompletionMessage asks for.",
    ),
    "delivery:policy": (
        "2-lifecycle §7; seed 004 part 5",
        "Each delivery outcome has its consequence, decided apart from transport.",
    ),
    "delivery:queued": (
        "2-lifecycle §7",
        "Without a courier the result waits in the inbox and the run is delivered.",
    ),
    "delivery:silent-texts": (
        "2-lifecycle §7",
        "ANNOUNCE_SKIP and NO_REPLY, alone, skip the push and not the inbox row.",
    ),
    "delivery:traced": (
        "2-lifecycle §7; seed 004 part 4",
        "Every try is on record with target, depth, mode, phases, outcome and key.",
    ),
    "delivery:unknown-message": (
        "2-lifecycle §7",
        "Acknowledging a message that does not exist is refused.",
    ),
    "dependencies:cycles": (
        "2-lifecycle §2 item 7; seed 002 Edge Cases 5",
        "A cycle is refused and spelled out, without recursion or explosion.",
    ),
    "dependencies:failure-cancels": (
        "2-lifecycle §3",
        "An unusable dependency ends the run with its id, outcome and error in the text.",
    ),
    "dependencies:failure-runs": (
        "2-lifecycle §3",
        "With onDependencyFailure run the work starts anyway and is told what it lacks.",
    ),
    "dependencies:fan-in": (
        "2-lifecycle §3",
        "Several dependencies are joined, with their results in the order given.",
    ),
    "dependencies:not-found": (
        "2-lifecycle §2 item 7; seed 002 Edge Cases 1",
        "A dependency that does not exist, or is somebody else's, is refused at once.",
    ),
    "dependencies:partial": (
        "2-lifecycle §3",
        "A partial dependency is usable only with acceptPartialDependencies.",
    ),
    "dependencies:released": (
        "2-lifecycle §3",
        "A run waits for all its dependencies, is released by their ends, and not at all by completed ones.",
    ),
    "dependencies:result": (
        "2-lifecycle §3",
        "A dependency's result is the stored text, else its report's summary and artifacts.",
    ),
    "dependencies:result-cut": (
        "2-lifecycle §3",
        "A result longer than 32 KiB is cut between characters with a pointer to the rest.",
    ),
    "dependencies:timeout": (
        "2-lifecycle §3; seed 002 Edge Cases 3",
        "Waiting too long ends the run with the exact text and the default of 30 minutes.",
    ),
    "engine:concurrent-control": ("2-lifecycle §10", "Many hands on one run end it once."),
    "engine:dependants-survive": (
        "2-lifecycle §3",
        "A dependant that is over and gone does not strand the others.",
    ),
    "engine:many-at-once": (
        "8-field-failures: lock files and whole-file rewrites",
        "A thousand runs in one batch all end and are all returned.",
    ),
    "engine:memory": (
        "6-house-style guideline 28",
        "Runs that are over leave memory, children with their parent.",
    ),
    "engine:stop-and-start": (
        "6-house-style guideline 10",
        "Stopping waits for what was accepted and leaves workers alone.",
    ),
    "errors:stable": (
        "6-house-style guideline 21; 5-surfaces §2",
        "Codes, exit codes and retryability of errors are stable, with one document for all doors.",
    ),
    "field:answer-dropped-as-stale": (
        "8-field-failures: sculptor PR #141",
        "An answer is stored before delivery and consumed once.",
    ),
    "field:answers-took-hours": (
        "8-field-failures: OpenSwarm PR #434",
        "An answer reaches its worker without any back-off.",
    ),
    "field:budget-stop-looks-like-success": (
        "8-field-failures: mecatl #422",
        "A child stopped by its budget is partial, whatever it wrote.",
    ),
    "field:cap-exceeded": (
        "8-field-failures: concurrency surprises",
        "Caps are exact under racing spawns.",
    ),
    "field:children-billed-on": (
        "8-field-failures: claude-code #82104",
        "A cancel of a parent ends every descendant within 2 s.",
    ),
    "field:data-lost-on-cleanup": (
        "8-field-failures: data lost on cleanup",
        "Archiving deletes no run, result or journal.",
    ),
    "field:dead-parents-inbox": (
        "8-field-failures: omnigent #3274",
        "What a dead parent never read bubbles up.",
    ),
    "field:deadlock-at-one": (
        "8-field-failures: concurrency surprises",
        "A lane of one slot does not deadlock with nested runs.",
    ),
    "field:delivered-twice": (
        "8-field-failures: delivered twice or in a loop",
        "A result is consumed once, by whichever reader.",
    ),
    "field:early-notification": (
        "8-field-failures: claude-agent-sdk-python #882",
        "No terminal event before exit evidence and verdict.",
    ),
    "field:empty-wake-turn": (
        "8-field-failures: omnigent #5614",
        "An unacknowledged item is offered again.",
    ),
    "field:gave-up-and-dropped": (
        "8-field-failures: OpenClaw #44925",
        "A given-up result is kept and listed under attention.",
    ),
    "field:kill-marked-the-record-only": (
        "8-field-failures: cannot stop",
        "A kill stops the work, not only the record.",
    ),
    "field:launched-more-than-notified": (
        "8-field-failures: claude-code #87675; result never reaches the parent",
        "Counts are equal under 50 ends in the same millisecond.",
    ),
    "field:model-override-ignored": (
        "8-field-failures: model override ignored",
        "Parameters are immutable; the receipt says what was resolved.",
    ),
    "field:parent-never-woken": (
        "8-field-failures: parent parked and never woken",
        "A wait is woken by every terminal state.",
    ),
    "field:parked-delivery-expired": (
        "8-field-failures: agentwire #872",
        "Delivery has no silent expiry.",
    ),
    "field:restart-repeats-work": (
        "8-field-failures: restart repeats work",
        "One worker per attempt over any number of restarts.",
    ),
    "field:silently-broken-agents": (
        "8-field-failures: multica #1326",
        "Every open run has a decision record within 2 s of the start.",
    ),
    "field:spawn-burst": (
        "8-field-failures: lock files and whole-file rewrites",
        "Of a burst of spawns none fails but by its cap.",
    ),
    "field:stop-and-resume-lost-tasks": (
        "8-field-failures: bernstein #2798",
        "fold(journal) is the same before and after a restart.",
    ),
    "field:wrong-destination-and-leaks": (
        "8-field-failures: wrong destination, internals leaked",
        "Results go to the session that asked, as quoted data.",
    ),
    "house:documented": (
        "6-house-style guidelines 32 and 33",
        "Every public class says what it is, and public functions of the ports and errors say what they promise.",
    ),
    "house:modules": (
        "6-house-style guidelines 9 and 12",
        "Modules are short and named for what they are.",
    ),
    "house:no-markers": ("6-house-style guideline 33", "No notes to self are left behind."),
    "house:no-sleeping-tests": ("6-house-style guideline 37", "No test sleeps blindly."),
    "house:sql-in-files": (
        "6-house-style guideline 29",
        "SQL is in .sql files, none in Python strings.",
    ),
    "house:typed": (
        "6-house-style guideline 20",
        "The public API has a file of typed uses, checked and never run.",
    ),
    "journal:fold-is-the-run": (
        "2-lifecycle §1",
        "Folding the written journal gives the stored run.",
    ),
    "lanes:caps": (
        "1-product (lane); 2-lifecycle §1",
        "Never more runs work at once than their lane has slots; first come, first served.",
    ),
    "lanes:no-deadlock": (
        "8-field-failures: concurrency surprises",
        "A child waits for no slot that its ancestor holds.",
    ),
    "lanes:order": ("2-lifecycle §2", "Higher priority goes first, then who waited longest."),
    "lease:expired-is-lost": (
        "2-lifecycle §5, §11",
        "A worker that nobody can watch is lost after its lease; late signals change nothing.",
    ),
    "lease:kept-while-watched": (
        "2-lifecycle §11",
        "A quiet worker keeps its lease, and the lease goes with the attempt.",
    ),
    "lifecycle:announced-once": (
        "2-lifecycle §7; 1-product (a result is a committed row)",
        "Whatever happens in whichever order, a run is announced at most once.",
    ),
    "lifecycle:illegal-changes-nothing": (
        "2-lifecycle §1",
        "An event that is neither legal nor stale is refused by name and changes nothing.",
    ),
    "lifecycle:no-dead-ends": (
        "2-lifecycle §10",
        "From every state a run can reach, a cancel leads to its end.",
    ),
    "lifecycle:origin-is-kept": (
        "2-lifecycle §2 last paragraph; seed 000 §2.3",
        "Spawn parameters are kept word for word: retries, restarts and later edits of the configuration change nothing.",
    ),
    "lifecycle:outcome-is-final": (
        "2-lifecycle §5",
        "A run gets its outcome once; nothing changes it afterwards.",
    ),
    "lifecycle:transitions-are-data": (
        "2-lifecycle §1",
        "Legal transitions are a table: every phase is reached, and phases move only along it.",
    ),
    "mailbox:live-only": ("3-tools For workers", "A run without a live attempt can say nothing."),
    "mailbox:notices": (
        "3-tools notify_parent",
        "A notice is one message in the requester's inbox; question and blocker call for attention.",
    ),
    "mailbox:progress-rate": (
        "3-tools report_progress; seed 000 §5.4 boxes 2 and 4",
        "Progress is taken once in 30 s, and the run has only the latest.",
    ),
    "mailbox:report": (
        "3-tools report_completion",
        "A report is evidence for outcome and contract and ends nothing.",
    ),
    "pause:queued": (
        "2-lifecycle §10",
        "A paused run is held, also over restarts, and takes no slot.",
    ),
    "pause:turn-boundary": (
        "2-lifecycle §10",
        "A live run is held at its next turn boundary where the runtime has turns; it can be resumed and cancelled there.",
    ),
    "prompt:dependency-result": (
        "2-lifecycle §3",
        "Dependency results are prepended exactly: bare for one, labelled blocks for several.",
    ),
    "prompt:plain": (
        "2-lifecycle §2 last paragraph",
        "A task alone is the whole prompt, to the letter.",
    ),
    "prompt:retry": (
        "2-lifecycle §4; seed 000 §2.5",
        "A retry is announced with the reason and the original task, apart for failed verification.",
    ),
    "prompt:system": (
        "3-tools System prompt given to a worker; seed 000 §4.5 box 6, §5.4 box 6",
        "The system prompt conveys the facts of this run and only the instructions asked for.",
    ),
    "queries:attention": (
        "5-surfaces attention",
        "Questions, blockers and undelivered results are listed until they are dealt with.",
    ),
    "queries:resolve": (
        "5-surfaces §2 (selectors)",
        "A run is found by id, label, prefix and last.",
    ),
    "queries:tree": ("3-tools sessions_tree", "The tree shows every descendant."),
    "reconcile:errors-are-bounded": (
        "6-house-style guideline 28",
        "The error carries the end of stderr and is bounded.",
    ),
    "reconcile:first-exit": (
        "2-lifecycle §5",
        "A known exit replaces an unknown one and is never replaced.",
    ),
    "reconcile:last-tool-call": (
        "seed 000 §4.2",
        "A tool used after the report makes it no longer the last call.",
    ),
    "reconcile:order": (
        "2-lifecycle §5",
        "The order and number of signals do not matter for the outcome.",
    ),
    "reconcile:our-stop-stays": (
        "2-lifecycle §5",
        "A stop that we asked for stays the outcome, also when the process then exits 0.",
    ),
    "reconcile:report-only-lowers": (
        "2-lifecycle §5; 1-product (report)",
        "A worker's report can lower an outcome, never raise it.",
    ),
    "reconcile:rules": (
        "2-lifecycle §5",
        "Exit evidence beats text, a kill not asked for is an error, no evidence and no lease is lost.",
    ),
    "reconcile:settle-window": (
        "2-lifecycle §5",
        "A stream's final result within 2 s after the exit still counts.",
    ),
    "reconcile:usage-is-a-total": (
        "2-lifecycle §9",
        "Usage is a total, so that a doubled signal counts once.",
    ),
    "recovery:adopts": (
        "2-lifecycle §11",
        "Workers that lived on are adopted and none is started twice.",
    ),
    "recovery:any-instant": ("2-lifecycle §11", "Crashes at every second lose and double nothing."),
    "recovery:corrupt-refused": (
        "5-surfaces §7 (corrupt database)",
        "An engine does not start on a damaged store, and does not change it.",
    ),
    "recovery:decisions": (
        "8-field-failures: multica #1326",
        "Every open run has a decision record when the engine starts.",
    ),
    "recovery:goes-on": (
        "2-lifecycle §11",
        "Waits, retries, deadlines, questions, cancels and deliveries go on after a crash.",
    ),
    "recovery:lost": (
        "2-lifecycle §11",
        "A worker that is gone is lost, and retried only by its own policy.",
    ),
    "recovery:second-engine": (
        "2-lifecycle §12.5",
        "A second engine on the same store is refused and the first goes on.",
    ),
    "requests:answered": (
        "3-tools request_orchestrator",
        "An answer reaches the waiting worker at once.",
    ),
    "requests:bounds": ("3-tools request_orchestrator", "Wrong questions are refused by name."),
    "requests:closed-with-attempt": (
        "2-lifecycle §5",
        "The end of the attempt closes its questions.",
    ),
    "requests:default-at-deadline": (
        "3-tools request_orchestrator",
        "At the deadline the default answer counts, else a timeout, with who decided on record.",
    ),
    "requests:durable": (
        "3-tools request_orchestrator",
        "A question survives both sides' death with its deadline.",
    ),
    "requests:first-answer-counts": (
        "3-tools respond_orchestrator_request",
        "Of many answers the first counts, also after a crash.",
    ),
    "requests:limits": (
        "3-tools request_orchestrator; seed 000 §1",
        "5 per minute and 3 pending per run, 20 pending per requester, each named.",
    ),
    "requests:oldest-first": (
        "3-tools; 5-surfaces attention",
        "Open questions are listed oldest first.",
    ),
    "requests:stored-before-delivered": (
        "3-tools request_orchestrator",
        "A question is a committed inbox row before anybody hears of it.",
    ),
    "requirements:both-ways": (
        "6-house-style guideline 36",
        "Every requirement has a test, every marker is a requirement, every box of the seeds is mapped.",
    ),
    "retry:attempts-are-bounded": (
        "2-lifecycle §4",
        "Attempts never exceed 1 + retryCount + the one verification retry.",
    ),
    "retry:backoff-bounded": ("2-lifecycle §4", "No delay is longer than an hour."),
    "retry:by-hand": (
        "5-surfaces §2 (retry)",
        "An ended run can be started again from its stored parameters.",
    ),
    "retry:max-time": (
        "2-lifecycle §4",
        "retryMaxTime cuts the last delay and then ends the retries.",
    ),
    "retry:not-after-cancel": ("2-lifecycle §4", "A cancelled run is never retried."),
    "retry:retry-on": (
        "2-lifecycle §4",
        "retryOn is case-insensitive substrings of the end and its text; none = all.",
    ),
    "retry:start-failures": (
        "2-lifecycle §4",
        "Failing to start is retried, a start that can never work is not.",
    ),
    "retry:stored-due-time": (
        "2-lifecycle §4",
        "A retry is a durable phase with a stored due time: it survives restarts and is exactly one attempt.",
    ),
    "retry:timeouts": (
        "2-lifecycle §4, §5",
        "A deadline's end is a timeout that the retry policy sees.",
    ),
    "retry:what-is-retried": (
        "2-lifecycle §4",
        "Only error, timeout, lost and failed starts are retried; never cancelled or budget.",
    ),
    "seed000:2.7.1": ("seed 000 §2.7 box 1", "A spawn accepts a verification contract."),
    "seed000:2.7.10": (
        "seed 000 §2.7 box 10",
        "onFailure retry_once runs again with the same parameters and the failure told.",
    ),
    "seed000:2.7.11": (
        "seed 000 §2.7 box 11",
        "retryAttemptedAt prevents a second retry across restarts.",
    ),
    "seed000:2.7.12": ("seed 000 §2.7 box 12", "The tree has the verification state of each node."),
    "seed000:2.7.13": (
        "seed 000 §2.7 box 13",
        "There is one door for changes of a run: its journal always gives the stored run.",
    ),
    "seed000:2.7.15": ("seed 000 §2.7 box 15", "End to end: a valid file passes."),
    "seed000:2.7.16": (
        "seed 000 §2.7 box 16",
        "End to end: an invalid file triggers its onFailure.",
    ),
    "seed000:2.7.17": (
        "seed 000 §2.7 box 17",
        "End to end: a verification timeout maps to onFailure.",
    ),
    "seed000:2.7.18": (
        "seed 000 §2.7 box 18",
        "End to end: a restart during verification runs it again.",
    ),
    "seed000:2.7.19": ("seed 000 §2.7 box 19", "A second failure after the retry counts as fail."),
    "seed000:2.7.2": (
        "seed 000 §2.7 box 2",
        "The contract and the original parameters are stored in the run.",
    ),
    "seed000:2.7.20": (
        "seed 000 §2.7 box 20",
        "Verification does not begin while the attempt still settles.",
    ),
    "seed000:2.7.3": (
        "seed 000 §2.7 box 3",
        "Verification runs after the attempt settled and before the announcement.",
    ),
    "seed000:2.7.4": ("seed 000 §2.7 box 4", "The verification state is persisted for restarts."),
    "seed000:2.7.5": ("seed 000 §2.7 box 5", "A run is not done before its verdict."),
    "seed000:2.7.8": (
        "seed 000 §2.7 box 8",
        "onFailure fail makes the run failed with structured details.",
    ),
    "seed000:2.7.9": (
        "seed 000 §2.7 box 9",
        "onFailure escalate tells the requester with details.",
    ),
    "seed000:8.1": (
        "seed 000 §8 High-Risk 1",
        "A restart during verification resumes the run and verifies again.",
    ),
    "seed000:8.2": ("seed 000 §8 High-Risk 2", "The retry guard prevents duplicate retries."),
    "seed000:8.3": (
        "seed 000 §8 High-Risk 3",
        "Two signals of the same end start one verification.",
    ),
    "seed000:8.6": (
        "seed 000 §8 High-Risk 6",
        "A retry uses the same model, thinking and timeout.",
    ),
    "seed001:allow-agents": (
        "seed 001 Agent Allowlist",
        "The star, empty lists and normalised names work as documented.",
    ),
    "seed001:announcement": (
        "seed 001 Result Announcement",
        "The trigger message has its documented format.",
    ),
    "seed001:children": (
        "seed 001 Depth and Children Limits",
        "The children limit is enforced per requester session.",
    ),
    "seed001:depth": (
        "seed 001 Depth and Children Limits",
        "The depth limit is enforced with its configuration key.",
    ),
    "seed001:modes": (
        "seed 001 Two Spawn Modes",
        "Modes run and session are resolved as documented.",
    ),
    "seed001:registry": (
        "seed 001 Sub-agent Registry",
        "Runs are registered, found and listed for their requester.",
    ),
    "seed001:session-key": (
        "seed 001 Session Key Format",
        "agent:<id>:subagent:<uuid>, from which the agent is read.",
    ),
    "seed001:spawn-flow": (
        "seed 001 Spawn Flow",
        "The steps of a spawn come in their order and end in accepted with ids.",
    ),
    "seed001:sweeper": (
        "seed 001 Sub-agent Registry",
        "A sweep every 60 s archives completed runs after 60 minutes.",
    ),
    "seed001:system-prompt": (
        "seed 001 Sub-agent System Prompt",
        "The worker is told its role, rules, depth and context.",
    ),
    "seed002:backoff-exponential": ("seed 002 Test Data row 8", "exponential: a doubling delay."),
    "seed002:backoff-fixed": ("seed 002 Test Data row 6", "fixed: the same delay each retry."),
    "seed002:backoff-linear": ("seed 002 Test Data row 7", "linear: an increasing delay."),
    "seed002:chain-completed": (
        "seed 002 Test Data row 1",
        "chainAfter a completed run starts immediately.",
    ),
    "seed002:chain-not-found": (
        "seed 002 Test Data row 3",
        "chainAfter an unknown run is an error at once.",
    ),
    "seed002:chain-running": (
        "seed 002 Test Data row 2",
        "chainAfter a running run waits for its completion.",
    ),
    "seed002:include-result": (
        "seed 002 Feature 1 step 3",
        "includeDependencyResult prepends the result in the exact format.",
    ),
    "seed002:retry-count-0": ("seed 002 Test Data row 4", "retryCount 0 means no retries."),
    "seed002:retry-count-3": (
        "seed 002 Test Data row 5",
        "retryCount 3 with all failures ends after 3 retries.",
    ),
    "seed002:retry-max-time": (
        "seed 002 Test Data row 10",
        "retryMaxTime exceeded: no more retries.",
    ),
    "seed002:retry-on": (
        "seed 002 Test Data row 9",
        "retryOn timeout with an auth error: no retry.",
    ),
    "seed004:bubbling": ("seed 004 Acceptance 5", "Nested completions bubble up."),
    "seed004:dispatch-order": (
        "seed 004 Acceptance 3",
        "Direct and queue are tried in the documented order.",
    ),
    "seed004:invariants": ("seed 004 Spawn-time invariants", "The spawn guardrails hold together."),
    "seed004:restart-resumes": (
        "seed 004 Acceptance 4",
        "A restart resumes pending announcements and cleanup.",
    ),
    "seed004:session-needs-thread": (
        "seed 004 Spawn-time invariants",
        "mode session requires thread.",
    ),
    "seed004:traceable": (
        "seed 004 Acceptance 1",
        "A run is traced from spawn to cleanup on one timeline, with every delivery try.",
    ),
    "seed004:typed-outcomes": (
        "seed 004 Acceptance 2",
        "Announce outcomes are explicit, with reasons.",
    ),
    "sessions:keys": ("2-lifecycle §2", "The agent is read from the session key."),
    "signals:doubled": ("2-lifecycle §1, §5", "A doubled fact changes nothing observable."),
    "signals:late": ("2-lifecycle §1", "A late signal is journaled and is no news."),
    "spawn:accepted": ("2-lifecycle §2", "Accepted means committed: only then is the id returned."),
    "spawn:allow-agents": (
        "2-lifecycle §2 item 5",
        "Another agent must be on the requester's list; itself it may always spawn.",
    ),
    "spawn:batch-all-or-nothing": ("2-lifecycle §3", "A batch is stored whole or not at all."),
    "spawn:children": (
        "2-lifecycle §2 item 4",
        "The children limit, in its exact words, exact under racing spawns and during recovery.",
    ),
    "spawn:depth": ("2-lifecycle §2 item 3", "The depth limit, in its exact words."),
    "spawn:ended-session": ("2-lifecycle §2", "A session that ended spawns no more."),
    "spawn:guardrail-order": (
        "2-lifecycle §2",
        "Guardrails are asked in their order, and a refusal stores nothing.",
    ),
    "spawn:idempotency": (
        "2-lifecycle §2",
        "The same key from the same requester gives the first run for 24 h, also when racing.",
    ),
    "spawn:mode": (
        "2-lifecycle §2 items 1 and 2",
        "Explicit mode wins, a thread means session, a session without a thread is refused.",
    ),
    "spawn:nothing-half-done": (
        "2-lifecycle §2, §12",
        "A spawn whose commit failed was never there.",
    ),
    "spawn:target-agent": (
        "2-lifecycle §2 item 5",
        "The agent is named, the requester's own, or the configured one; else the agents are listed.",
    ),
    "steer:limits": (
        "2-lifecycle §10",
        "At most 4,000 characters, one per 2 s, never by the run itself.",
    ),
    "steer:live": (
        "2-lifecycle §10",
        "A message goes into the live attempt where the runtime can.",
    ),
    "steer:next-turn": (
        "2-lifecycle §10",
        "Else it is kept for the next turn or attempt, and never lost on the way.",
    ),
    "steer:unable": (
        "2-lifecycle §10",
        "A runtime that takes no messages, or a run that ended, says so.",
    ),
    "store:archivable": (
        "2-lifecycle §11",
        "Runs over for long enough are archivable; sessions never.",
    ),
    "store:archive-keeps-all": ("2-lifecycle §11", "Archiving hides a run and deletes nothing."),
    "store:atomic": ("2-lifecycle §12.2", "A batch that fails writes nothing."),
    "store:backup": (
        "5-surfaces §2 (db backup)",
        "A backup taken in use is opened like the original and has everything.",
    ),
    "store:closed": ("ports.Store", "A closed store takes nothing, and closing again is harmless."),
    "store:committed-only": ("2-lifecycle §12.3", "Readers see only committed state."),
    "store:corruption": (
        "5-surfaces §7 (corrupt database)",
        "Damage is noticed, nothing is changed, and the way to restore is named.",
    ),
    "store:durable": (
        "2-lifecycle §12.2",
        "What was committed is there after closing and opening.",
    ),
    "store:epoch-fences": (
        "2-lifecycle §12.5; 6-house-style guideline 26",
        "An older epoch commits and prunes nothing any more.",
    ),
    "store:filters": ("3-tools sessions_list", "Every filter narrows; lists are newest first."),
    "store:find": ("5-surfaces §2 (selectors)", "Ids are found by prefix, at most ten."),
    "store:full-disk": (
        "5-surfaces §7 (disk full)",
        "A full disk refuses commits whole until there is room.",
    ),
    "store:inbox": (
        "2-lifecycle §7",
        "Unread messages come oldest first, per session, and consumption is recorded once.",
    ),
    "store:inbox-consumed-at-once": ("2-lifecycle §7", "A message can be written as consumed."),
    "store:inbox-moves": ("2-lifecycle §7", "Unread messages change hands and read ones stay."),
    "store:indexed": ("6-house-style guideline 28", "What is asked all the time scans no table."),
    "store:journal-order": ("2-lifecycle §1", "A journal has one event per number and is paged."),
    "store:leases": (
        "2-lifecycle §11",
        "A lease is renewed, released, and never taken back by an older epoch.",
    ),
    "store:migrations": (
        "6-house-style guideline 30",
        "Migrations are numbered, give the schema of a fresh file, keep a copy first, and fail whole.",
    ),
    "store:named-statements": (
        "6-house-style guideline 29",
        "Every named statement is used, exists, and is understood by the schema.",
    ),
    "store:newer-schema": (
        "6-house-style guideline 30",
        "A file of a newer version is refused unchanged.",
    ),
    "store:one-announcement": (
        "2-lifecycle §7, §12.2",
        "A unique index lets a run have one announcement for ever.",
    ),
    "store:one-holder": (
        "2-lifecycle §12.5",
        "A second holder, also in another process, is refused while the first lives.",
    ),
    "store:open-runs": (
        "2-lifecycle §11",
        "Open runs are loaded with the ended children they still need.",
    ),
    "store:outbox": (
        "2-lifecycle §12.4",
        "An effect stays until it is performed, in the order of its run.",
    ),
    "store:private-file": ("5-surfaces §4", "The database is readable by its owner only."),
    "store:probe": ("ports.Store", "A probe leaves nothing behind."),
    "store:prunable": ("2-lifecycle §7", "A result nobody read is never prunable."),
    "store:prune": ("2-lifecycle §11", "Pruning deletes a run and all that belongs to it."),
    "store:round-trip": (
        "2-lifecycle §12.2",
        "A commit is read back as it was written: run, journal, outbox, inbox, lease, key.",
    ),
    "store:signal-once": (
        "2-lifecycle §12.2",
        "A unique index applies a signal's key once per run.",
    ),
    "store:suite-can-fail": (
        "6-house-style guideline 31",
        "The suite fails where a promise is broken.",
    ),
    "store:update": ("2-lifecycle §2", "An update changes the state and keeps what was asked."),
    "sweep:archive": (
        "2-lifecycle §11",
        "Runs are archived an hour after completion, sessions never.",
    ),
    "sweep:is-the-truth": (
        "2-lifecycle §11 last sentence",
        "The sweep finds what the timers missed.",
    ),
    "sweep:prune": (
        "2-lifecycle §7, §11",
        "A run is pruned a week after it was read and never before.",
    ),
    "timers:clock-jumps": (
        "ports.Clock",
        "When the wall clock jumps, everything due happens soon.",
    ),
    "timers:due-times": (
        "2-lifecycle §4, §5, §7",
        "A timer at its due time always moves it; phases without time have none.",
    ),
    "tools:denied-for-descendants": (
        "2-lifecycle §8",
        "Denies are inherited by all descendants, the allow list by the same agent.",
    ),
    "tools:effective": (
        "2-lifecycle §8; seed 000 §6.5 boxes 1 and 5",
        "Effective tools are (agent's ∩ allow) − deny.",
    ),
    "tools:never-wider": (
        "2-lifecycle §8; seed 000 §6.5 box 4",
        "Nothing gives a tool that somebody withheld; widening is refused with the offenders.",
    ),
    "tools:unenforceable": (
        "2-lifecycle §8",
        "A runtime that cannot enforce a scope refuses the spawn.",
    ),
    "vacuous:marked": (
        "2-lifecycle §6",
        "A contract that passes before any work is marked and warned about.",
    ),
    "verification:could-not-check-no-retry": (
        "2-lifecycle §4 last sentence",
        "A checker that could not run never causes a retry of the worker.",
    ),
    "verification:end-to-end": (
        "2-lifecycle §6",
        "From spawn to announcement: met, not met, too late, with and without the required report.",
    ),
    "verification:escalate": ("2-lifecycle §6", "escalate adds a blocker for the requester."),
    "verification:late-verdict": (
        "2-lifecycle §1, §6",
        "A verdict on an older attempt says nothing.",
    ),
    "verification:on-failure-fail": (
        "2-lifecycle §6",
        "A failed check makes the run an error with the failed checks on record.",
    ),
    "verification:only-claimed-work": (
        "2-lifecycle §6",
        "Only an attempt that says it worked is verified.",
    ),
    "verification:restart": ("2-lifecycle §6, §11", "A restart during verification runs it again."),
    "verification:retry-once": (
        "2-lifecycle §4",
        "retry_once gives one more attempt, apart from retryCount, and then counts as fail.",
    ),
    "verification:state-before-checks": (
        "2-lifecycle §6",
        "The verification state is stored before the checks start.",
    ),
    "wait:any-all": (
        "3-tools sessions_wait",
        "Waiting ends with any or all of the runs, at the moment they end.",
    ),
    "wait:bounds": ("3-tools sessions_wait", "The bounds of a wait are named."),
    "wait:timeout-is-no-error": (
        "3-tools sessions_wait",
        "A timeout is no error: it says what is pending and what is missing.",
    ),
    "wait:whole-session": (
        "3-tools sessions_wait",
        "Without ids all of the session's runs are waited for.",
    ),
}
"""domain, store and engine"""

BENCH: Final[Lines] = {
    "bench:daemon": (
        "2-lifecycle §12.7",
        "Latencies, restart and live workers are measured at a real daemon process.",
    ),
    "bench:floor": (
        "notes on engines §2.1",
        "The raw SQLite floor writes exactly the rows that the engine wrote.",
    ),
    "bench:measures": (
        "1-product (measured, not claimed); notes on engines §1",
        "The benchmark takes every run through its whole life and its statistics are what they say.",
    ),
    "bench:misses-are-shown": (
        "1-product (honest numbers)",
        "A missed target is printed as missed, with its ratio.",
    ),
}
"""the benchmarks"""

CLI: Final[Lines] = {
    "cli:answer": (
        "5-surfaces §2 (answer, attention); 3-tools For workers",
        "A worker's question reaches whoever waits, and the answer reaches the worker.",
    ),
    "cli:bad-input": (
        "5-surfaces §7",
        "Bad input ends with 2 and names the field; nothing is stored.",
    ),
    "cli:broken-pipe": (
        "5-surfaces §2 (SIGPIPE quiet)",
        "A reader of stdout that goes away causes no message.",
    ),
    "cli:colour": (
        "5-surfaces §2 (NO_COLOR)",
        "Colours appear on a terminal only, and not with NO_COLOR.",
    ),
    "cli:completion": (
        "5-surfaces §2 (shell completion)",
        "--install-completion writes the completion script.",
    ),
    "cli:config": (
        "5-surfaces §5 (config validate)",
        "A typo is named with its file and the nearest known key.",
    ),
    "cli:confirm": (
        "5-surfaces §2 (destructive acts confirm on a tty, need --yes otherwise)",
        "Without a terminal nothing destructive happens without --yes.",
    ),
    "cli:contract-flags": (
        "5-surfaces §2 (--verify and its modifiers); 2-lifecycle §6",
        "Each contract flag describes the --verify before it, and one without is refused.",
    ),
    "cli:daemon": (
        "1-product Ways to run it; 5-surfaces §2 (serve, up, down)",
        "run starts the daemon, down stops it, looking starts none, and a crashed one comes back.",
    ),
    "cli:db": (
        "5-surfaces §2 (db check|backup)",
        "The database can be checked and copied while the daemon runs, never over a file.",
    ),
    "cli:doctor": (
        "5-surfaces §5 (doctor validates everything and says how to mend it)",
        "doctor has daemonPid and a check with a fix for each thing that is wrong.",
    ),
    "cli:durations": (
        "5-surfaces §2 (durations)",
        "250ms, 5m, 1h30m, 2d, PT5M and 90 are read; anything else is refused with the flag's name.",
    ),
    "cli:exit-codes": (
        "5-surfaces §2 (exit codes)",
        "0 ok, 2 usage, 3 not found, 4 denied, 5 unsuccessful, 6 verification failed, 7 unreachable, 8 pending, 130 interrupted.",
    ),
    "cli:harmless": (
        "2-lifecycle §7 (worker text is data of somebody untrusted)",
        "A worker's text cannot move the cursor, hide lines or write the clipboard of a terminal.",
    ),
    "cli:help": (
        "5-surfaces §2 (every command's help has two examples; help topics)",
        "The overview names every command, each has two examples, and every topic can be read.",
    ),
    "cli:inbox": (
        "2-lifecycle §7 (waited, polled and pushed are one delivery)",
        "A message counts as read once it was printed; what was waited for is not shown again.",
    ),
    "cli:init": (
        "5-surfaces §1 (init)",
        "init writes a file that loads and replaces one only when told, keeping the old.",
    ),
    "cli:interrupt": (
        "5-surfaces §2 (130)",
        "Ctrl-C stops the waiting, not the run, and says how to come back.",
    ),
    "cli:json": (
        "5-surfaces §2 (--json on every command; errors as documents)",
        "With --json stdout has exactly one document, also for an error; everything else is on stderr.",
    ),
    "cli:live-tree": (
        "5-surfaces §2 (run shows the live tree)",
        "On a terminal a run is drawn live on stderr and ends with its result and summary.",
    ),
    "cli:look": (
        "5-surfaces §2 (log, timeline, why)",
        "What a run did can be read step by step, also while it runs and over its retries.",
    ),
    "cli:plain": (
        "5-surfaces §2 (non-tty = plain, no pager)",
        "Without a terminal output is plain aligned text.",
    ),
    "cli:plan": (
        "5-surfaces §2 (plan run FILE); 2-lifecycle §3 (all or nothing)",
        "A plan's runs start in the order of their dependencies, or none is accepted.",
    ),
    "cli:plan-file": (
        "5-surfaces §2 (plan run FILE); 2-lifecycle §3 (batch)",
        "A plan reads the same from TOML, YAML and JSON; what is wrong in it is named with its place.",
    ),
    "cli:run": (
        "5-surfaces §2 (run)",
        "run prints the result on stdout, the rest on stderr, and ends with the code of the outcome.",
    ),
    "cli:selectors": (
        "5-surfaces §2 (selectors)",
        "tree:RUN and phase:NAME stand for all runs they match.",
    ),
    "cli:service": (
        "5-surfaces §2 (service install|uninstall)",
        "The systemd unit leaves workers alone; without systemd a clear message.",
    ),
    "cli:spawn": (
        "5-surfaces §2 (spawn --json prints the receipt)",
        "spawn prints the run's id alone, or the receipt.",
    ),
    "cli:spawn-flags": (
        "5-surfaces §2 (flags of run and spawn); 2-lifecycle §2",
        "Every flag reaches its spawn parameter word for word.",
    ),
    "cli:start-up": (
        "5-surfaces §2 (start-up)",
        "--help and status import neither the web framework nor Rich.",
    ),
    "cli:survives-daemon": (
        "1-product (keeps the work through any crash); 3-tools request_orchestrator (durable)",
        "A wait and a question outlive a kill -9 of the daemon.",
    ),
    "cli:task": (
        "5-surfaces §2 (the task is the argument, - = stdin)",
        "A task is one argument, stdin, or a command line after two dashes.",
    ),
    "cli:tree": (
        "5-surfaces §2 (tree, live tree)",
        "A tree shows each run below the one that spawned it and says what it does or why it does not.",
    ),
    "cli:wait": (
        "5-surfaces §2 (wait [--any] [--timeout])",
        "wait prints what ended and what is pending, and ends with 8 at its timeout.",
    ),
    "cli:worker-verbs": (
        "3-tools For workers (plain commands); 5-surfaces §2",
        "report, progress and ask work from a plain command through its environment.",
    ),
    "client:connections": (
        "5-surfaces §4",
        "Connections are reused one call at a time, and concurrent calls do not wait for each other.",
    ),
    "client:errors": (
        "5-surfaces §4 (error documents), §6 (same errors as the wire)",
        "An error document comes back as the class it left as.",
    ),
    "client:speaks": (
        "5-surfaces §4 (HTTP on the Unix socket), §6 (connect)",
        "Both clients send body, query, session and reader, and give the document.",
    ),
    "client:start": (
        "1-product (one daemon per home)",
        "Ten clients at once start one daemon; one that cannot start is said at once with its reason.",
    ),
    "client:unreachable": (
        "5-surfaces §2 (exit 7), §7 (a stale socket)",
        "No daemon, a stale socket, a silent one or something else on the socket is DaemonUnreachable, in bounded time.",
    ),
}
"""the command line"""

CONFIG: Final[Lines] = {
    "config:agent-lookup": (
        "2-lifecycle §2.5 and §2.6",
        "An unknown agent is answered with the nearest and all configured ones.",
    ),
    "config:built-in": (
        "5-surfaces §5 and §1 (command agent always there)",
        "Without any file there are a caller, a command agent and the documented limits.",
    ),
    "config:cache": (
        "5-surfaces §5; 2-lifecycle §2",
        "The daemon sees every change of the configuration at the next spawn, and reads an unchanged one once.",
    ),
    "config:capability-card": (
        "seed 000 §3.5 boxes 1, 2 and 5; 4-observability §7",
        "The capability card is accepted, validated and optional.",
    ),
    "config:documented": (
        "6-house-style guideline 38",
        "docs/configuration.md has every key with bounds, unit and default, and cannot drift.",
    ),
    "config:environment": (
        "5-surfaces §5; 1-product Names",
        "Every key can be set by a SUBAGENTS_ variable with __ for each dot.",
    ),
    "config:errors": (
        "5-surfaces §5 and §7",
        "Unknown keys and wrong values are refused with file, key, what is allowed and the nearest known name.",
    ),
    "config:limits": (
        "5-surfaces §5; 6-house-style guideline 28",
        "Timeouts and slots are resolved from the agent, then the defaults.",
    ),
    "config:merge": ("5-surfaces §5", "Tables merge key by key; lists and single values replace."),
    "config:order": (
        "5-surfaces §5",
        "User file, then project file, then environment, then flags; the later wins.",
    ),
    "config:origin": (
        "5-surfaces §5 (config show --origin)",
        "Each effective value names the file, variable or flag it came from.",
    ),
    "config:project-file": (
        "5-surfaces §5; 2-lifecycle §2 (working directory)",
        "The nearest subagents.toml in or above the working directory is the project file, and paths in it start there.",
    ),
    "config:schema": (
        "5-surfaces §5 (config schema)",
        "The JSON Schema accepts and refuses what the loader does.",
    ),
    "config:start-up": ("5-surfaces §2 (start-up)", "Finding the paths imports nothing heavy."),
    "config:syntax": (
        "5-surfaces §7",
        "A TOML syntax error is told with file, line and, where known, column.",
    ),
    "config:unreadable": (
        "5-surfaces §7",
        "A file that is not UTF-8, not a file, too large or unreadable is refused clearly, never a hang.",
    ),
    "config:warnings": (
        "5-surfaces §5 (doctor), §7 (a config typo)",
        "An allowed agent that looks like a typo is warned about.",
    ),
    "init:no-shell-by-surprise": (
        "5-surfaces §1",
        "init lets callers use the detected agents, not the command agent.",
    ),
    "init:starter": (
        "5-surfaces §1",
        "init writes a file for the programs it finds, and that file loads.",
    ),
    "paths:home": ("1-product Ways to run it", "SUBAGENTS_HOME holds everything when it is set."),
    "paths:private": (
        "7-runtimes The shim; 5-surfaces §4",
        "Our directories are for their owner alone, and those of another user are refused.",
    ),
    "paths:socket-length": (
        "5-surfaces §4",
        "A path too long for a Unix socket is replaced by a short private one.",
    ),
    "paths:windows": ("5-surfaces §6", "Windows is refused with a clear message."),
    "paths:xdg": (
        "1-product Ways to run it",
        "Without SUBAGENTS_HOME the XDG directories are used, one socket for each state directory.",
    ),
    "project:ci": (
        "6-house-style guideline 38",
        "CI runs make check and says what is missing for it.",
    ),
    "project:make": (
        "5-surfaces §1",
        "make says which Python it needs, also from a path with spaces.",
    ),
}
"""configuration and project"""

DOCS: Final[Lines] = {
    "demo:checked": (
        "5-surfaces §1 (the verified result)",
        "The demo exits 0 only when all it promised is found in files and journals.",
    ),
    "demo:first-minute": (
        "5-surfaces §1 subagents demo",
        "The demo does real work with a retry, a question and a fan-in, shows it in plain lines, and leaves nothing behind.",
    ),
    "demo:interrupted": (
        "5-surfaces §1 and §2 (SIGPIPE quiet, 130 interrupted)",
        "An interrupted demo leaves neither workers nor daemon nor files.",
    ),
    "demo:keep": (
        "5-surfaces §1 (the commands to look further)",
        "A kept demo can be looked at with the commands it names.",
    ),
    "demo:kill": (
        "5-surfaces §1 subagents demo --kill; 2-lifecycle §11",
        "With kill -9 of its daemon in the middle the same workers go on and nothing runs twice.",
    ),
    "demo:live-tree": (
        "5-surfaces §1 (progress shows as a live tree), §2 (NO_COLOR)",
        "On a terminal the demo draws who waits for whom, without colours when NO_COLOR is set.",
    ),
    "demo:own-home": (
        "5-surfaces §1 subagents demo (a fresh temporary directory)",
        "The demo has a home of its own and touches neither the user's nor a worker's.",
    ),
    "docs:architecture": ("6-house-style 6.1", "Every source file that a page names exists."),
    "docs:commands": (
        "5-surfaces §1 and §2",
        "Commands, flags and make targets that a page names exist.",
    ),
    "docs:decisions": (
        "6-house-style guideline 35",
        "Each decision is a numbered, dated page with context, options, choice and cost.",
    ),
    "docs:glossary": (
        "1-product The words; 6-house-style guideline 11",
        "The glossary defines every word once.",
    ),
    "docs:guarantees": (
        "6-house-style guideline 36",
        "Each guarantee names the tests that prove it, and they exist.",
    ),
    "docs:lifecycle": (
        "2-lifecycle §1 (the diagram in the docs is generated from that table); 6-house-style guideline 2",
        "docs/lifecycle.md is drawn from the transition table and a stale page is noticed.",
    ),
    "docs:links": (
        "6-house-style guideline 38",
        "Every link in the pages leads to something that is there.",
    ),
    "docs:readme": (
        "5-surfaces §1 First minute",
        "The README begins with what it is, for whom and the two commands, and its examples are well formed.",
    ),
    "docs:shell-lines": ("5-surfaces §1", "Shell examples in the pages can be pasted."),
    "docs:true-keys": ("5-surfaces §5", "Configuration keys named in the pages exist."),
}
"""the documents"""

E2E: Final[Lines] = {
    "e2e:attempt-directory-deleted": (
        "2-lifecycle §11",
        "A worker whose files were deleted comes to an end on record.",
    ),
    "e2e:bad:big-body": (
        "5-surfaces §7 (absurd sizes)",
        "A body of megabytes is refused without being kept.",
    ),
    "e2e:bad:cannot-look": (
        "2-lifecycle §5",
        "A process that could not be looked at is not taken for ended.",
    ),
    "e2e:bad:config": (
        "5-surfaces §5, §7",
        "A daemon with a bad configuration does not start and names file and key.",
    ),
    "e2e:bad:corrupt-database": (
        "5-surfaces §7",
        "A damaged database stops the start, says how to restore, and is not changed.",
    ),
    "e2e:bad:few-descriptors": (
        "2-lifecycle §11; 8-field-failures: gateway saturates",
        "More workers than the daemon may open files are all followed to their end.",
    ),
    "e2e:bad:full-disk": (
        "5-surfaces §7",
        "A full disk refuses spawns, keeps serving reads and loses no exit.",
    ),
    "e2e:bad:full-disk-kill": (
        "5-surfaces §7; 2-lifecycle §11",
        "A daemon killed on a full disk says why it cannot start, and goes on once there is space.",
    ),
    "e2e:bad:huge-output": (
        "7-runtimes command; 5-surfaces §7 (absurd sizes)",
        "Huge output costs no memory, and its last 32 KiB are the result.",
    ),
    "e2e:bad:input": (
        "5-surfaces §7",
        "Bad calls are refused with the field's name, and nothing is stored.",
    ),
    "e2e:bad:newer-schema": (
        "5-surfaces §7",
        "A database of a newer version is refused unchanged.",
    ),
    "e2e:bad:no-descriptors": (
        "2-lifecycle §5 (no evidence is not an end)",
        "A daemon out of descriptors calls no live worker lost.",
    ),
    "e2e:bad:no-socket": ("5-surfaces §7", "A file in the place of the socket is not touched."),
    "e2e:bad:others-run": (
        "5-surfaces §7 (someone else's run)",
        "A worker can neither read nor end a run that is not below it.",
    ),
    "e2e:bad:project-config": (
        "5-surfaces §7",
        "A bad project file refuses its spawns and leaves the daemon alone.",
    ),
    "e2e:bad:second-daemon": (
        "5-surfaces §7; 2-lifecycle §12.5",
        "A second daemon refuses to start and names the first.",
    ),
    "e2e:bad:stale-socket": ("5-surfaces §7", "A socket file that nobody answers on is replaced."),
    "e2e:bad:unknown-run": ("5-surfaces §7", "What does not exist is not found."),
    "e2e:cap:burst": (
        "8-field-failures: lock files (1,000 spawns in one burst)",
        "A burst of spawns under a raised cap loses none.",
    ),
    "e2e:cap:exact": (
        "2-lifecycle §2 item 4; 8-field-failures: concurrency surprises",
        "Racing spawns over a cap of five are accepted exactly five times, the rest refused with the key to change.",
    ),
    "e2e:chaos": (
        "2-lifecycle §11, §12",
        "Whatever callers do and whenever it is killed, every run ends once and leaves no process, effect or lease.",
    ),
    "e2e:contract:cancel": (
        "2-lifecycle §10 (cancel works in every phase before announcing)",
        "Cancel of a run that is being verified ends its checks too.",
    ),
    "e2e:contract:fails": (
        "2-lifecycle §6; seed 000 §2.7 boxes 8, 9 and 16",
        "An invalid file fails the run; escalation reaches the inbox and the operator.",
    ),
    "e2e:contract:no-hang": (
        "2-lifecycle §6",
        "FIFOs, directories, devices and links out of the workspace are failed checks, never a hang.",
    ),
    "e2e:contract:passes": (
        "2-lifecycle §6; seed 000 §2.7 box 15",
        "A valid file passes its contract.",
    ),
    "e2e:contract:retry-once": (
        "2-lifecycle §4; seed 000 §2.7 box 10",
        "A failed contract is tried once more with the reason in the prompt.",
    ),
    "e2e:contract:retry-once-only": (
        "2-lifecycle §4; seed 000 §2.7 boxes 11 and 19",
        "A second failed contract is final, also when the daemon was killed in between.",
    ),
    "e2e:contract:timeout": (
        "2-lifecycle §6; seed 000 §2.7 boxes 7 and 17",
        "A check that takes too long ends as its contract says and leaves no process.",
    ),
    "e2e:contract:vacuous": (
        "2-lifecycle §6",
        "A contract that was met before any work is called vacuous.",
    ),
    "e2e:environment": (
        "7-runtimes The shim (allow list)",
        "No secret of the daemon's environment reaches a worker, its shim or a file.",
    ),
    "e2e:fold": (
        "2-lifecycle §1; 8-field-failures: bernstein #2798",
        "fold(journal) is the stored run, for every run, after any kills.",
    ),
    "e2e:handoff:dead-reader": (
        "2-lifecycle §7 (offers are leases)",
        "What a dead reader holds does not hide the messages behind it.",
    ),
    "e2e:handoff:inbox": (
        "2-lifecycle §7",
        "A caller that never waited finds each of fifty results in its inbox once.",
    ),
    "e2e:handoff:two-readers": (
        "2-lifecycle §7",
        "Two readers of one session share the messages; none is handed to both.",
    ),
    "e2e:handoff:two-waiters": (
        "2-lifecycle §7",
        "Of many waiters for one run all see it and one is handed the message.",
    ),
    "e2e:handoff:waiting": (
        "2-lifecycle §7; 8-field-failures: result never reaches the parent",
        "Fifty simultaneous finishes are fifty results for a waiting caller, each once.",
    ),
    "e2e:idempotency": (
        "2-lifecycle §2",
        "The same idempotency key from many threads at once makes one run.",
    ),
    "e2e:kill:cancel": ("2-lifecycle §10", "A cancel that was acknowledged holds after a kill."),
    "e2e:kill:checks-end": (
        "2-lifecycle §6, §11",
        "A validation command that outlived its daemon is ended before the checks run again.",
    ),
    "e2e:kill:delivery": (
        "2-lifecycle §7, §12.3",
        "Killed between result and delivery, the announcement comes exactly once.",
    ),
    "e2e:kill:ended-meanwhile": (
        "2-lifecycle §11",
        "A worker that ended while no daemon was there is settled from its files.",
    ),
    "e2e:kill:exit-code": (
        "2-lifecycle §5, §11",
        "A failure while no daemon was there is told with its exit code, error text and partial output.",
    ),
    "e2e:kill:lost": (
        "2-lifecycle §4, §11",
        "A worker killed with its wrapper is lost, and retried only if a retry was asked for.",
    ),
    "e2e:kill:nested": (
        "2-lifecycle §5, §11",
        "A parent and its children come to one result whatever is killed between them.",
    ),
    "e2e:kill:offered": (
        "2-lifecycle §7",
        "What was offered but not acknowledged is offered again after a kill; what was acknowledged never is.",
    ),
    "e2e:kill:overdue-retry": (
        "2-lifecycle §4, §11",
        "A retry that came due while no daemon was there starts at once.",
    ),
    "e2e:kill:queued": (
        "2-lifecycle §3, §11",
        "Queued and waiting runs go on after a kill, in order.",
    ),
    "e2e:kill:retry-wait": (
        "2-lifecycle §4",
        "A due retry keeps its time over a kill and is exactly one more attempt.",
    ),
    "e2e:kill:running": (
        "2-lifecycle §11",
        "A worker goes on with the same pid and no gap in its output when the daemon is killed, and ends once.",
    ),
    "e2e:kill:start": (
        "2-lifecycle §2, §11; 8-field-failures: restart repeats work",
        "Killed right after the receipt, the run is started exactly once.",
    ),
    "e2e:kill:verifying": (
        "2-lifecycle §6; seed 000 §2.7 boxes 4 and 18 (restart during verification re-runs it)",
        "Verification that was killed is done again, and the worker is not.",
    ),
    "e2e:kill:waiter": (
        "8-field-failures: parent parked and never woken",
        "A caller whose wait was cut by a kill waits again and gets the result.",
    ),
    "e2e:lanes": (
        "2-lifecycle §1; 8-field-failures: concurrency surprises",
        "Live workers never exceed the slots of their lane.",
    ),
    "e2e:lease:suspended": (
        "2-lifecycle §11 (leases)",
        "A daemon suspended for longer than its lease loses no worker.",
    ),
    "e2e:nested:appended": (
        "2-lifecycle §5",
        "A parent that ends first announces after its children, with their results.",
    ),
    "e2e:nested:leaves": (
        "2-lifecycle §2 item 3",
        "A leaf that spawns is refused with the key to change.",
    ),
    "e2e:nested:waits": (
        "2-lifecycle §1; 8-field-failures: deadlock at 1",
        "With one slot, a parent that waits for its child gets its result.",
    ),
    "e2e:orphans": (
        "2-lifecycle §11",
        "The sweep reports orphan processes and ends those that are ours beyond doubt.",
    ),
    "e2e:stop-daemon:waiter": (
        "2-lifecycle §11; 5-surfaces §4",
        "An orderly stop ends waiting calls with a reason and leaves workers at work.",
    ),
    "e2e:stop:cancel": (
        "2-lifecycle §10; 7-runtimes The shim; 8-field-failures: cannot stop",
        "Cancel ends a worker that ignores signals and its child in another session.",
    ),
    "e2e:stop:cascade": (
        "2-lifecycle §10",
        "Cancel of a parent ends the processes of all its descendants within 2 s.",
    ),
    "e2e:stop:clean-environment": (
        "7-runtimes The shim",
        "A child that was given a clean environment ends with its worker.",
    ),
    "e2e:stop:deadline-while-down": (
        "2-lifecycle §5, §11",
        "A deadline that passed while no daemon was there is enforced at the start.",
    ),
    "e2e:stop:leftovers": (
        "7-runtimes The shim",
        "Children that a worker left behind end with its attempt.",
    ),
    "e2e:stop:queued": ("2-lifecycle §10", "A queued run that was cancelled never starts."),
    "e2e:stop:timeout": (
        "2-lifecycle §5",
        "The deadline ends a worker that ignores signals, within grace + 2 s, and keeps its partial output.",
    ),
    "e2e:storm": (
        "2-lifecycle §11, §12",
        "Ten kills among twenty runs lose nothing, consume each result once and run no attempt twice.",
    ),
    "field:ai-employee-695": (
        "8-field-failures: AI-Employee #695",
        "Dead wrapper shells and reused pids lead to no second worker, no adopted stranger and no killed stranger.",
    ),
    "field:bernstein-2798": (
        "8-field-failures: bernstein #2798",
        "Stop and start again changes no run and forgets none.",
    ),
    "field:cannot-stop": (
        "8-field-failures: cannot stop",
        "Cancel reaches queued runs: they never start.",
    ),
    "field:claude-agent-sdk-python-882": (
        "8-field-failures: claude-agent-sdk-python #882",
        "Nobody is told of the end while the worker still works.",
    ),
    "field:claude-code-82104": (
        "8-field-failures: claude-code #82104",
        "Cancel of a parent ends all its descendants' processes within 2 s.",
    ),
    "field:claude-code-87675": (
        "8-field-failures: claude-code #87675",
        "Fifty simultaneous finishes are fifty results.",
    ),
    "field:dead-letter-inbox": (
        "8-field-failures: parent parked and never woken",
        "A wait that outlives several daemons gets its result without a new spawn.",
    ),
    "field:lane-deadlock": (
        "8-field-failures: concurrency surprises (deadlock at 1)",
        "A parent that holds the only slot does not block its child.",
    ),
    "field:lost-on-cleanup": (
        "8-field-failures: data lost on cleanup",
        "Deleting a run's session deletes no result and no journal.",
    ),
    "field:multica-1326": (
        "8-field-failures: multica #1326",
        "After a restart each of 25 open runs is accounted for within two seconds.",
    ),
    "field:openswarm-434": (
        "8-field-failures: OpenSwarm PR #434",
        "An answer reaches its waiting worker within a second.",
    ),
    "field:pi-subagents-849": (
        "8-field-failures: pi-subagents #849",
        "A contract that checks nothing is refused before any work.",
    ),
    "field:sculptor-141": (
        "8-field-failures: sculptor PR #141",
        "An answer given right before a crash reaches the worker once.",
    ),
    "field:success-shaped-text": (
        "8-field-failures: the status is a lie",
        "A worker that claims success and exits with an error has failed.",
    ),
    "field:temporalio-sdk-python-1890": (
        "8-field-failures: temporalio/sdk-python #1890",
        "A run with ten thousand events goes on and reads in pages, in constant memory.",
    ),
    "field:timeouts-ignored": (
        "8-field-failures: timeouts missing or ignored",
        "The daemon enforces the deadline, whatever the worker does.",
    ),
    "field:truncated-result": (
        "8-field-failures: wrong or truncated result",
        "A long result is stored whole and cut only where it is shown, with a pointer.",
    ),
    "field:zombies": (
        "8-field-failures: zombies",
        "Suspended daemons and deleted files lead neither to lost workers nor to runs without an end.",
    ),
}
"""real processes, end to end"""

LEAD: Final[Lines] = {
    "lanes:turns-need-slots": (
        "8-field-failures: concurrency surprises",
        "A run that will get a follow-up turn keeps its slot.",
    ),
    "outbox:start-is-bounded": (
        "1-product: every wait has a deadline",
        "A runtime that hangs while it starts fails the attempt.",
    ),
    "python:connected": ("5-surfaces §6", "Connecting starts the daemon when none runs."),
    "python:control": (
        "5-surfaces §6; 2-lifecycle §10",
        "Runs are steered, waited for with a limit and cancelled from Python.",
    ),
    "python:embedded": (
        "5-surfaces §6",
        "A run spawned from Python is awaited, verified and its announcement consumed.",
    ),
    "python:errors": ("5-surfaces §6", "The Python API raises the errors of every other door."),
    "python:one-owner": (
        "5-surfaces §6; 1-product",
        "A home has one owner at a time, and workers outlive it.",
    ),
    "python:plan": (
        "5-surfaces §6; 2-lifecycle §3",
        "A plan from Python fans in, and is refused whole when it goes in a circle.",
    ),
    "python:questions": ("5-surfaces §6; 3-tools", "Workers of an embedded orchestrator can ask."),
    "python:scripted": ("5-surfaces §6", "Users script agents to test their own flows."),
    "report:after-tools": (
        "2-lifecycle §6",
        "A report is the last call when the tools were used before it, in whatever order they were noticed.",
    ),
    "spawn:idempotency-in-batches": (
        "2-lifecycle §2",
        "A batch sent twice makes its keyed runs once.",
    ),
    "spawn:long-chain": (
        "2-lifecycle §3",
        "A batch of a thousand runs in a chain is accepted, its circle is refused with the circle named.",
    ),
}
"""lead"""

RUNTIMES: Final[Lines] = {
    "runtimes:abilities": (
        "7-runtimes",
        "The command runtime declares what it can do and refuses to steer or resume.",
    ),
    "runtimes:bounded-memory": (
        "6-house-style 28",
        "Huge outputs and lines without end are read in bounded memory.",
    ),
    "runtimes:broken-bytes": (
        "7-runtimes row command",
        "Invalid UTF-8 and NUL in output are replaced.",
    ),
    "runtimes:dead-shim": (
        "2-lifecycle §11; 8-field-failures: AI-Employee #695 (dead wrapper shell)",
        "A worker whose shim was killed is followed to its end, and its exit is unknown.",
    ),
    "runtimes:env-allow-list": (
        "7-runtimes The shim (our own secrets never reach a worker)",
        "Only allow-listed and configured variables of the daemon reach a worker.",
    ),
    "runtimes:exit-recorded": (
        "7-runtimes The shim; 2-lifecycle §5",
        "The shim records the exit code or signal, also when the whole group is signalled.",
    ),
    "runtimes:flood-is-coalesced": (
        "8-field-failures: gateway saturates",
        "A flood of progress or usage events yields only the newest of a reading turn.",
    ),
    "runtimes:forget": (
        "ports.Runtime.forget",
        "Forgetting deletes the attempt's files and nothing else.",
    ),
    "runtimes:full-disk": (
        "7-runtimes The shim",
        "An exit that does not fit on the disk is recorded when there is room; a start on a full disk starts nothing.",
    ),
    "runtimes:handoff-is-prompt": (
        "7-runtimes The shim (awaits the exit by pidfd)",
        "An exit is handed over when it happens, not at the next poll.",
    ),
    "runtimes:idle-costs-nothing": (
        "7-runtimes The shim; 8-field-failures: gateway saturates",
        "200 quiet workers wake the loop at most four times a second.",
    ),
    "runtimes:large-task": (
        "7-runtimes row command",
        "A task that fits no variable reaches the worker whole by file and stdin.",
    ),
    "runtimes:malformed-events-are-text": (
        "7-runtimes row command",
        "A malformed, unknown or oversized event is plain text, never an error.",
    ),
    "runtimes:no-zombies": (
        "7-runtimes The shim; 8-field-failures: zombies",
        "Ended workers leave no zombie and no file descriptor; a zombie is not alive.",
    ),
    "runtimes:one-worker": (
        "2-lifecycle §11; 8-field-failures: AI-Employee #695 (ran twice)",
        "Starting an attempt again, also at the same time from several processes, gives one worker.",
    ),
    "runtimes:options-checked": (
        "5-surfaces §5",
        "Options with which nothing could start are refused, naming key and remedy.",
    ),
    "runtimes:orphans": (
        "2-lifecycle §11 (finds orphan processes)",
        "Live workers of this installation that nobody knows are found by their marker.",
    ),
    "runtimes:output-is-bounded-at-exit": (
        "2-lifecycle §5",
        "What left-behind children write after the worker ended is not waited for.",
    ),
    "runtimes:output-is-followed": (
        "7-runtimes The shim",
        "Growth of the output is noticed, and following nothing keeps no timer.",
    ),
    "runtimes:pid-reuse-refused": (
        "2-lifecycle §11; 8-field-failures: AI-Employee #695 (PID reuse)",
        "A process with the recorded id but another start time or boot is neither believed nor signalled.",
    ),
    "runtimes:private-files": (
        "7-runtimes The shim (0700)",
        "Attempt files are readable by their owner only, and ids cannot leave the attempts directory.",
    ),
    "runtimes:refused-before-start": (
        "ports.Runtime.start",
        "What can never start is refused with the way out before anything is claimed.",
    ),
    "runtimes:relative-program": (
        "7-runtimes row command",
        "A relative program is found in the worker's working directory.",
    ),
    "runtimes:result-event-beats-tail": (
        "7-runtimes row command; 2-lifecycle §11",
        "A result event counts also when it was read before a restart.",
    ),
    "runtimes:result-is-the-tail": (
        "7-runtimes row command",
        "Without a result event the result is the last 32 KiB of stdout, cut between characters, without event lines.",
    ),
    "runtimes:signal-keys-repeat": (
        "domain/signals; 2-lifecycle §12.2",
        "Reading again from any cursor repeats the same keys and nothing else.",
    ),
    "runtimes:signals-not-ignored": (
        "real-programs §1 (background jobs ignore SIGINT)",
        "A worker starts with no signal ignored or blocked.",
    ),
    "runtimes:stderr-tail": ("7-runtimes row command", "The end of stderr comes with the exit."),
    "runtimes:stdin": (
        "7-runtimes row command; seed 002 pipelines",
        "Stdin carries the task or prompt when configured, else the dependency results when asked for.",
    ),
    "runtimes:stdin-fifo": (
        "7-runtimes The shim",
        "A FIFO as standard input blocks neither the start nor a writer.",
    ),
    "runtimes:stop-before-start": (
        "2-lifecycle §10",
        "An attempt that was stopped before it started never starts.",
    ),
    "runtimes:stop-ends-everything": (
        "2-lifecycle §5, §10; 8-field-failures: cannot stop; claude-code #82104; real-programs §0 finding 4",
        "Stopping ends every process of the attempt: TERM-ignorers, own sessions, scrubbed environments, stopped ones, and what the worker left behind.",
    ),
    "runtimes:stop-ends-only-its-own": (
        "2-lifecycle §11 (killed only when ours beyond doubt)",
        "Stopping never ends other attempts, other installations, the daemon or what leads to it.",
    ),
    "runtimes:stop-is-gentle-first": (
        "2-lifecycle §5",
        "TERM first: a worker that heeds it within the grace ends in its own way, also when it was stopped by SIGSTOP.",
    ),
    "runtimes:stop-shares-looks": (
        "7-runtimes The shim",
        "Many stops at once share their looks at all processes.",
    ),
    "runtimes:structured-events": (
        "7-runtimes row command",
        "A stdout line that is a JSON object with the key subagents is the signal it names.",
    ),
    "runtimes:survives-daemon": (
        "2-lifecycle §11; 8-field-failures: multica #1326",
        "A worker outlives a killed daemon; the next one adopts it and reads on from its cursor.",
    ),
    "runtimes:task-as-argument": (
        "7-runtimes row command; 5-surfaces §5",
        "The task is one argument, word for word; no shell of ours reads it.",
    ),
    "runtimes:vanished": (
        "2-lifecycle §11",
        "An attempt that cannot be adopted and left no exit is reported as vanished, with its output, and is never started again.",
    ),
    "runtimes:watch-can-be-left": (
        "ports.Runtime.watch",
        "Cancelling a watch leaves the worker alone and a new watch sees everything.",
    ),
    "runtimes:worker-variables": (
        "7-runtimes row command; 3-tools",
        "A worker is told its run, attempt, session, agent, task and why it is a retry.",
    ),
}
"""runtimes and the shim"""

SIMULATOR: Final[Lines] = {
    "simulator:catches-mutations": (
        'issue 2 "a deliberately broken reducer is caught within 500 seeds"; notes/engines §6 item 3',
        "Each of the deliberately broken engines in the table is caught by the simulator within 500 seeds.",
    ),
    "simulator:crash": (
        "2-lifecycle §11, §12 rules 2 and 3",
        "A crash runs nothing of the dead process any more, and a torn commit leaves nothing half written.",
    ),
    "simulator:invariants": (
        '2-lifecycle §11, §12 rule 6; 6-house-style guideline 37; issue 2 "Crash simulator"',
        "Over seeded crashes, lost answers and late, doubled, reordered and lost signals, every invariant of the lifecycle holds.",
    ),
    "simulator:prints-seed": (
        '6-house-style guideline 37; issue 2 "prints the seed of a failure"',
        "A broken invariant is printed with its seed and the command that replays it, and the exit code is 1.",
    ),
    "simulator:replay": (
        '6-house-style guideline 37; issue 2 "prints the seed of a failure and replays it identically"',
        "The same seed gives the same trace, in any process and after any other seed.",
    ),
    "simulator:scheduler": (
        'issue 2 "seeded clock, scheduler and crash points"',
        "Of everything that is ready the seed decides what runs next, and a world that can go no further says so.",
    ),
    "simulator:virtual-time": (
        '6-house-style guideline 37 "tests never sleep"',
        "Hours of virtual time pass without waiting.",
    ),
}
"""the simulator"""

SURFACES: Final[Lines] = {
    "daemon:embedded": (
        "5-surfaces §6 (embedded, no global state)",
        "Inside another program signals and logs stay that program's own.",
    ),
    "daemon:log:rotated": (
        "6-house-style §5 item 28 (everything has a limit)",
        "A large log is moved aside at the start.",
    ),
    "daemon:one-per-home": (
        "1-product (one daemon per home, held by a lock); 5-surfaces §7 (a second daemon)",
        "A second daemon refuses with exit code 1 and names the pid and socket of the first.",
    ),
    "daemon:peer:same-user": (
        "5-surfaces §4 (peer uid on the Unix socket)",
        "A connection of another user is cut off and logged.",
    ),
    "daemon:ready:service-manager": (
        "5-surfaces §2 (service install)",
        "The service manager is told when the daemon serves.",
    ),
    "daemon:socket:in-the-way": (
        "5-surfaces §7",
        "A socket that answers, or a file that is none, is never removed.",
    ),
    "daemon:socket:modes": (
        "5-surfaces §4",
        "The socket is 0600 in a 0700 directory and is removed at the stop.",
    ),
    "daemon:socket:stale": (
        "5-surfaces §7 (a stale socket)",
        "A socket left by a killed daemon is replaced.",
    ),
    "daemon:stop:call": (
        "5-surfaces §2 (down)",
        "Shutting down answers long polls with a retryable error.",
    ),
    "daemon:stop:signals": (
        "2-lifecycle §11 (workers keep running)",
        "SIGTERM and SIGINT end the daemon cleanly with exit 0; workers go on and are adopted by the next one.",
    ),
    "http:control:cancel": (
        "2-lifecycle §10",
        "Cancelling is harmless to repeat, and a finished run says so.",
    ),
    "http:control:pause": (
        "2-lifecycle §10",
        "A paused run waits and goes on when resumed; a live one is steered.",
    ),
    "http:daemon:views": (
        "5-surfaces §4, §5; 4-observability §9",
        "The daemon says what it is, what it has configured, and hides secrets.",
    ),
    "http:errors:one-document": (
        "5-surfaces §4 (RFC 9457), §7",
        "Every refusal is one problem document with code and status.",
    ),
    "http:list:filters": ("3-tools sessions_list", "Lists are filtered, paged and counted."),
    "http:log:pages": (
        "5-surfaces §4 (/log)",
        "The log is paged by offset without cutting characters, and read from its end.",
    ),
    "http:ownership": (
        "3-tools (Who is calling); 5-surfaces §7 (someone else's run)",
        "A worker touches only its own subtree.",
    ),
    "http:plans:all-or-nothing": (
        "2-lifecycle §3",
        "A plan is stored whole or not at all; cycles are spelled out.",
    ),
    "http:runs:views": (
        "5-surfaces §4; seed 004 part 4",
        "Every view of an ended run agrees on what happened.",
    ),
    "http:spawn:idempotency": (
        "5-surfaces §4 (Idempotency-Key); 2-lifecycle §2",
        "The same Idempotency-Key gives the first run again.",
    ),
    "http:spawn:receipt": (
        "2-lifecycle §2, §7",
        "A run spawned over HTTP is waited for, offered, and consumed exactly once.",
    ),
    "http:spawn:refused": (
        "2-lifecycle §2 items 5 and 7",
        "A refused spawn says `error` or `forbidden` and stores nothing.",
    ),
    "http:timeline:paged": (
        "5-surfaces §4",
        "Pages of the timeline put together are the whole timeline.",
    ),
    "http:wait:disconnect": (
        "2-lifecycle §7 (offer to a reader)",
        "Nothing is offered to a waiter that hung up.",
    ),
    "http:wait:timeout": (
        "3-tools sessions_wait",
        "A wait never fails on timeout and lists unknown runs as errors.",
    ),
    "http:worker:verbs": (
        "3-tools, table for workers",
        "A worker reports, tells, asks and gets the first answer.",
    ),
    "input:bad-value:names-field": (
        "5-surfaces §7",
        "Wrong enums, types, negative or absurd numbers, sizes, NUL bytes and lone surrogates are refused with the field and what is allowed.",
    ),
    "input:batch:bounds": ("5-surfaces §7; 2-lifecycle §3", "A plan has 1 to 1,000 runs."),
    "input:batch:names-index": (
        "5-surfaces §7",
        "A mistake in a plan is named by the run's place in it.",
    ),
    "input:bodies:empty": ("5-surfaces §4", "An empty body means the defaults."),
    "input:bodies:refused": ("5-surfaces §7", "Every other call names the field it refuses."),
    "input:decision:bounds": (
        "3-tools respond_orchestrator_request",
        "Only answer, approve and deny can be given as a decision.",
    ),
    "input:depends-on:single-text": (
        "2-lifecycle §3",
        "`dependsOn` takes a single text as a list of one.",
    ),
    "input:malformed:refused": (
        "5-surfaces §7",
        "A body that is no JSON, no UTF-8, nested too deeply or no object is refused in words.",
    ),
    "input:progress:parsed": (
        "3-tools report_progress; 4-observability §5",
        "Progress is stamped on arrival and its level is one of three.",
    ),
    "input:report:parsed": (
        "3-tools report_completion; seed 000 completion report",
        "A worker's report is parsed once and its mistakes are named.",
    ),
    "input:spec:parsed": (
        "3-tools sessions_spawn",
        "Every spawn parameter reaches the run under its wire name.",
    ),
    "input:unknown-key:nearest-name": (
        "5-surfaces §7; 2-lifecycle §2 item 1",
        "An unknown parameter is refused with the nearest known name, at every depth.",
    ),
    "timeline:fold": (
        "2-lifecycle §1 (fold(journal) == stored run)",
        "Folding page by page gives the same as folding the whole journal.",
    ),
    "why:now:every-phase": (
        "2-lifecycle §1; 1-product (the reason for every step on record)",
        "For every phase one sentence says why the run is in it and until when.",
    ),
    "why:now:paused-by": ("2-lifecycle §10", "A pause names who asked for it."),
    "why:steps:questions": (
        "3-tools request_orchestrator, notify_parent; 2-lifecycle §10",
        "Questions, answers, messages and sub-agents appear in the history.",
    ),
    "why:steps:stale": (
        "2-lifecycle §1",
        "A late or doubled event is shown and marked as having changed nothing.",
    ),
    "why:steps:verification": (
        "2-lifecycle §6",
        "A failed contract is told with its failed checks.",
    ),
    "why:steps:whole-life": (
        "2-lifecycle §1; seed 004 part 4",
        "`why` tells a run's life line by line from its journal.",
    ),
    "wire:artifacts": (
        "2-lifecycle §6; 3-tools sessions_wait",
        "Artifacts are the contract's files and the reported ones, each marked as verified or not.",
    ),
    "wire:detail": (
        "2-lifecycle §2 (originalSpawnParams)",
        "Details keep the parameters word for word and cut only the shown result.",
    ),
    "wire:receipt": ("2-lifecycle §2", "A receipt says whether the idempotency key was known."),
    "wire:row": (
        "5-surfaces §4; 1-product (camelCase, ms)",
        "A row has every name of the contract and its times in milliseconds.",
    ),
    "wire:run-status": (
        "3-tools sessions_tree",
        "`runStatus` is one word; `blocked` when requests are pending.",
    ),
    "wire:secrets-hidden": (
        "4-observability §1 (a planted secret never appears in answers)",
        "Values of an agent's env appear in no document.",
    ),
    "wire:timeline": ("2-lifecycle §1", "A timeline's event has its data apart, long texts cut."),
    "wire:usage-unknown-is-null": ("4-observability §3", "Unknown usage is null, never zero."),
    "wire:verification": (
        "2-lifecycle §6; seed 000 §2.3",
        "A verdict reads passed, failed or skipped, with its checks and time.",
    ),
}
"""the daemon's surface and the Python API"""

VERIFICATION: Final[Lines] = {
    "contract:bad:refused": (
        "2-lifecycle §2 item 8, §6; 5-surfaces §7; 8-field-failures: pi-subagents #849",
        "A contract that checks nothing or could never be checked is refused before anything is stored, naming the field.",
    ),
    "contract:commands:gated": (
        "2-lifecycle §6; seed 000 §2.1 review decision",
        "Commands are refused, and not run, unless the operator allowed them by name in the configuration.",
    ),
    "contract:described": (
        "3-tools worker prompt; 2-lifecycle §6",
        "The worker's prompt has one line per deliverable that no name in the contract can break out of.",
    ),
    "contract:good:accepted": (
        "seed 000 §2.7 box 1; 2-lifecycle §6",
        "Every supported combination of checks is accepted.",
    ),
    "contract:schema:refused": (
        "2-lifecycle §2 item 8",
        "A malformed JSON Schema is refused at the spawn with its place in the schema.",
    ),
    "off-loop:shutdown": (
        "2-lifecycle §6 (never a hang)",
        "A process with a stuck thread still ends.",
    ),
    "off-loop:threads": (
        "2-lifecycle §6 (checks run off the event loop), §12",
        "Blocking work runs on reused daemon threads up to a cap; stuck work delays nothing below the cap.",
    ),
    "verification:artifact:all-faults": (
        "seed 000 §2.7 box 8 (structured failure details)",
        "Every fault of a file is told at once, for the one retry.",
    ),
    "verification:artifact:exists": (
        "seed 000 §2.7 box 6, box 14",
        "A file that exists passes; a missing one fails and says so.",
    ),
    "verification:artifact:huge": (
        "2-lifecycle §6",
        "A huge file is refused by the named JSON limit without being read.",
    ),
    "verification:artifact:irregular": (
        "2-lifecycle §6",
        "A FIFO, directory, socket, device, loop or unreadable path is a clear failed check and never a hang.",
    ),
    "verification:artifact:json": (
        "seed 000 §2.7 box 6, box 14",
        "A file that does not parse as JSON fails with the reason and place.",
    ),
    "verification:artifact:min-bytes": (
        "seed 000 §2.7 box 6, box 14; seed 000 §2.5 failure text",
        "A file smaller than minBytes fails with both numbers; an empty one is called empty.",
    ),
    "verification:artifact:min-items": (
        "seed 000 §2.7 box 6, box 14",
        "minItems counts the top-level array only.",
    ),
    "verification:artifact:required-keys": (
        "seed 000 §2.7 box 6, box 14",
        "requiredKeys names the items and the keys they lack.",
    ),
    "verification:artifact:schema": (
        "2-lifecycle §6",
        "A file that does not match its JSON Schema fails with the first three places.",
    ),
    "verification:artifact:sha256": ("2-lifecycle §6", "sha256 compares the whole content."),
    "verification:command": (
        "2-lifecycle §6",
        "A command passes with exit 0; the tail of its output is the evidence.",
    ),
    "verification:command:could-not-check": (
        "2-lifecycle §6",
        "A command that does not exist or cannot start says nothing about the work.",
    ),
    "verification:command:environment": (
        "7-runtimes (environment is an allow list; markers)",
        "Commands see the run's markers and none of our secrets.",
    ),
    "verification:command:killed": (
        "2-lifecycle §6; 8-field-failures: cannot stop",
        "A command's process group dies at the limit, also when it ignores TERM, and leaves nothing behind in it.",
    ),
    "verification:could-not-check": (
        "2-lifecycle §4 last sentence, §6",
        "The checker's own trouble is could_not_check, never a failed check.",
    ),
    "verification:idempotent": (
        "seed 000 §2.2 restart recovery; seed 000 §2.7 box 19",
        "Checking again gives the same verification.",
    ),
    "verification:off-loop": (
        "2-lifecycle §6",
        "JSON large enough to hold the interpreter is decoded in a process of its own.",
    ),
    "verification:path:inside": (
        "2-lifecycle §6",
        "A relative path that leaves the workspace through .. or a symlink is a failed check that says so.",
    ),
    "verification:path:literal": (
        "2-lifecycle §6",
        "Absolute paths are taken as given; ~ and variables are not expanded.",
    ),
    "verification:report": (
        "seed 000 §2.7 box 6; seed 000 §4 box 7 (contract can require a completion report)",
        "A required report is present, the last tool call and not failed.",
    ),
    "verification:schema:bounded": (
        "2-lifecycle §6 (linear regex engine, within the one timeout); 8-field-failures: gateway saturates",
        "Catastrophic patterns are linear, and a schema of exponential cost is killed at the limit while the loop stays free.",
    ),
    "verification:schema:offline": (
        "2-lifecycle §6",
        "A remote $ref is refused at the spawn and at run time, and nothing is fetched.",
    ),
    "verification:timeout": (
        "seed 000 §2.7 box 7, box 17; 2-lifecycle §6",
        "One time limit covers all checks; unfinished ones fail, also when a check is stuck in the kernel or runs in line.",
    ),
    "verification:vacuous": (
        "2-lifecycle §6",
        "A contract that passes on the untouched workspace is recognised as vacuous.",
    ),
    "verification:verdict": (
        "2-lifecycle §6",
        "One failed check fails the verdict whatever else could not be checked.",
    ),
}
"""contracts and their checks"""

PARTS: Final[tuple[Lines, ...]] = (
    CORE,
    BENCH,
    CLI,
    CONFIG,
    DOCS,
    E2E,
    LEAD,
    RUNTIMES,
    SIMULATOR,
    SURFACES,
    VERIFICATION,
)
