# ruff: noqa: E501 - one line per requirement, so that each can be found, moved and counted
"""What the agents' door promises: id → (source, sentence); see ``requirement_lines``."""

from typing import Final

from tests.requirement_lines import Lines

BREAKER: Final[Lines] = {
    "announcement:no-controls": (
        "2-lifecycle §7",
        "A worker's words inside a sentence of ours hold no control characters.",
    ),
    "http:errors:any-host": (
        "5-surfaces §4",
        "An error document is right whatever the Host header says, or when there is none.",
    ),
    "inbox:not-ones-own-words": (
        '3-tools "Who is calling"; 2-lifecycle §7',
        "A worker cannot acknowledge what it said itself: its requester has yet to read it.",
    ),
    "selectors:others-hide-nothing": (
        '3-tools "Who is calling"',
        "Runs of other sessions hide nothing of the caller's own tree behind the same label or prefix, and are not listed to it.",
    ),
    "selectors:whole-id-first": (
        "5-surfaces §2 (selectors)",
        "A whole id means that run and no other, also when an agent gave it to another run as its label.",
    ),
}

DELIVERY: Final[Lines] = {
    "courier:cancel": (
        "2-lifecycle §7",
        "Cancelled in the middle, a courier ends at once and leaves nothing running.",
    ),
    "courier:command-exit": (
        "2-lifecycle §7",
        "Exit 0 is handed over; any other end is tried again with the program's last words, whatever it reads or leaves running.",
    ),
    "courier:command-template": (
        "5-surfaces §5",
        "{text}, {textJson}, {sessionKey} and {runId} are filled in once; other braces and what was put in stay as they are.",
    ),
    "courier:hands-over": (
        "2-lifecycle §7",
        "What a courier carries arrives once, whole, under the announcement's id.",
    ),
    "courier:idempotency-key": (
        "2-lifecycle §7, §12.4",
        "Every try carries the same delivery id, also after a crash in the middle.",
    ),
    "courier:long-text": (
        "issue 3, build 9",
        "A text of 200 KB arrives as it is; where an argument takes no more it is cut with a pointer and whole on stdin.",
    ),
    "courier:many": (
        "6-house-style guideline 31",
        "Many deliveries at once all arrive, each with its own text.",
    ),
    "courier:no-second-turn": (
        "2-lifecycle §5",
        "A parent whose attempt ended is told by its one follow-up turn and by no courier.",
    ),
    "courier:no-shell-injection": (
        "2-lifecycle §7 (untrusted text)",
        "A worker's words can choose neither the courier's program nor a shell's script.",
    ),
    "courier:refusal": (
        "seed 004 part 2",
        "A refusal is a typed outcome, nothing arrives, and the next try can succeed.",
    ),
    "courier:repeat": (
        "2-lifecycle §7, §12.4",
        "A repeat is dropped by the receiver or comes again under the same id.",
    ),
    "courier:serves": (
        "ports.Courier; 2-lifecycle §7",
        "A courier serves its own requesters, leaves others alone, and asking carries nothing.",
    ),
    "courier:steer": (
        "2-lifecycle §7; seed 004",
        "A child's result is put into its parent's live attempt where the runtime can, and is consumed by it.",
    ),
    "courier:steer-busy": (
        "seed 004 part 2",
        "A parent that takes nothing now is asked again: deferred, requester-busy.",
    ),
    "courier:suite-can-fail": (
        "6-house-style guideline 31",
        "The courier suite fails for a courier that only says delivered.",
    ),
    "courier:timeout": (
        "2-lifecycle §7",
        "A receiver that never answers is left when announce_timeout_ms is over, and the inbox row stays.",
    ),
    "courier:users-file-only": (
        "5-surfaces §5",
        "The daemon takes couriers from the user's file as it is now, and from no project's.",
    ),
    "delivery:given-back": (
        "2-lifecycle §7; decision 0015",
        "A call that is cancelled in the moment in which it is answered, again and again, leaves nothing it was offered leased.",
    ),
    "delivery:one-door-at-a-time": (
        "2-lifecycle §7",
        "Couriers and readers share one lease: an announcement comes through one door, and who waits is told by its wait.",
    ),
    "e2e:fifty:killed": (
        "issue 3, must show",
        "Requesters killed while they wait, or with the results in their hands, and a daemon killed between offer and acknowledgement, lose and double nothing.",
    ),
    "e2e:fifty:mcp": (
        "issue 3, must show",
        "The same holds for clients of the mcp package over the stdio bridge, beside other doors.",
    ),
    "e2e:fifty:never": (
        "issue 3, must show",
        "Fifty that nobody waited for lie ready over kills until somebody comes.",
    ),
    "e2e:fifty:waiting": (
        "issue 3, must show",
        "Fifty that end in the same instant while requesters wait are consumed once each.",
    ),
    "e2e:kill:delivering": (
        "2-lifecycle §11",
        "A daemon killed while a courier is under way sends it again under the same id and consumes once.",
    ),
    "e2e:nested:bubbles": (
        "2-lifecycle §7",
        "What nobody read bubbles from ancestor to ancestor and in the end to the operator.",
    ),
    "e2e:nested:cancel": (
        "2-lifecycle §10",
        "A cancel at the top ends three levels of processes and tells of the top alone.",
    ),
    "e2e:nested:descendants-active": (
        "2-lifecycle §5",
        "An orchestrator that ends early stays in ending, also over a kill, and announces with its workers' results.",
    ),
    "e2e:nested:inward": (
        "2-lifecycle §7; seed 004",
        "Workers report to their orchestrator, which uses the command line, and only its own end reaches an outside courier.",
    ),
    "e2e:nested:one-slot": (
        '8-field-failures "concurrency surprises"',
        "Three levels that wait for each other pass through a lane of one slot.",
    ),
    "e2e:nested:orchestrator-killed": (
        "2-lifecycle §7",
        "What a killed orchestrator's workers found reaches the next above it.",
    ),
    "field:agentwire-872": (
        "8-field-failures (agentwire #872)",
        "A requester parked for hours over restarts still gets the report; unread results never expire.",
    ),
    "field:omnigent-5614": (
        "8-field-failures (omnigent #5614)",
        "What nobody acknowledges is offered once more and then needs attention.",
    ),
    "simulator:burst": (
        "issue 3, must show",
        "Fifty runs that end in the same instant of a simulated world are each consumed once, over crashes.",
    ),
}

IDENTITY: Final[Lines] = {
    "client:token": (
        '3-tools "Who is calling"',
        "The client sends a worker's token to its own daemon and to no other, and never shows it.",
    ),
    "e2e:tcp:foreign-host": (
        "issue 3, must show",
        "Over TCP a foreign Host, a foreign page and a missing token are refused and written down.",
    ),
    "e2e:tcp:serve": (
        "5-surfaces §4",
        "`serve --port` opens the port it is given and refuses one that others could reach.",
    ),
    "e2e:tcp:worker": ("5-surfaces §4", "A worker's token works over TCP for its own tree only."),
    "e2e:token:another-tree": (
        "issue 3, must show",
        "A real token opens no other tree, and the try is on record.",
    ),
    "e2e:token:expired": (
        "issue 3, must show",
        "A token is worth nothing after its run, also to the next daemon.",
    ),
    "e2e:token:kill-before-start": (
        "2-lifecycle §11",
        "Workers that a killed daemon had not started have tokens that work.",
    ),
    "e2e:token:none": ("issue 3, must show", "A worker's session name alone opens nothing."),
    "e2e:token:not-on-disk": (
        "issue 3, build 3",
        "A worker's token is in its environment and nowhere on disk.",
    ),
    "e2e:token:old-attempt": (
        "issue 3, build 3",
        "A token of the attempt before is refused while the next one works.",
    ),
    "e2e:token:worker": ("issue 3, build 3", "A real worker calls with its token and not without."),
    "identity:attempt": (
        '3-tools "For workers"',
        "A worker speaks for its own run and attempt only.",
    ),
    "identity:credentials": (
        "5-surfaces §4",
        "Other credentials than a bearer token are refused rather than ignored.",
    ),
    "identity:dropped-token": (
        '3-tools "Who is calling"',
        "A worker that leaves its token out gains nothing, nor do its descendants with a cleaned environment.",
    ),
    "identity:headers": (
        '3-tools "Who is calling"',
        "Without a token the headers name a top-level session, its reader and its directory.",
    ),
    "identity:mcp-is-an-agent": (
        "5-surfaces §3",
        "Whoever calls at /mcp speaks for an agent, also with the operator's token.",
    ),
    "identity:token-expired": (
        "issue 3, must show",
        "An expired token is refused and journaled on its run.",
    ),
    "identity:token-wins": (
        '3-tools "Who is calling"',
        "A token says who calls, whatever the session header says.",
    ),
    "identity:worker-needs-token": (
        "issue 3, must show",
        "A worker's session without its token is refused and told what is missing.",
    ),
    "identity:wrong-tree": (
        "issue 3, must show",
        "A worker's token used for another tree is refused and journaled with its caller.",
    ),
    "refusals:bounded": (
        "4-observability, bounded files",
        "A run keeps at most 50 refusals, the file two times 5 MB.",
    ),
    "refusals:never-in-the-way": (
        "5-surfaces §7",
        "A file of refusals that cannot be written stops nothing.",
    ),
    "refusals:no-secrets": (
        "4-observability",
        "The file of refusals is private and holds no token.",
    ),
    "refusals:shown": (
        "issue 3, must show",
        "Diagnostics and doctor show who was turned away in the last day.",
    ),
    "refusals:which": (
        "issue 3, must show",
        "Only who somebody is makes a refusal; limits on how much do not.",
    ),
    "tcp:host": ("5-surfaces §3", "A foreign Host is refused on TCP whatever token it brings."),
    "tcp:loopback": (
        "5-surfaces §4",
        "It listens on loopback only and is known by its loopback names.",
    ),
    "tcp:off-by-default": ("5-surfaces §4", "No port is opened unless one is configured."),
    "tcp:operator": (
        "5-surfaces §4",
        "The operator's token gives its rights on TCP unless an agent uses it.",
    ),
    "tcp:operator-token": (
        "5-surfaces §4",
        "The operator's token is made once, private, and not used when others could have read it.",
    ),
    "tcp:origin": (
        "5-surfaces §3",
        "A page of another origin is refused, and none may read an answer.",
    ),
    "tcp:port-taken": (
        "5-surfaces §7",
        "A port that is taken stops the start before anything is touched.",
    ),
    "tcp:token": ("5-surfaces §4", "Without a valid token only the health check answers on TCP."),
    "tcp:unix-socket-unchanged": (
        "5-surfaces §4",
        "The Unix socket needs no token and takes any Host.",
    ),
    "tcp:worker": ("5-surfaces §4", "A worker's token is a worker's on TCP too."),
    "token:dies-with-its-attempt": (
        "issue 3, build 3",
        "A token of an earlier attempt is refused while the next one works.",
    ),
    "token:dies-with-its-run": ("issue 3, build 3", "A token of a run that has ended is refused."),
    "token:names-the-attempt": (
        '3-tools "Who is calling"',
        "A worker is started with a token that names its run and attempt.",
    ),
    "token:next-turn": (
        "2-lifecycle §5",
        "A further turn has a token that works from its first instant.",
    ),
    "token:no-extra-commit": (
        "2-lifecycle §12.3",
        "A token costs no event of its own; its hash is in the event that grants the slot.",
    ),
    "token:only-a-hash-is-stored": (
        "issue 3, build 3",
        "The store holds the SHA-256 of a token and never the token.",
    ),
    "token:survives-a-crash-before-the-start": (
        "2-lifecycle §11",
        "A crash between commit and start gives the worker another token that works; one that was started keeps its own.",
    ),
    "token:unguessable": ("5-surfaces §4", "Tokens hold 43 random url-safe characters."),
    "token:unknown": (
        '3-tools "Who is calling"',
        "What is no token of ours is refused without saying what was wrong with it.",
    ),
}

LEAD: Final[Lines] = {
    "mcp:our-mistake": (
        "5-surfaces §7; 3-tools",
        "A mistake of the daemon reaches an MCP client as an error that names the log and shows nothing of its insides.",
    ),
    "mcp:unread": (
        "2-lifecycle §7; 5-surfaces §3",
        "Over stdio an answer counts as read only when the client took it from the pipe.",
    ),
}

MAILBOX: Final[Lines] = {
    "http:worker:limits": (
        "5-surfaces §4; 3-tools request_orchestrator",
        "A limit is HTTP 429 with its name and when to come again.",
    ),
    "http:worker:notices": (
        "5-surfaces §4; 3-tools notify_parent",
        "A notice is listed under attention with its id and answered by it.",
    ),
    "http:worker:progress": (
        "5-surfaces §4; 3-tools report_progress",
        "GET progress gives the kept updates; wrong metrics are refused.",
    ),
    "mailbox:tool-used": (
        "3-tools report_completion; seed 000 §4.2",
        "A tool called after the report makes it no longer the last, is named by the contract, and costs a commit only then.",
    ),
    "notices:answered": (
        "3-tools notify_parent",
        "A notice is answered once, on record, and the answer reaches the worker where its runtime takes messages.",
    ),
    "notices:answered-by-message": (
        "3-tools notify_parent",
        "A message to the worker answers its open notices, and no question.",
    ),
    "notices:closed-with-attempt": (
        "3-tools notify_parent",
        "The end of the attempt closes its notices; unread ones are still news.",
    ),
    "notices:limits": (
        "6-house-style 28",
        "A run has at most 20 unanswered notices and 1,000 in all.",
    ),
    "notices:pending": (
        "3-tools notify_parent",
        "A notice question or blocker raises pendingRequestCount and blockedReason, also when it was read; the tree has no blockedReason.",
    ),
    "progress:at-most-100": (
        "3-tools report_progress; seed 000 §9",
        "The 101st update of a run is only its latest, and says so.",
    ),
    "progress:durable": (
        "2-lifecycle §12 rule 3",
        "What was answered stored is there after a crash; what was not is replaced by the next.",
    ),
    "progress:forgotten": (
        "2-lifecycle §11; seed 000 §5.4 box 7",
        "The progress file goes with its run.",
    ),
    "progress:log": (
        "seed 000 §5.3; 3-tools report_progress",
        "Each stored update is one line of the run's own file, with level and metrics; the run has only the latest.",
    ),
    "progress:rate-limited": (
        "3-tools report_progress; seed 000 §5.2",
        "An update within 30 s of the last one of the same worker is an answer that names the wait, and is not stored.",
    ),
    "progress:shown": ("seed 000 §5.4 box 5", "The tree shows the latest progress."),
    "progress:torn-line": (
        "seed 000 §5.3",
        "A torn line is skipped, the next one is whole, and a repeated number counts once.",
    ),
    "prompt:only-what-is-asked": (
        "3-tools System prompt given to a worker",
        "Instructions that a run does not ask for are left out of its system prompt.",
    ),
    "prompt:report-form": (
        "3-tools System prompt given to a worker; Completion report as text",
        "A contract that requires a report shows the form, and the form can be read back.",
    ),
    "report-text:bounded": ("6-house-style 28", "Hostile text costs no more than its length."),
    "report-text:code-is-skipped": (
        "3-tools Completion report as text; seed 000 §4.3",
        "A block in fenced or indented code is none, and a fence whose other end is missing hides nothing.",
    ),
    "report-text:last": (
        "2-lifecycle §6",
        "A report as text is the last act when only text follows it.",
    ),
    "report-text:last-complete-block": (
        "3-tools Completion report as text",
        "Of several blocks the last complete one counts.",
    ),
    "report-text:missing-end": (
        "3-tools Completion report as text",
        "Without an end mark the rest of the text is the block.",
    ),
    "report-text:never-raises": ("3-tools Completion report as text", "No text breaks the parser."),
    "report-text:parsed": (
        "3-tools Completion report as text",
        "A completion report is read from text in any case, with emphasis, missing keys and any line end.",
    ),
    "report-text:reconciled": (
        "3-tools Completion report as text; 2-lifecycle §5",
        "The report in the last turn's result text is the attempt's report when none came by tool.",
    ),
    "report-text:round-trip": (
        "3-tools Completion report as text",
        "A report that was written down is read back as it was.",
    ),
    "report-text:tool-beats-text": (
        "3-tools Completion report as text",
        "A report by tool beats the one in the text, in whatever order they came.",
    ),
    "report-text:unknown-keys": (
        "3-tools Completion report as text",
        "Unknown keys are ignored, and prose in a summary is not taken for one.",
    ),
    "report-text:verified": (
        "2-lifecycle §6; 3-tools Completion report as text",
        "A report as text meets a contract, and a failed check says which kind of report and what came after it.",
    ),
    "report-text:wrong-value": (
        "3-tools Completion report as text",
        "A wrong value, no summary or too much text is no report, and the reason is kept for why.",
    ),
    "requests:bubble": (
        "3-tools request_orchestrator; 2-lifecycle §7",
        "A question to a requester whose work is over goes to the nearest ancestor at work, moves there when that work ends, and counts there.",
    ),
    "requests:limits-typed": (
        "3-tools request_orchestrator",
        "A limit of questions is rate_limited, names itself, and says when to ask again where that is known.",
    ),
    "requests:repeated": (
        "3-tools request_orchestrator",
        "The same question of the same attempt, asked again before it is answered, is the one that stands.",
    ),
    "seed000:4.5.2": (
        "seed 000 §4.5 box 2",
        "The name of the last tool call is captured from the event stream.",
    ),
    "seed000:4.5.3": (
        "seed 000 §4.5 box 3",
        "The text fallback searches from the end, ignores case and skips code blocks.",
    ),
    "seed000:4.5.4": ("seed 000 §4.5 box 4", "The parsed report is stored on the run."),
    "seed000:4.5.5": ("seed 000 §4.5 box 5", "The tree shows completion status and confidence."),
    "seed000:4.5.7": (
        "seed 000 §4.5 box 7",
        "A verification contract can require a completion report.",
    ),
    "seed000:4.5.9": (
        "seed 000 §4.5 box 9",
        "Report by tool, report as text, malformed and missing are tested.",
    ),
    "seed000:5.4.2": (
        "seed 000 §5.4 box 2",
        "Progress returns at once and is limited to one in 30 s.",
    ),
    "seed000:5.4.3": ("seed 000 §5.4 box 3", "Progress is stored in a JSONL file per run."),
    "seed000:5.4.4": ("seed 000 §5.4 box 4", "The run has only the latest progress."),
    "seed000:5.4.5": (
        "seed 000 §5.4 box 5",
        "The tree shows the latest progress of running sessions.",
    ),
    "seed000:5.4.7": ("seed 000 §5.4 box 7", "Progress files are cleaned up with their run."),
    "seed000:6.5.4": ("seed 000 §6.5 box 4", "A widening attempt is a spawn error."),
    "seed000:6.5.6": ("seed 000 §6.5 box 6", "A run with toolsDeny cannot use the tool."),
    "seed000:6.5.8": ("seed 000 §6.5 box 8", "No patch after the spawn changes the tool scope."),
    "seed000:8.4": (
        "seed 000 §8 high-risk 4",
        "No patch of a session affects the tool scope of its run.",
    ),
    "store:inbox-readdressed": (
        "2-lifecycle §7",
        "One unread message can change hands; read ones and the others stay.",
    ),
    "tools:applied": (
        "2-lifecycle §8; seed 000 §6.5 box 6",
        "A tool that was denied or not allowed cannot be used by the attempt.",
    ),
    "tools:fixed-at-spawn": (
        "2-lifecycle §8; seed 000 §6.5 box 8",
        "Nothing after the spawn changes the tool scope: unknown keys are refused, retries and new configuration keep it.",
    ),
    "tools:inherited-by-the-same-agent": (
        "2-lifecycle §8",
        "An agent gets no tool back by spawning itself, directly or through another agent.",
    ),
    "tools:shown": (
        "2-lifecycle §8",
        "Receipt, status and system prompt show the effective set and what is denied.",
    ),
    "why:steps:report-text": (
        "3-tools Completion report as text",
        "why tells what was read in the text of the result, and why it is no report.",
    ),
}

MCP: Final[Lines] = {
    "mcp:acknowledged-by-the-client": (
        "2-lifecycle §7; decision 0015",
        "A client that acknowledges by itself gives back what it has not acknowledged when it goes.",
    ),
    "mcp:bridge:acknowledges": (
        "2-lifecycle §7; decision 0015",
        "The bridge acknowledges once the client lives on; after kill -9 or an early end the next session has the messages at once.",
    ),
    "mcp:bridge:cancel": (
        "5-surfaces §3",
        "A cancelled call is not answered and takes nothing; the others go on.",
    ),
    "mcp:bridge:ends": (
        "5-surfaces §3",
        "At the end of its input and at SIGTERM the bridge ends cleanly with status 0; runs go on.",
    ),
    "mcp:bridge:light": ("5-surfaces §2 (start-up)", "The bridge loads nothing heavy."),
    "mcp:bridge:outcome-unknown": (
        "decision 0013",
        "A call that must not be repeated is told that its outcome is unknown and where to look.",
    ),
    "mcp:bridge:protocol": (
        "5-surfaces §3, §7",
        "Bad lines, batches, streams, pings and HTTP errors become proper JSON-RPC, and nothing else is on stdout.",
    ),
    "mcp:bridge:session": (
        '3-tools "Who is calling"',
        "Without a name the session belongs to the project directory, the same after every restart.",
    ),
    "mcp:bridge:survives-daemon": (
        "5-surfaces §3; decision 0013",
        "The stdio bridge outlives the daemon: it starts it again and repeats what may be repeated, under the same call id.",
    ),
    "mcp:bridge:worker": (
        '3-tools "A worker that is a plain command"',
        "Inside a worker the bridge speaks for that worker's run and never starts a daemon.",
    ),
    "mcp:consumed-once": (
        "2-lifecycle §7",
        "A message is consumed when its answer has left to a client that was there; one that left before takes nothing.",
    ),
    "mcp:door": (
        "5-surfaces §3, §7",
        "Only POST is served, bodies are bounded, and header values are compared without the space around them.",
    ),
    "mcp:eras": (
        "5-surfaces §3",
        "Clients of the current and of the previous protocol era are served, over HTTP and over stdio.",
    ),
    "mcp:errors": (
        '3-tools "Unknown parameters are refused"',
        "An unknown tool is an error of the protocol, a wrong parameter one of the tool; both name the nearest known.",
    ),
    "mcp:fleet": (
        '3-tools "The fleet table"; seed 000 §3',
        "A requester's client is told at once how to delegate and which agents it may spawn, with their cards, bounded.",
    ),
    "mcp:identity": (
        '3-tools "Who is calling"',
        "/mcp speaks for agents only; a bad token is refused in the protocol's form and noted, other trees are not seen.",
    ),
    "mcp:loaded-late": (
        "5-surfaces §2 (start-up)",
        "A daemon that no MCP client calls never loads the protocol's package.",
    ),
    "mcp:progress": (
        "5-surfaces §3",
        "A long wait sends growing progress on the request's own stream to a client that asked for it.",
    ),
    "mcp:stopping": (
        "5-surfaces §3",
        "A call that waits ends at once when the daemon stops, and is told that it may be repeated.",
    ),
    "mcp:tasks:cancel": (
        "5-surfaces §3; 2-lifecycle §10",
        "Cancelling a spawned task cancels the run; repeating it is harmless.",
    ),
    "mcp:tasks:created": (
        "5-surfaces §3",
        "sessions_spawn and sessions_wait answer as a task when the request declares the extension, else synchronously.",
    ),
    "mcp:tasks:durable": (
        "5-surfaces §3",
        "tasks/get answers after kill -9 of the daemon: nothing about a task is kept in memory.",
    ),
    "mcp:tasks:questions": (
        "3-tools request_orchestrator",
        "A worker's question is put to the user of a client that can show forms; declined, it stays open for the agent.",
    ),
    "mcp:tasks:refused": (
        "3-tools; 2-lifecycle §2",
        "A refused spawn is an answer, no task, and stores nothing.",
    ),
    "mcp:tasks:result-once": (
        "5-surfaces §3; 2-lifecycle §7",
        "A finished task has the result of sessions_wait; it is consumed once and can be read again.",
    ),
    "mcp:tasks:scope": (
        '3-tools "Who is calling"',
        "A task is there for its own tree only; for others, and for words that are no id, it is unknown, and noted.",
    ),
    "mcp:tasks:wait": (
        "5-surfaces §3; 3-tools sessions_wait",
        "A wait is a task that ends with its runs or at its time; cancelling it ends nothing but the wait.",
    ),
    "mcp:tasks:wire": (
        "5-surfaces §3",
        "tasks/… wants the capability in each request, the Mcp-Name header and the current era.",
    ),
    "mcp:tools-called": (
        "3-tools",
        "Every tool of requesters and of workers answers over both doors and both eras, with text and data.",
    ),
    "mcp:tools-listed": (
        "5-surfaces §3; 3-tools",
        "Every tool a caller may use is listed with its schema, annotations and the mark that keeps it loaded, and no other.",
    ),
}

PLUGIN: Final[Lines] = {
    "claude:hook-wakes-idle": (
        "5-surfaces §3; 2-lifecycle §7",
        "In an idle interactive session the end of a worker wakes it by the hook, once.",
    ),
    "claude:plugin-tools": (
        "5-surfaces §1",
        "With the plugin the tools are there under the plugin's name.",
    ),
    "claude:plugin-validates": (
        "5-surfaces §1",
        "`claude plugin validate` finds nothing wrong with the plugin.",
    ),
    "claude:resumed-finds-inbox": (
        '3-tools "Who is calling"; 2-lifecycle §7',
        "A session killed in the middle of a wait finds its inbox when it is resumed, and each result once.",
    ),
    "claude:stop-hook-delivers": (
        "5-surfaces §3; 2-lifecycle §7",
        "In print and SDK sessions what is unread at the end of a turn is told in that turn, once.",
    ),
    "claude:stop-hook-never-holds": (
        "5-surfaces §3",
        "A print or SDK session that has answered ends, whatever its workers still do.",
    ),
    "claude:task-wakes-idle": (
        "5-surfaces §3",
        "In an idle interactive session the end of a worker wakes it as an MCP task, and the hook does not say it again.",
    ),
    "claude:two-workers-one-answer": (
        '3-tools sessions_spawn, sessions_wait; issue "Must show"',
        "The real Claude Code spawns two command workers, waits, and gets both results in one answer, each consumed once.",
    ),
    "delivery:under-way": (
        "2-lifecycle §7",
        "What a waiting call or a polling client is about to bring, the doors that push leave alone, as long as it can come.",
    ),
    "hook:bounded-text": (
        "2-lifecycle §7; 5-surfaces §7",
        "News and welcomes of any size fit their bound, say what they leave out, and quote workers as data.",
    ),
    "hook:failure-is-no-news": (
        "5-surfaces §7",
        "No input and no failure makes a hook end with the code that stands for news.",
    ),
    "hook:questions-once": (
        "3-tools request_orchestrator; 2-lifecycle §7",
        "A question is told once to each session and stays unread until it is answered.",
    ),
    "hook:quiet-when-away": (
        "5-surfaces §2",
        "Without a daemon the hooks say nothing and start none.",
    ),
    "hook:start:bounded": ("5-surfaces §7", "A daemon that is stuck holds no session's start up."),
    "hook:start:says-what-waits": (
        '3-tools "a restarted client finds its inbox"',
        "A session starts with what is unread and what still runs; nothing is taken by it.",
    ),
    "hook:stop:bounded-blocks": (
        "2-lifecycle §7",
        "A turn's end is put off only so often in a row; what is left stays unread.",
    ),
    "hook:stop:never-waits": ("5-surfaces §3", "The hook in the foreground never waits."),
    "hook:stop:unread-goes-on": (
        "5-surfaces §3; 2-lifecycle §7",
        "What is unread at a turn's end goes into that turn, in the form the program knows, and is read then.",
    ),
    "hook:told-once": ("2-lifecycle §7", "Both hooks of one turn's end tell a message once."),
    "hook:wake:bounded": ("5-surfaces §3", "A wait in the background ends by itself."),
    "hook:wake:daemon-restart": (
        "2-lifecycle §12",
        "A wait in the background survives the daemon's death and brings it back.",
    ),
    "hook:wake:dead-session": (
        "2-lifecycle §7",
        "A session that was killed is told nothing; the message stays unread.",
    ),
    "hook:wake:leaves-what-is-awaited": (
        "2-lifecycle §7",
        "What a wait under way will bring is not brought by the hook as well.",
    ),
    "hook:wake:news": (
        "5-surfaces §3",
        "The end of a worker ends the wait in the background with the code that wakes the session, and the result.",
    ),
    "hook:wake:nothing-to-wait-for": (
        "5-surfaces §3",
        "With nothing active and nothing unread there is no wait.",
    ),
    "hook:wake:one-at-a-time": ("5-surfaces §3", "One session has one wait in the background."),
    "hook:workers-hear-through-their-run": (
        "2-lifecycle §5",
        "In a worker's own session the hooks are silent: its run brings it what its children said.",
    ),
    "mcp-install:asks-first": (
        "5-surfaces §1, §2",
        "The change is shown, a terminal is asked, elsewhere --yes must be said, and --dry-run writes nothing.",
    ),
    "mcp-install:atomic": (
        "5-surfaces §1",
        "The file is replaced in one step; its mode and a link to it stay, the old one is kept.",
    ),
    "mcp-install:command": (
        "5-surfaces §1",
        "The entry starts this very program, by its whole path where PATH does not find it, in this home.",
    ),
    "mcp-install:config": ("5-surfaces §1", "The printed snippet is what would be written."),
    "mcp-install:idempotent": (
        "5-surfaces §1",
        "Registering again changes nothing; uninstalling takes our entry away.",
    ),
    "mcp-install:keeps-the-rest": (
        "5-surfaces §1",
        "Whatever else a configuration holds stays: values, order, comments, indentation, line ends.",
    ),
    "mcp-install:only-ours": (
        "5-surfaces §1",
        "Taking away what is not there changes nothing and makes no file.",
    ),
    "mcp-install:project": (
        "5-surfaces §1",
        "--project registers in the project's file, where the program has one.",
    ),
    "mcp-install:recipes": (
        "5-surfaces §1",
        "Claude Code, Codex, Gemini, opencode and OpenClaw are each told in their own file and form.",
    ),
    "mcp-install:refuses-broken": (
        "5-surfaces §7",
        "A file that cannot be read is named with the place, and left alone.",
    ),
    "mcp-install:refuses-what-differs": (
        "5-surfaces §1",
        "Another Codex table of our name is refused; an older JSON entry of ours is replaced where it stands.",
    ),
    "plugin:whole": (
        "5-surfaces §1",
        "The plugin has its parts, the package's version, and names only commands, tools and actions that there are.",
    ),
}

TOOLS: Final[Lines] = {
    "suggest:cost": (
        "4-observability §7",
        "What costs more than asked sinks, what costs less rises.",
    ),
    "suggest:load": ("4-observability §7", "Of equal agents the one without a queue comes first."),
    "suggest:ranking": (
        "4-observability §7; seed 000 §3",
        "Agents are ranked by wanted tags, named tags and words, each once, in any order given.",
    ),
    "suggest:record": (
        "4-observability §7",
        "A long good record beats a lucky run, and a bad one loses to none.",
    ),
    "tools:agents": (
        "3-tools agents_list; 4-observability §7",
        "The agents one may spawn are listed with card, load and record, ranked with reasons on a hint; none is started.",
    ),
    "tools:cheap": ('issue 3 "Must show"', "The requesters' tools cost less than 3,000 tokens."),
    "tools:errors": (
        "3-tools",
        "An error says the same in words and as data: status, code, error, hint, details.",
    ),
    "tools:inbox": (
        "2-lifecycle §7",
        "The inbox hands over what fits into an answer and keeps the rest; cut messages keep their fences.",
    ),
    "tools:inbox-notice": (
        "3-tools",
        "Every answer to a requester ends with at most one line about messages nobody was handed yet.",
    ),
    "tools:kill": (
        "2-lifecycle §10",
        "kill ends a run and all below it, says by whom and why, and can be repeated.",
    ),
    "tools:list": (
        "3-tools sessions_list; seed 000 §1",
        "The list has the documented rows with blockedReason, newest first, filtered and paged.",
    ),
    "tools:log": (
        "4-observability §2",
        "The log brings the newest lines or a page, with secrets removed.",
    ),
    "tools:no-operator": (
        '3-tools "Who is calling"',
        "An operator's connection has an agent's rights through a tool.",
    ),
    "tools:null-is-absent": (
        "3-tools",
        "A parameter that is null counts as absent, at any depth, but not inside a JSON Schema.",
    ),
    "tools:own-subtree": (
        '3-tools "Who is calling"',
        "Every tool refuses somebody else's run, changes nothing, and the refusal is kept.",
    ),
    "tools:pause": ("2-lifecycle §10", "A run that has not started is held and let go."),
    "tools:refuses-bad-input": (
        "5-surfaces §7",
        "Wrong values, sizes, NUL bytes and half characters are refused by the name of the parameter.",
    ),
    "tools:refuses-unknown": (
        "3-tools",
        "Every requester tool refuses an unknown parameter with the nearest known one.",
    ),
    "tools:respond": (
        "3-tools respond_orchestrator_request",
        "A question is answered once, by whoever may, and who came second is told.",
    ),
    "tools:result": (
        "3-tools subagents",
        "A whole result is read page by page, and reading it consumes its announcement.",
    ),
    "tools:results-are-data": (
        "2-lifecycle §7",
        "A worker's result that poses as instructions stays inside its fence in every answer.",
    ),
    "tools:schemas-flat": (
        "3-tools; seed 000 §4.5",
        "No schema of either audience uses anyOf, oneOf, allOf, $ref or lists of types.",
    ),
    "tools:schemas-match-decoders": (
        "3-tools",
        "A schema shows exactly the parameters, inner objects, enums and required names that are decoded.",
    ),
    "tools:selectors": (
        "5-surfaces §2",
        "A run is found by id, label, unique prefix, last, and the session of any of its attempts.",
    ),
    "tools:send": (
        "3-tools sessions_send; 2-lifecycle §10",
        "A message is steered, queued or accepted for a turn of its own; one that cannot be sent is refused with the reason.",
    ),
    "tools:spawn:batch": (
        "2-lifecycle §3; 3-tools sessions_spawn",
        "A batch is all or nothing, its entries name each other by label, and a fault is named with its entry.",
    ),
    "tools:spawn:cwd": (
        "2-lifecycle §2",
        "A run works where its caller stands, a worker's child where the worker was put, unless told otherwise.",
    ),
    "tools:spawn:nested": (
        '2-lifecycle §2.3; 3-tools "Who is calling"',
        "A worker spawns as deep as it may; beyond that it is told the depth and the key.",
    ),
    "tools:spawn:once": (
        "2-lifecycle §2; 3-tools idempotencyKey",
        "A call that a door repeats under its id spawns once, a batch too.",
    ),
    "tools:spawn:receipt": (
        "3-tools sessions_spawn",
        "A spawn answers with exactly the documented receipt: what was really resolved, with warnings.",
    ),
    "tools:spawn:refused": (
        "2-lifecycle §2; 5-surfaces §7",
        "A refused spawn names the parameter or the configuration key, and nothing is stored.",
    ),
    "tools:tree": (
        "3-tools sessions_tree; seed 000 §2.7, §4.5, §5.4",
        "The tree nests runs with verification, completion and progress, and never says blockedReason.",
    ),
    "tools:unicode": (
        "5-surfaces §7",
        "A task in any script reaches the worker letter by letter, and labels in any script name runs.",
    ),
    "tools:visible": (
        '3-tools "Who is calling"',
        "Each caller sees the tools it may use, and a tool that is not shown is refused with the reason.",
    ),
    "tools:wait:bounded": (
        "3-tools; 4-observability",
        "Answers are bounded in both forms, say where the rest is, and take only what they show.",
    ),
    "tools:wait:cancelled": (
        "2-lifecycle §7",
        "A call whose caller went away leaves nothing taken, at whatever step it is cancelled.",
    ),
    "tools:wait:consumed-once": (
        "2-lifecycle §7",
        "An acknowledged result is news no more, an unacknowledged one stays with its reader until its lease ends.",
    ),
    "tools:wait:errors": (
        "3-tools sessions_wait",
        "Runs that are not there or not one's own are named, and the others are waited for.",
    ),
    "tools:wait:items": (
        "3-tools sessions_wait",
        "What ended comes as the documented items, what is pending with its reason.",
    ),
    "tools:wait:own-inbox": (
        "2-lifecycle §7",
        "Looking at a grandchild's result leaves its announcement to the run that spawned it.",
    ),
    "tools:wait:returns-by-itself": (
        "5-surfaces §3",
        "A long wait gives signs of life and returns before 280 seconds.",
    ),
    "tools:wait:timeout": (
        "3-tools sessions_wait",
        "A timeout is no error and says what is pending and why.",
    ),
    "tools:wait:until": (
        "3-tools sessions_wait",
        "any returns at the first end, all at the last; a run is pending or completed at every instant, never neither.",
    ),
    "tools:why": (
        "2-lifecycle §1, §7",
        "why and attention tell an agent the story of its own runs.",
    ),
}

WORKER_TOOLS: Final[Lines] = {
    "cli:config-trust": (
        "docs/decisions/0012",
        "A person trusts a project file after being asked; a worker cannot.",
    ),
    "e2e:command-worker:ask": (
        "3-tools request_orchestrator",
        "A shell line's question is answered on its stdout, also when the daemon is killed in between; else the default is printed.",
    ),
    "e2e:command-worker:depth": (
        "2-lifecycle §2 item 3",
        "At the deepest level its spawn is refused and the key is named.",
    ),
    "e2e:command-worker:notify": (
        "3-tools notify_parent",
        "A shell line's blocker blocks its run until it is answered.",
    ),
    "e2e:command-worker:own-tree": (
        '3-tools "Who is calling"',
        "A worker cannot speak for, read or cancel another run.",
    ),
    "e2e:command-worker:progress": (
        '3-tools "A worker that is a plain command"',
        "A shell line shows progress with metrics; too early is answered with when.",
    ),
    "e2e:command-worker:project-file": (
        "docs/decisions/0012",
        "A worker gains no agent by writing a project file, and is told what was ignored.",
    ),
    "e2e:command-worker:report": (
        '3-tools "A worker that is a plain command"',
        "A shell line reports with files and low confidence, by its five variables alone.",
    ),
    "e2e:command-worker:spawn": (
        '3-tools "A worker that is a plain command"',
        "A shell line spawns, waits for and uses a child where its depth allows.",
    ),
    "http:tools:ack-auto": (
        "2-lifecycle §7",
        "With X-Subagents-Ack auto an answer that left is consumed, one that could not leave is free again at once.",
    ),
    "http:tools:bad-input": (
        "5-surfaces §7",
        "A call that reaches no tool is a problem document that names what is wrong.",
    ),
    "http:tools:call": (
        '3-tools "Each answer"',
        "A tool answers over HTTP with text and data; its refusal is an answer; an agent's tool has no person's rights.",
    ),
    "http:tools:call-id": ("3-tools sessions_spawn", "A repeated call of the same id spawns once."),
    "http:tools:disconnect": ("2-lifecycle §7", "A waiter that hung up takes nothing with it."),
    "http:tools:list": (
        "3-tools; 5-surfaces §4",
        "Each caller is shown its tools with their schemas; spawning ones only where its depth allows.",
    ),
    "http:tools:offered": (
        "2-lifecycle §7",
        "What an answer hands over is leased to its reader and consumed when the reader says so.",
    ),
    "python:tools:control": (
        "3-tools sessions_send, subagents",
        "A live worker is written to and ended by the methods.",
    ),
    "python:tools:errors": (
        '5-surfaces §6 "same errors"',
        "Refusals of tools raise the same errors as everywhere.",
    ),
    "python:tools:names": (
        '3-tools "methods of the Python library"',
        "Every requester tool is a method of that name, its parameters in snake_case.",
    ),
    "python:tools:question": (
        "3-tools respond_orchestrator_request",
        "A worker's question is answered by the method.",
    ),
    "python:tools:round-trip": (
        '3-tools "methods of the Python library"',
        "Spawn, wait, consume and look through the methods, batches and nested tables too.",
    ),
    "redact:assignments": (
        "4-observability (secrets are redacted when written)",
        "What is assigned to a secret's name is hidden, the name is not.",
    ),
    "redact:harmless": ("4-observability", "Texts without a secret are left alone."),
    "redact:headers": (
        "4-observability (bearer headers)",
        "Bearer and cookie headers, passwords in URLs and private keys are hidden, also when cut.",
    ),
    "redact:linear": (
        "5-surfaces §7 (absurd sizes)",
        "No text makes redaction slow: its time is linear.",
    ),
    "redact:repeat": ("6-house-style 5", "Redacting twice changes nothing."),
    "redact:shapes": (
        "3-tools sessions_history; 4-observability",
        "No key of a known shape survives, wherever it stands.",
    ),
    "tools:history:bounds": (
        "3-tools sessions_history",
        "A message has at most 4,000 characters, an answer at most 80 KB.",
    ),
    "tools:history:order": (
        "3-tools sessions_history",
        "Task, steers, questions, answers, notices, reports and result of a session come in their order; progress when asked for.",
    ),
    "tools:history:pages": (
        "3-tools sessions_history",
        "Pages by nextOffset make up the whole history.",
    ),
    "tools:history:redacted": (
        "3-tools sessions_history",
        "Secrets are removed before a message is cut.",
    ),
    "tools:history:sessions": (
        "3-tools sessions_history",
        "A session key shows one attempt, a run selector all of them.",
    ),
    "tools:history:who": (
        '3-tools "Who is calling"',
        "A session of somebody else's tree is refused.",
    ),
    "tools:notify-parent": (
        "3-tools notify_parent",
        "A blocker marks the run as blocked until somebody answers or writes to the worker.",
    ),
    "tools:report-completion": (
        "3-tools report_completion; seed 000 §4.1",
        "The last completion report counts and is stored whole.",
    ),
    "tools:report-completion:last-act": (
        "3-tools report_completion; seed 000 §4.2",
        "A report is the worker's last act until it uses another tool.",
    ),
    "tools:report-progress": (
        "3-tools report_progress; seed 000 §5",
        "Progress returns at once and is kept with level and metrics; an early one answers rate_limited with when.",
    ),
    "tools:request:answered": (
        "3-tools request_orchestrator",
        "A question holds the line until its answer, which says who decided.",
    ),
    "tools:request:deadline": (
        "3-tools request_orchestrator",
        "At the deadline the default answer holds, or there is none; who decided is on record.",
    ),
    "tools:request:limits": (
        "3-tools request_orchestrator",
        "The fourth open and the sixth question in a minute answer rate_limited, naming the limit.",
    ),
    "tools:request:pending": (
        "3-tools request_orchestrator",
        "After 50 s an unanswered question is pending; its id, or asking again, goes on with the same question.",
    ),
    "tools:request:run-ends": (
        "3-tools request_orchestrator",
        "A question of a run that is ended is withdrawn, not left hanging.",
    ),
    "tools:worker:refusals": (
        '3-tools "Unknown parameters are refused"; 5-surfaces §7',
        "A wrong parameter of a worker tool is named with what is allowed, and nothing is stored.",
    ),
    "tools:worker:schemas": (
        '3-tools "Input schemas are flat"; seed 000 §4.5, §5.4',
        "The worker tools' schemas have no anyOf, oneOf, allOf, $ref or list of types.",
    ),
    "tools:worker:who": (
        '3-tools "Who is calling"',
        "Worker tools hear only a worker with a live token; a top-level session and a dead token are refused.",
    ),
    "trust:added-agent": (
        "2-lifecycle §2 item 5; docs/decisions/0012",
        "An agent that only a project's file defines is spawnable by an agent only when the user's allow_agents names it.",
    ),
    "trust:allow-agents": (
        "docs/decisions/0012",
        "For agents a project's file can narrow allow_agents and never widen it; its own agents may spawn nobody.",
    ),
    "trust:by-content": (
        "docs/decisions/0012",
        "A trusted project file counts whole until one byte of it changes.",
    ),
    "trust:commands": (
        "docs/decisions/0012",
        "A project's file cannot let agents' contracts run commands.",
    ),
    "trust:limits": (
        "docs/decisions/0012",
        "For agents a project's file lowers limits, deadlines and slots and never raises them.",
    ),
    "trust:person": (
        "docs/decisions/0012",
        "A person's own file, environment and hand are not narrowed.",
    ),
    "trust:redefined-agent": (
        "docs/decisions/0012",
        "An agent of the user stays what it is; a project may only take tools and time from it.",
    ),
}

AGENT_PARTS: Final[tuple[Lines, ...]] = (
    BREAKER,
    DELIVERY,
    IDENTITY,
    LEAD,
    MAILBOX,
    MCP,
    PLUGIN,
    TOOLS,
    WORKER_TOOLS,
)
