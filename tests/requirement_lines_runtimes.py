# ruff: noqa: E501 - one line per requirement, so that each can be found, moved and counted
"""What real workers promise: id → (source, sentence); see ``requirement_lines``."""

from typing import Final

from tests.requirement_lines import Lines

ACP: Final[Lines] = {
    "acp:asked:unknown": (
        '7-runtimes "acp"',
        "What an agent asks that this client does not do is refused and never left unanswered.",
    ),
    "acp:e2e:ask": (
        "3-tools",
        "An ACP agent asks its requester through a server that got no token in its environment.",
    ),
    "acp:e2e:cancel": (
        "2-lifecycle §10",
        "A cancelled ACP agent leaves no process.",
    ),
    "acp:e2e:command": (
        '7-runtimes "acp"',
        "An ACP agent runs a command and reads its output.",
    ),
    "acp:e2e:edit": (
        '7-runtimes "acp"',
        "An ACP agent writes a file and passes its contract.",
    ),
    "acp:e2e:failure": (
        '7-runtimes "acp"',
        "A model that fails is an error of the run in its words.",
    ),
    "acp:e2e:interrupt": (
        "2-lifecycle §10",
        "An interrupt ends the turn and the child that the agent left alive.",
    ),
    "acp:e2e:kill": (
        '7-runtimes "The shim"',
        "A killed daemon takes an ACP turn up again and prompts nobody twice.",
    ),
    "acp:e2e:missing": (
        '7-runtimes "acp"',
        "A model that the session does not offer ends the run with those it does.",
    ),
    "acp:e2e:no-deliverable": (
        "seed 000 §6.5",
        "An ACP agent that is done without the deliverable ends as verification_failed.",
    ),
    "acp:e2e:no-secret": (
        '7-runtimes "The shim"',
        "No file of an ACP attempt holds the worker's token.",
    ),
    "acp:e2e:queued": (
        "2-lifecycle §10",
        "A message to one that queues is a turn of its own in the same session, by session/load.",
    ),
    "acp:e2e:resume": (
        "2-lifecycle §10",
        "An ended session of an ACP agent is gone on with.",
    ),
    "acp:e2e:scope": (
        "2-lifecycle §8",
        "A denied shell is refused to an ACP agent and to its child.",
    ),
    "acp:e2e:spawn": (
        "3-tools",
        "An ACP agent spawns a child and hands its result on.",
    ),
    "acp:e2e:steer": (
        "2-lifecycle §10",
        "A message to an ACP agent that steers is heard in the same turn.",
    ),
    "acp:e2e:transcript": (
        "4-observability §1",
        "The log of an ACP agent has its messages whole and its tools with their ends.",
    ),
    "acp:e2e:usage": (
        "4-observability §1",
        "Tokens and dollars of an ACP agent are counted.",
    ),
    "acp:ends": (
        '7-runtimes "acp"',
        "A turn that does not end well is an error with its reason and the last words.",
    ),
    "acp:failures": (
        '7-runtimes "acp"',
        "A failed request is an error in the provider's words.",
    ),
    "acp:interrupt": (
        "2-lifecycle §10",
        "An interrupt is session/cancel, and the cancelled turn says that it was interrupted.",
    ),
    "acp:limits": (
        "2-lifecycle §9",
        "A provider's limit is found where ACP agents put it, also in turns that they end as if well.",
    ),
    "acp:options:facts": (
        '7-runtimes "acp"',
        "Options may say of any agent what the table does not know.",
    ),
    "acp:options:refused": (
        '7-runtimes "acp"',
        "Options with which no ACP agent could start are refused by name, with the way out.",
    ),
    "acp:permission:none-fits": (
        '7-runtimes "acp"',
        "A question without a fitting answer is given up.",
    ),
    "acp:permission:open": (
        '7-runtimes "acp"',
        "Without a scope a question for permission is answered with allow once.",
    ),
    "acp:real:cells": (
        '7-runtimes "acp"',
        "Each real ACP agent does what its row promises.",
    ),
    "acp:real:failure": (
        '7-runtimes "acp"',
        "A request that the provider refuses is an error of the run with every real ACP agent.",
    ),
    "acp:real:left-behind": (
        '7-runtimes "The shim"',
        "A child in a session of its own does not outlive a cancelled run of any real ACP agent.",
    ),
    "acp:real:versions": (
        '7-runtimes "acp"',
        "The installed version is the one that the row was seen with.",
    ),
    "acp:resume:history": (
        '7-runtimes "acp"',
        "The history that a loaded session tells is no news to anybody.",
    ),
    "acp:resume:ways": (
        '7-runtimes "acp"',
        "An old session is gone on with by session/resume, else session/load, else not at all.",
    ),
    "acp:scope:asks": (
        "2-lifecycle §8",
        "An agent that asks is set to ask, and told no by kind and by name; one that cannot be gets no turn.",
    ),
    "acp:scope:gemini": (
        "2-lifecycle §8",
        "Gemini's scope is a policy that takes the tools away.",
    ),
    "acp:scope:opencode": (
        "2-lifecycle §8",
        "A run's scope wins over what opencode's user allows for good.",
    ),
    "acp:scope:other-names": (
        "2-lifecycle §8",
        "A deny holds under the names that each ACP agent has for the tool.",
    ),
    "acp:scope:ours": (
        "2-lifecycle §8",
        "Our own tools are allowed unless denied by name.",
    ),
    "acp:scope:refused": (
        "2-lifecycle §8",
        "A scope that nothing enforces is refused by the tool's name before anything is stored.",
    ),
    "acp:setup:bridge": (
        '7-runtimes "acp"',
        "Our MCP server is injected in session/new without any secret.",
    ),
    "acp:setup:login": (
        '7-runtimes "acp"',
        "An agent that needs a login gets it by its row, or says how to give it one.",
    ),
    "acp:setup:mode": (
        '7-runtimes "acp"',
        "A mode of the table may be refused; one that the user wrote may not.",
    ),
    "acp:setup:model": (
        '7-runtimes "acp"',
        "A model is set by the way that the session offers, before the first prompt.",
    ),
    "acp:setup:no-commands": (
        '7-runtimes "acp"',
        "A message that begins like a command of the program is a message.",
    ),
    "acp:setup:not-offered": (
        '7-runtimes "acp"',
        "A model or thinking level that the session does not offer ends the run with what it does offer.",
    ),
    "acp:setup:system-prompt": (
        '7-runtimes "acp"',
        "A worker's role reaches an ACP agent once: as its system prompt, or before the first prompt.",
    ),
    "acp:setup:version": (
        '7-runtimes "acp"',
        "An agent of another version of the protocol is refused.",
    ),
    "acp:start:argv": (
        '7-runtimes "acp"',
        "An agent of the table is started with its own arguments, wherever it is installed.",
    ),
    "acp:start:environment": (
        '7-runtimes "The shim"',
        "An agent gets its own keys from the daemon's environment and no other agent's.",
    ),
    "acp:start:missing": (
        '7-runtimes "acp"',
        "An agent that is not installed is refused with the package that brings it.",
    ),
    "acp:steer:late": (
        "2-lifecycle §10",
        "A message that comes after the turn's end is not taken, and waits for the next one.",
    ),
    "acp:steer:open": (
        "2-lifecycle §10",
        "A message into an open turn is sent and answered before the turn is over.",
    ),
    "acp:steer:others": (
        '7-runtimes "acp"',
        "An agent that would queue a second prompt, or end its turn for it, takes no message.",
    ),
    "acp:steer:pulled": (
        '7-runtimes "acp"',
        "Qwen Code is given messages when it asks for them.",
    ),
    "acp:stream:anything": (
        '7-runtimes "acp"',
        "No stream of an ACP agent, of whatever shape, raises.",
    ),
    "acp:stream:durations": (
        "4-observability §1",
        "A tool's duration is told when both ends were heard as they came.",
    ),
    "acp:stream:every-agent": (
        '7-runtimes "acp"',
        "Every agent that was run has recordings of tools, of ours, and of a cancel.",
    ),
    "acp:stream:every-event": (
        "4-observability §1",
        "Every event that a real ACP agent wrote is decoded or said to be unknown by name.",
    ),
    "acp:stream:joined": (
        "4-observability §1",
        "Chunks are joined into messages, and the last message is the result.",
    ),
    "acp:stream:our-tools": (
        "3-tools",
        "A tool of ours ends with its own name, whatever the agent puts before it.",
    ),
    "acp:stream:plan": (
        "4-observability §1",
        "An agent's plan is shown with what is done.",
    ),
    "acp:stream:same-twice": (
        '7-runtimes "The shim"',
        "Folding a stream again sends nothing new and gives the same signals.",
    ),
    "acp:stream:tools": (
        "4-observability §1",
        "A command is told with its line, its output, its exit and its duration, whichever agent ran it.",
    ),
    "acp:table": (
        '7-runtimes "acp"',
        "What differs between ACP agents is one table: where each comes from, its version, what was seen of it.",
    ),
    "acp:table:abilities": (
        '7-runtimes "acp"',
        "A run's abilities are those of the agent that its options name.",
    ),
    "acp:usage": (
        "4-observability §1",
        "Tokens are the turn's; unknown where an agent tells only the last request's.",
    ),
}

AGENTS: Final[Lines] = {
    "agents:show:abilities": (
        "7-runtimes",
        "An agent's card says what its runtime can do, whether a scope can be enforced, and what its last probe found.",
    ),
}

BRIDGE: Final[Lines] = {
    "bridge:worker:cleaned-environment": (
        '3-tools "Who is calling"',
        "A tool server with a cleaned environment finds its worker's token above it.",
    ),
    "bridge:worker:nobody-above": (
        '3-tools "Who is calling"',
        "Without a worker above it a tool server finds no token.",
    ),
    "bridge:worker:own-token": (
        '3-tools "Who is calling"',
        "A tool server with a token of its own looks no further.",
    ),
}

CLAUDE_WORKER: Final[Lines] = {
    "claude-worker:e2e:asks-and-is-answered": (
        '3-tools "request_orchestrator"',
        "The real program asks its requester through our tools, there from its first request on.",
    ),
    "claude-worker:e2e:cancel-leaves-no-child": (
        "2-lifecycle §10",
        "A cancelled run of the real program leaves no process, though its shells lead sessions of their own.",
    ),
    "claude-worker:e2e:daemon-killed": (
        "2-lifecycle §11",
        "A killed daemon's successor goes on with a turn of the real program: one attempt, nothing asked twice.",
    ),
    "claude-worker:e2e:daemon-killed-then-steered": (
        "2-lifecycle §11",
        "A turn that was adopted is still heard, spoken to and ended, and nothing of it is told twice.",
    ),
    "claude-worker:e2e:denied-shell": (
        '8-field-failures "spool #121"',
        "A denied shell really fails: for the worker, for its own agents and for a child that it spawns.",
    ),
    "claude-worker:e2e:edits-a-file": (
        "seed 000 §6.5",
        "The real program edits a file that passes its contract.",
    ),
    "claude-worker:e2e:follow-up-turn": (
        "2-lifecycle §5",
        "A parent that ended its turn is told of its child in a further turn of the same session, and its usage counts on.",
    ),
    "claude-worker:e2e:interrupt": (
        "2-lifecycle §10",
        "An interrupted turn of the real program ends politely, with what it said.",
    ),
    "claude-worker:e2e:killed-worker": (
        "2-lifecycle §5",
        "A killed program is an error, and its shell's child goes too.",
    ),
    "claude-worker:e2e:limit-of-turns": (
        '7-runtimes "claude-code"',
        "A limit of turns ends the real program and says which option it is.",
    ),
    "claude-worker:e2e:no-token-in-sight": (
        '7-runtimes "The shim"',
        "A live worker's token is in no file and no argument.",
    ),
    "claude-worker:e2e:nothing-delivered": (
        "2-lifecycle §6",
        "A turn of the real program without its deliverable ends as verification_failed.",
    ),
    "claude-worker:e2e:only-these-tools": (
        "2-lifecycle §8",
        "A scope leaves the real program only those tools and ours.",
    ),
    "claude-worker:e2e:own-agents": (
        '7-runtimes "claude-code"',
        "An agent of the real program's own works within its turn.",
    ),
    "claude-worker:e2e:provider-limit": (
        '8-field-failures "provider limits"',
        "A rate limit that the real program gives up on is waited out, and is no failure.",
    ),
    "claude-worker:e2e:provider-retry": (
        '7-runtimes "claude-code"',
        "A provider that is overloaded for now is asked again by the real program, and that is told.",
    ),
    "claude-worker:e2e:runs-a-command": (
        '7-runtimes "claude-code"',
        "The real program runs a command and its model sees what came out.",
    ),
    "claude-worker:e2e:spawns-a-child": (
        '7-runtimes "claude-code"',
        "The real program spawns a child and hands its result on.",
    ),
    "claude-worker:e2e:steer-same-turn": (
        "2-lifecycle §10",
        "A message in mid-turn reaches the real program's model in the same turn.",
    ),
    "claude-worker:e2e:task-pulls-in-no-file": (
        '7-runtimes "claude-code"',
        "A task that names a file does not make the real program read it, nor run a command.",
    ),
    "claude-worker:e2e:usage-in-status": (
        "2-lifecycle §9",
        "What the real program used and what it cost is in its status.",
    ),
    "claude-worker:errors:api-retry": (
        '7-runtimes "claude-code"',
        "A provider that refuses for now is told with its status, the try and the wait.",
    ),
    "claude-worker:errors:clear": (
        '7-runtimes "claude-code"',
        "Ends by limits of turns or money, refusals and a missing login say what happened and the way out.",
    ),
    "claude-worker:errors:limit": (
        '8-field-failures "provider limits"',
        "A turn that a rate limit ended is a wait, with the time the provider names.",
    ),
    "claude-worker:interrupt:before-the-beginning": (
        "2-lifecycle §10",
        "A turn that was interrupted before it began is over too.",
    ),
    "claude-worker:interrupt:ends-the-turn": (
        "2-lifecycle §10",
        "An interrupted turn ends with its last words and begins nothing that waited.",
    ),
    "claude-worker:options:checked": (
        '7-runtimes "claude-code"',
        "An odd option is named with what is allowed; good ones become arguments and variables.",
    ),
    "claude-worker:scope:agents-by-both-names": (
        '8-field-failures "GENesis-AGI PR #1391"',
        "Agents of its own are off under both their names, and as workflows.",
    ),
    "claude-worker:scope:deny-holds-under-every-name": (
        "2-lifecycle §8",
        "A denied shell is off under every name it has.",
    ),
    "claude-worker:scope:only-these": (
        "2-lifecycle §8",
        "A scope decides which of its tools exist.",
    ),
    "claude-worker:scope:our-own-tools": (
        "2-lifecycle §8",
        "Our tools are allowed unless one is denied by name.",
    ),
    "claude-worker:scope:refuses-what-cannot-hold": (
        "2-lifecycle §8",
        "A scope that cannot hold is refused with the way out.",
    ),
    "claude-worker:scope:unscoped": (
        "2-lifecycle §8",
        "Without a scope all its tools are allowed but those that reach other sessions or times.",
    ),
    "claude-worker:start:bypass-as-root": (
        '7-runtimes "claude-code"',
        "Bypassing permissions as root is refused before the start.",
    ),
    "claude-worker:start:model-and-thinking": (
        '7-runtimes "claude-code"',
        "Model and thinking level are handed over, and an odd level is refused.",
    ),
    "claude-worker:start:no-secret-no-prompt-in-arguments": (
        '7-runtimes "The shim"',
        "Neither the prompt nor the instructions nor a token are arguments.",
    ),
    "claude-worker:start:own-settings-only": (
        '7-runtimes "claude-code"',
        "Nothing of the user's own configuration is read unless it is asked for.",
    ),
    "claude-worker:start:program": (
        '7-runtimes "claude-code"',
        "A program that is nowhere is told with the way out.",
    ),
    "claude-worker:start:session-id": (
        '7-runtimes "claude-code"',
        "A session gets an id of our choice, and a further turn resumes it.",
    ),
    "claude-worker:start:task-is-taken-word-for-word": (
        '7-runtimes "claude-code"',
        "A task is sent as composed text, which pulls in no file and runs no command.",
    ),
    "claude-worker:start:too-old": (
        '7-runtimes "claude-code"',
        "A version that would not take a task word for word is refused.",
    ),
    "claude-worker:steer:after-the-end": (
        "2-lifecycle §10",
        "A message that came when the turn was over is not taken before it is answered.",
    ),
    "claude-worker:steer:result-that-does-not-cover-it": (
        "2-lifecycle §10",
        "A result that does not cover a message is not the end of the turn.",
    ),
    "claude-worker:steer:same-turn": (
        "2-lifecycle §10",
        "A message into the turn is taken at once and answered in the same result.",
    ),
    "claude-worker:stream:any-order": (
        '7-runtimes "claude-code"',
        "Events in any order never raise.",
    ),
    "claude-worker:stream:asks-nobody": (
        '7-runtimes "claude-code"',
        "A question of the program to its host is answered, so that it never waits.",
    ),
    "claude-worker:stream:compaction": (
        "4-observability §1",
        "A compaction is told, also one that failed.",
    ),
    "claude-worker:stream:denied-tool": (
        "4-observability §1",
        "A denied tool fails, and the denial is told.",
    ),
    "claude-worker:stream:every-event-known": (
        '7-runtimes "claude-code"',
        "Every event in recordings of the real program is known.",
    ),
    "claude-worker:stream:folding-twice": (
        '7-runtimes "The shim"',
        "Folding a recorded stream again after a restart gives the same state, usage and tools.",
    ),
    "claude-worker:stream:fuzz": (
        '7-runtimes "claude-code"',
        "No line ever raises, and folding any lines twice gives the same.",
    ),
    "claude-worker:stream:huge": (
        '7-runtimes "claude-code"',
        "Huge and deeply nested lines are read or told, and cut for display.",
    ),
    "claude-worker:stream:own-subagents": (
        '7-runtimes "claude-code"',
        "An agent of its own harness is never taken for the worker.",
    ),
    "claude-worker:stream:parallel-tools": (
        "4-observability §1",
        "Tool calls made at once are told apart.",
    ),
    "claude-worker:stream:signs-of-life": (
        "4-observability §2",
        "A heartbeat of a tool that runs is no sign of life, so that one that hangs looks like one; thinking is.",
    ),
    "claude-worker:stream:text": (
        '7-runtimes "claude-code"',
        "What it says becomes text, result, session and context use.",
    ),
    "claude-worker:stream:thinking": (
        "4-observability §1",
        "Its thinking is told as such.",
    ),
    "claude-worker:stream:tools": (
        "4-observability §1",
        "Its tools begin and end with their output, exit code and duration.",
    ),
    "claude-worker:stream:turn-has-an-end": (
        '7-runtimes "claude-code"',
        "A turn of the real program is over at its last line, and not before its last result.",
    ),
    "claude-worker:stream:unknown-events": (
        '7-runtimes "claude-code"',
        "An unknown event is told by its name, once.",
    ),
    "claude-worker:turn:dies-in-the-middle": (
        "2-lifecycle §5",
        "A program that dies in its turn leaves an error with its last words.",
    ),
    "claude-worker:turn:repaired": (
        '7-runtimes "claude-code"',
        "A further turn after the program died in a call tells the model that its outcome is unknown.",
    ),
    "claude-worker:turn:version-without-states": (
        '7-runtimes "claude-code"',
        "A version that tells of no states is done with its first result.",
    ),
    "claude-worker:turn:waits-for-background-agents": (
        "2-lifecycle §5",
        "A turn is not over while an agent of its own works in the background.",
    ),
    "claude-worker:usage:resumed-session": (
        "2-lifecycle §9",
        "A further turn counts on, and another attempt's session is not counted twice.",
    ),
    "claude-worker:usage:totals-and-cost": (
        "2-lifecycle §9",
        "Usage grows while it works and ends with the program's own account.",
    ),
    "claude-worker:usage:unknown-cost": (
        '7-runtimes "claude-code"',
        "A cost that the program guessed is unknown.",
    ),
}

CLI: Final[Lines] = {
    "cli:attach:follows": (
        '7-runtimes "subagents attach"',
        "Who is attached follows a run that somebody else started in the session.",
    ),
    "cli:attach:pipe": (
        '7-runtimes "subagents attach"',
        "Lines from a pipe are messages, and its end waits for the work.",
    ),
    "cli:attach:terminal": (
        '7-runtimes "subagents attach"',
        "On a terminal messages go into the turn and over to the next run; leaving leaves the work going on.",
    ),
    "cli:continue": (
        "5-surfaces §2",
        "Subagents continue goes on with a run, waits like run, and has its exit codes.",
    ),
}

CODEX: Final[Lines] = {
    "codex:approvals": (
        '7-runtimes "codex"',
        "Codex's requests are answered: tools of MCP servers approved, all else declined.",
    ),
    "codex:cost": (
        "2-lifecycle §9",
        "With prices the tokens of Codex have a cost, without them it is unknown.",
    ),
    "codex:errors": (
        "2-lifecycle §5",
        "Refusals, limits, retries and a program that is gone are told as what they are.",
    ),
    "codex:interrupt": (
        "2-lifecycle §10",
        "An interrupted turn of Codex is over and keeps what was said.",
    ),
    "codex:options": (
        "5-surfaces §2",
        "Options of a Codex agent become Codex's own keys, and wrong ones are refused by name.",
    ),
    "codex:resume": (
        "2-lifecycle §5",
        "A further turn goes on with Codex's thread and counts what is its own.",
    ),
    "codex:scope": (
        "2-lifecycle §8",
        "A tool scope of Codex is enforced by its own switches, or refused.",
    ),
    "codex:start": (
        '7-runtimes "codex"',
        "Codex begins with our tools, the run's instructions, and the user's own.",
    ),
    "codex:steer": (
        "2-lifecycle §10",
        "A message goes into Codex's turn, and is known to be taken or not.",
    ),
    "codex:stream:every-event-known": (
        '7-runtimes "codex"',
        "Every event that the real Codex wrote is decoded, and one of another version is named.",
    ),
    "codex:stream:never-raises": (
        '7-runtimes "codex"',
        "No stream of Codex, whole or damaged, raises.",
    ),
    "codex:stream:plan": (
        "4-observability §1",
        "The plan of Codex is the worker's plan.",
    ),
    "codex:stream:sub-agents-are-others": (
        '7-runtimes "codex"',
        "Codex's own sub-agents end no turn of ours, and their tokens count.",
    ),
    "codex:stream:text": (
        "4-observability §1",
        "A turn of Codex becomes text, thinking, usage, context and one result.",
    ),
    "codex:stream:tools": (
        "4-observability §1",
        "Commands, patches and MCP calls of Codex have a begin, an end, a duration and a failure.",
    ),
}

CONFIG: Final[Lines] = {
    "config:runtime-options": (
        "7-runtimes; 5-surfaces §5",
        "What is a runtime's own to understand is a free table of the agent: it reaches the runtime whole, merges key by key with its origins, and an option in the wrong place is refused with the right one.",
    ),
    "config:thinking": (
        "7-runtimes",
        "An agent's thinking level is that of its runs that name none.",
    ),
}

CONVERSATION: Final[Lines] = {
    "conversation:adopt:goes-on": (
        "2-lifecycle §11",
        "A new daemon goes on with a conversation without asking or telling twice.",
    ),
    "conversation:discard:checkpoint": (
        "4-observability §1",
        "What was let go of a conversation is not needed to go on with it.",
    ),
    "conversation:end:middle-of-a-turn": (
        "2-lifecycle §5",
        "A program that ends in the middle of its turn is an error with its last words.",
    ),
    "conversation:end:program-that-stays": (
        '7-runtimes "The shim"',
        "A program that stays after its turn is ended and did well.",
    ),
    "conversation:interrupt:turn": (
        "2-lifecycle §10",
        "An interrupted turn ends, and its children with the attempt.",
    ),
    "conversation:post:crash": (
        "2-lifecycle §12",
        "A line for a worker that a crash cut in two is completed and never doubled.",
    ),
    "conversation:post:torn-log": (
        "2-lifecycle §12",
        "A line whose log entry was cut was never sent, and is sent anew.",
    ),
    "conversation:resume:next-turn": (
        "2-lifecycle §5",
        "A further turn is a new process in the same session of the program.",
    ),
    "conversation:resume:no-session": (
        "2-lifecycle §5",
        "A turn without a session to go on with is refused.",
    ),
    "conversation:resume:not-cleaned-up": (
        "2-lifecycle §12",
        "Cleaning up after a turn, also once more after a crash, leaves the next turn alone.",
    ),
    "conversation:steer:after-the-end": (
        "2-lifecycle §10",
        "A message after the turn is refused, so that it waits for the next one.",
    ),
    "conversation:steer:taken-once": (
        "2-lifecycle §10",
        "A message is put into the turn once, however often it is sent.",
    ),
    "conversation:stream:garbage": (
        '7-runtimes "The shim"',
        "Garbage on a program's stream is told and stops nobody.",
    ),
    "conversation:turn:whole": (
        '7-runtimes "The shim"',
        "A turn is asked, answered and its program ended.",
    ),
    "conversation:worker:killed": (
        "2-lifecycle §10",
        "A killed program leaves nothing of its own behind.",
    ),
}

COURIERS: Final[Lines] = {
    "couriers:webhook:answers": (
        "seed 004 part 2",
        "Each refusal of a receiver is for now or for good.",
    ),
    "couriers:webhook:delivered-once": (
        "2-lifecycle §7",
        "What a receiver refuses for now is tried again and arrives once.",
    ),
    "couriers:webhook:document": (
        "2-lifecycle §7",
        "What is posted names the run, its outcome and its thread.",
    ),
    "couriers:webhook:retry-after": (
        "seed 004 part 5",
        "The next try is not before the receiver said.",
    ),
    "couriers:webhook:signed": (
        "2-lifecycle §7",
        "A receiver can prove who sent it and when; nothing is sent unsigned where a secret is asked for.",
    ),
}

DOCTOR: Final[Lines] = {
    "doctor:agents:llm": (
        '7-runtimes "llm"',
        "An agent of our own loop without its library or its key is told what to install and what to set.",
    ),
    "doctor:agents:login": (
        "5-surfaces §1, §5",
        "A program nobody is logged in to is warned of with the command to log in; the agent's own environment counts.",
    ),
    "doctor:agents:options": (
        "5-surfaces §5",
        "Options with which no attempt could start are said before one does.",
    ),
    "doctor:agents:probe": (
        "7-runtimes; decision 0025",
        "A broken claim of the installed version is shown, one of another version is not.",
    ),
    "doctor:agents:program": (
        "5-surfaces §5",
        "A program that is not there is said with how to install it.",
    ),
    "doctor:agents:scope": (
        "5-surfaces §5; 2-lifecycle §8",
        "Tools that nothing can enforce are said before a spawn is refused.",
    ),
    "doctor:agents:unknown-runtime": (
        "5-surfaces §5",
        "An agent whose runtime cannot be used here is told which ones can.",
    ),
    "doctor:agents:version": (
        "5-surfaces §5",
        "A program that does not say its version is left after some seconds with all its children.",
    ),
    "doctor:agents:well": (
        "5-surfaces §5",
        "An agent that is well is one line with its program and version.",
    ),
    "doctor:traps:node": (
        "7-runtimes",
        "A Node that is too old for a program is named with the one it needs.",
    ),
    "doctor:traps:placeholder": (
        "7-runtimes",
        "A placeholder that npm left is said to be one.",
    ),
    "doctor:traps:relaunch": (
        '7-runtimes "acp"',
        "A Gemini that may start itself again is warned of.",
    ),
    "doctor:traps:root": (
        '7-runtimes "claude-code"',
        "Bypassed permissions as root are refused by doctor before Claude Code refuses them.",
    ),
}

FIELD: Final[Lines] = {
    "field:out-of-scope-edits": (
        '8-field-failures "dev-loops #1448"',
        "Deleted files and edits outside the contract are named in the result and the verdict.",
    ),
    "field:provider-limits": (
        '8-field-failures "provider limits"',
        "A refusal stops the herd, is waited for as asked, and is no failure.",
    ),
}

FOLLOWUPS: Final[Lines] = {
    "followups:bounded": (
        "2-lifecycle §5",
        "An agent that spawns in every turn comes to an end with what there is.",
    ),
    "followups:each-has-news": (
        "2-lifecycle §5",
        "Each turn that spawns gets one more, and none comes without news.",
    ),
    "followups:paused": (
        "2-lifecycle §10",
        "A pause holds every follow-up turn.",
    ),
}

GIT: Final[Lines] = {
    "git:bounded": (
        '7-runtimes "isolation"',
        "Git that hangs is ended and named.",
    ),
    "git:missing": (
        "2-lifecycle §2",
        "A machine without git refuses the worktree and says so.",
    ),
    "git:no-hooks": (
        '7-runtimes "isolation"',
        "Hooks of a repository are not run by the daemon.",
    ),
    "git:own-environment": (
        '7-runtimes "isolation"',
        "Variables of the daemon do not redirect git.",
    ),
}

INIT: Final[Lines] = {
    "init:login": (
        "5-surfaces §1",
        "Whether somebody is logged in is seen in a program's own file or a variable without starting it; else the file says how to log in, and no key is written down.",
    ),
    "init:placeholder": (
        "5-surfaces §1",
        "What npm leaves in place of a program is not taken for it.",
    ),
}

INTERRUPT: Final[Lines] = {
    "interrupt:beaten-by-cancel": (
        "2-lifecycle §10",
        "A cancel behind an interruption makes it cancelled.",
    ),
    "interrupt:before-start": (
        "2-lifecycle §5",
        "An interruption before the start is kept when nothing starts.",
    ),
    "interrupt:children": (
        "2-lifecycle §5",
        "What an interrupted run spawned is cancelled and brings it no further turn.",
    ),
    "interrupt:politely-then-stop": (
        "7-runtimes; 2-lifecycle §5",
        "An interruption asks politely and then stops; however it ends it is partial with its last words.",
    ),
    "interrupt:then-message": (
        "2-lifecycle §10",
        "What was said to it since its interruption is taken up in a further turn.",
    ),
}

ISOLATION: Final[Lines] = {
    "isolation:announcement": (
        '7-runtimes "isolation"',
        "The announcement has the changes of the worktree in one line.",
    ),
    "isolation:artifact-keeps": (
        '7-runtimes "isolation"',
        "A worktree stays for an artifact that git ignores.",
    ),
    "isolation:clean-removed": (
        '7-runtimes "isolation"',
        "A worktree without changes is gone when its run is over.",
    ),
    "isolation:configuration": (
        "5-surfaces §5",
        "What follows a run in a worktree has the configuration of the project, also of files that are not in git.",
    ),
    "isolation:continued": (
        "2-lifecycle §5",
        "A run that goes on with a session works in the same worktree.",
    ),
    "isolation:contract": (
        "2-lifecycle §6",
        "A contract is checked in the worktree.",
    ),
    "isolation:kill": (
        "2-lifecycle §11",
        "A killed daemon goes on with runs in their worktrees.",
    ),
    "isolation:kill:while-spawning": (
        "2-lifecycle §11",
        "A daemon killed while it makes worktrees makes each of them once.",
    ),
    "isolation:out-of-scope": (
        '8-field-failures "dev-loops #1448"',
        "The verdict names deleted files and what else changed.",
    ),
    "isolation:receipt": (
        '7-runtimes "isolation"',
        "The receipt names branch and path of the worktree.",
    ),
    "isolation:refused": (
        "2-lifecycle §2",
        "A directory without a repository is refused and nothing is stored.",
    ),
    "isolation:result": (
        '7-runtimes "isolation"',
        "The result lists the worktree with its diff stat.",
    ),
    "isolation:retry": (
        "2-lifecycle §4",
        "A retry after a timeout starts from the same base and keeps the work before.",
    ),
    "isolation:retry-by-hand": (
        "2-lifecycle §2",
        "Starting again by hand takes the directory that was asked for.",
    ),
    "isolation:start-failed": (
        "2-lifecycle §4",
        "A worktree that cannot be made fails the attempt with the reason.",
    ),
    "isolation:unavailable": (
        "2-lifecycle §2",
        "An engine without worktrees refuses them.",
    ),
    "isolation:vacuous": (
        "2-lifecycle §6",
        "A contract that the last commit meets is marked vacuous when the worktree is made.",
    ),
}

LIMITS: Final[Lines] = {
    "limits:gate:bounded": (
        '8-field-failures "provider limits"',
        "No provider closes a gate for longer than a run would wait.",
    ),
    "limits:gate:doubles": (
        '8-field-failures "provider limits"',
        "A refusal after the wait doubles the next one.",
    ),
    "limits:gate:lane-goes-on": (
        '8-field-failures "provider limits"',
        "Runs of other providers overtake those that wait in the same lane.",
    ),
    "limits:gate:learns-from-live": (
        '8-field-failures "provider limits"',
        "What a live attempt is told by its provider holds for all that would start.",
    ),
    "limits:gate:no-herd": (
        '8-field-failures "provider limits"',
        "While a provider refuses no new attempt asks it, and then one goes first.",
    ),
    "limits:gate:one-series": (
        '8-field-failures "provider limits"',
        "Refusals while a gate is closed are one and can only make it longer.",
    ),
    "limits:gate:probe-refused": (
        '8-field-failures "provider limits"',
        "A probe that is refused keeps the others waiting for longer.",
    ),
    "limits:live:shown": (
        "4-observability §3",
        "A live attempt whose program waits for its provider says so with the time left.",
    ),
    "limits:live:told-by-another": (
        '8-field-failures "provider limits"',
        "A live attempt that waits because another one was refused says so, and holds nobody up.",
    ),
    "limits:not-a-failure": (
        '8-field-failures "provider limits"',
        "A refusal by the provider is counted neither as a retry nor as a failure.",
    ),
    "limits:provider:key": (
        '8-field-failures "provider limits"',
        "Another key or runtime is another limit, and no key is kept.",
    ),
    "limits:provider:named": (
        '8-field-failures "provider limits"',
        "A provider is named by its address, else by its name.",
    ),
    "limits:provider:unknown": (
        '8-field-failures "provider limits"',
        "A program of which nothing is known shares limits with its own agent.",
    ),
    "limits:resume:no-session": (
        '7-runtimes "llm"',
        "A program without sessions is given the whole task again after a refusal.",
    ),
    "limits:resume:same-session": (
        '7-runtimes "llm"',
        "A run that its provider refused goes on in its own session with a short prompt.",
    ),
    "limits:status:shown": (
        "4-observability §3",
        "Status, why and list say which provider a queued run waits for and until when.",
    ),
    "limits:wait:backoff": (
        '8-field-failures "provider limits"',
        "Without Retry-After waits double from 15 s up to 5 minutes.",
    ),
    "limits:wait:bounded": (
        '8-field-failures "provider limits"',
        "After six hours of refusals in a row the run ends with the reason.",
    ),
    "limits:wait:cancel": (
        "2-lifecycle §10",
        "A run that waits for its provider can be cancelled.",
    ),
    "limits:wait:deadline": (
        "2-lifecycle §5",
        "The deadline of a refused attempt holds while its run waits and after it.",
    ),
    "limits:wait:restart": (
        "2-lifecycle §11",
        "A wait for the provider survives a crash.",
    ),
    "limits:wait:retry-after": (
        '8-field-failures "provider limits"',
        "A refused run waits as long as the provider asks for.",
    ),
    "limits:wait:too-long": (
        '8-field-failures "provider limits"',
        "A provider that asks for longer than we wait ends the run at once.",
    ),
    "limits:words": (
        "4-observability §3",
        "A refusal names its provider and status.",
    ),
}

LLM: Final[Lines] = {
    "llm:cancel": (
        "2-lifecycle §10",
        "A cancelled run leaves no child of its shell, also in a session of its own.",
    ),
    "llm:continue": (
        "7-runtimes",
        "A message to an ended run starts one that goes on in a copy of its conversation and counts what it uses itself.",
    ),
    "llm:cost": (
        "4-observability §1",
        "The cost of a model in the price list is counted; of any other, and at an address of one's own, it is unknown.",
    ),
    "llm:daemon-killed": (
        "2-lifecycle §11",
        "A killed daemon is not noticed by the worker: one attempt, and the model is asked nothing twice.",
    ),
    "llm:events:small": (
        "4-observability §1",
        "However long the arguments of a tool and an answer are, each event stays one that is read as such.",
    ),
    "llm:faults": (
        '7-runtimes "llm"',
        "Server errors and broken connections are tried again three times.",
    ),
    "llm:faults:refused": (
        '7-runtimes "llm"',
        "A refused request is not repeated and ends the turn with the provider's words.",
    ),
    "llm:followup": (
        "2-lifecycle §5",
        "The results of children come in a further turn of the same conversation.",
    ),
    "llm:interrupt": (
        "7-runtimes",
        "An interrupt ends what is under way, a command, a request or a wait, and keeps the conversation.",
    ),
    "llm:interrupt:daemon": (
        "2-lifecycle §10",
        "An interrupted run ends partial with its last words and no process.",
    ),
    "llm:key": (
        '7-runtimes "The shim"',
        "The provider's key is in no file of the daemon, and not in the worker's commands.",
    ),
    "llm:key:one": (
        '7-runtimes "The shim"',
        "A worker gets the key of its provider and no other.",
    ),
    "llm:limits:back-off": (
        '7-runtimes "llm"',
        "Without Retry-After the wait doubles per refused probe up to a minute; with it the wait is never shortened; refusals at once count once.",
    ),
    "llm:limits:daemon": (
        '7-runtimes "llm"',
        "Eight runs wait out a refusing provider in one attempt each, and all end well.",
    ),
    "llm:limits:date": (
        '7-runtimes "llm"',
        "A date, and a fraction of seconds, in Retry-After are understood.",
    ),
    "llm:limits:fingerprint": (
        '7-runtimes "llm"',
        "Who shares a provider's limit is named by a hash of provider, address and key.",
    ),
    "llm:limits:old": (
        '7-runtimes "llm"',
        "A refusal long ago, and a broken file, keep nobody from asking.",
    ),
    "llm:limits:one-probe": (
        '7-runtimes "llm"',
        "When the time of a limit has passed one worker asks and the others wait for what it finds; one that dies leaves it to the next.",
    ),
    "llm:limits:open": (
        '7-runtimes "llm"',
        "Where nothing is known of a limit everybody asks at once.",
    ),
    "llm:limits:patience": (
        '7-runtimes "llm"',
        "A wait beyond the configured patience ends the turn as a limit, with the time to wait.",
    ),
    "llm:limits:shared": (
        '7-runtimes "llm"',
        "Eight workers of one key wait together and ask a refusing provider little; all end well.",
    ),
    "llm:limits:waits": (
        '7-runtimes "llm"',
        "429, 503 and 529 with Retry-After are waited for, said, and no failure.",
    ),
    "llm:max-turns": (
        '7-runtimes "llm"',
        "Too many requests end the turn as an error with what was said.",
    ),
    "llm:model": (
        '7-runtimes "llm"',
        "A model names its provider, or the options do; one of nobody is refused with an example.",
    ),
    "llm:options": (
        "5-surfaces",
        "An option that could never work is refused by name.",
    ),
    "llm:packages": (
        "5-surfaces",
        "Missing packages are said with the command that installs them.",
    ),
    "llm:scope": (
        "2-lifecycle §8",
        "A shell denied to a run under another program's name is not there, nor in a child that it spawns.",
    ),
    "llm:scope:construction": (
        "2-lifecycle §8",
        "A tool outside of the scope is not made: the model is not told of it and cannot call it.",
    ),
    "llm:scope:kinds": (
        "2-lifecycle §8",
        "A scope holds by what tools do, under every name that other programs have for them.",
    ),
    "llm:scope:unknown": (
        "2-lifecycle §8",
        "A scope that allows a tool which the runtime does not have is refused by name.",
    ),
    "llm:session:files": (
        "7-runtimes",
        "A conversation is a file of its attempt; another attempt begins with a copy; no other path can be named.",
    ),
    "llm:session:history": (
        "7-runtimes",
        "A further turn has the whole conversation, and goes on counting what the attempt used.",
    ),
    "llm:session:killed": (
        "7-runtimes",
        "A killed worker is gone on with, and its open calls are told as unknown.",
    ),
    "llm:session:named": (
        "7-runtimes",
        "The session is on record.",
    ),
    "llm:session:unreadable": (
        "7-runtimes",
        "A conversation that cannot be read is an error that names its file.",
    ),
    "llm:settings": (
        '7-runtimes "llm"',
        "The client libraries never try again by themselves; a thinking level and a temperature go to the model.",
    ),
    "llm:steer": (
        "7-runtimes",
        "A message goes into the next request and is acknowledged once.",
    ),
    "llm:steer:daemon": (
        "2-lifecycle §10",
        "A message to a run is heard in the turn that is under way.",
    ),
    "llm:steer:last": (
        "7-runtimes",
        "A message that comes during the last answer is answered before the turn ends.",
    ),
    "llm:stream": (
        "4-observability §1",
        "Of a recorded turn tools, text, usage and result are heard, and nothing twice.",
    ),
    "llm:stream:error": (
        "4-observability §1",
        "An error of the provider is said once.",
    ),
    "llm:stream:fuzz": (
        "7-runtimes",
        "Broken streams are heard without an error, and a stream folded twice is the same.",
    ),
    "llm:stream:limit": (
        "4-observability §1",
        "A limit is an error of the provider; only the end of patience is a result that says so.",
    ),
    "llm:stream:messages": (
        "7-runtimes",
        "A message is one line with its key, and known to be taken when the worker says so.",
    ),
    "llm:stream:unfinished": (
        "2-lifecycle §5",
        "A stream that breaks off is an error with the last words.",
    ),
    "llm:task:ask": (
        '3-tools "For workers"',
        "It asks its requester and works with the answer.",
    ),
    "llm:task:command": (
        '7-runtimes "llm"',
        "It runs a command and its model sees what came out.",
    ),
    "llm:task:edit": (
        '7-runtimes "llm"',
        "It writes the file that its contract asks for.",
    ),
    "llm:task:no-deliverable": (
        "2-lifecycle §6",
        "Saying done without the deliverable is a failed verification.",
    ),
    "llm:task:spawn": (
        "3-tools",
        "It spawns a child and waits for its result.",
    ),
    "llm:terminated": (
        '7-runtimes "The shim"',
        "A terminated worker takes its commands with it.",
    ),
    "llm:thinking": (
        '7-runtimes "llm"',
        "A thinking level is one that providers share; another is refused.",
    ),
    "llm:tools:arguments": (
        '7-runtimes "llm"',
        "Wrong arguments are said to the model by name; numbers in text are numbers.",
    ),
    "llm:tools:bounds": (
        '7-runtimes "llm"',
        "No file tool leaves the working directory, by dots, whole paths, links or links made before a write.",
    ),
    "llm:tools:edit": (
        '7-runtimes "llm"',
        "An edit replaces text that is there once, or all of it when asked, and refuses anything else.",
    ),
    "llm:tools:grep": (
        '7-runtimes "llm"',
        "A search is limited in matches and in time, takes a glob, and names what is wrong with an expression.",
    ),
    "llm:tools:read": (
        '7-runtimes "llm"',
        "Reading numbers the lines, is limited, and refuses at once what is no text file.",
    ),
    "llm:tools:shell": (
        '7-runtimes "llm"',
        "A command runs in the working directory, without input, and gives both streams and the exit code.",
    ),
    "llm:tools:shell:background": (
        '7-runtimes "llm"',
        "What a command leaves in the background does not hold it up, and ends with the turn.",
    ),
    "llm:tools:shell:cut": (
        '7-runtimes "llm"',
        "Of a long output the beginning and the end are kept, and how much is left out is said.",
    ),
    "llm:tools:shell:key": (
        '7-runtimes "The shim"',
        "A command does not get the provider's key.",
    ),
    "llm:tools:shell:killed": (
        '7-runtimes "llm"',
        "A command over its time, or cancelled, is killed with all it started, also in sessions of their own.",
    ),
    "llm:tools:write": (
        '7-runtimes "llm"',
        "Writing makes directories, replaces a file whole, and keeps its permissions.",
    ),
    "llm:unset-key": (
        "5-surfaces",
        "A missing key or an unknown provider is said with the way out.",
    ),
    "llm:usage": (
        "4-observability §1",
        "What a run used is counted, and its cost unknown when nobody knows it; each thing said is in the log once.",
    ),
    "llm:window": (
        '7-runtimes "llm"',
        "A full window is made room in by shortening old outputs of tools.",
    ),
    "llm:wires": (
        '7-runtimes "llm"',
        "It works with its tools on Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini, and prints each tool, text, thought, usage and context.",
    ),
}

PLUGINS: Final[Lines] = {
    "plugins:doctor": (
        "7-runtimes; 5-surfaces §5",
        "Doctor names a plugin that cannot be loaded, and everything else goes on.",
    ),
    "plugins:loaded": (
        "7-runtimes",
        "A runtime of an installed package is there beside ours under its entry point's name.",
    ),
    "plugins:named-in-configuration": (
        "7-runtimes",
        "An agent may name the runtime of an installed package; a near miss is suggested, and the schema takes it.",
    ),
    "plugins:refused": (
        "7-runtimes",
        "A plugin that fails, does not fit, has a name of ours or shares one is left out with its reason, and the others are loaded.",
    ),
}

PROBE: Final[Lines] = {
    "probe:apart": (
        "7-runtimes",
        "A probe works in a temporary directory and leaves nothing but its finding.",
    ),
    "probe:asked": (
        "7-runtimes",
        "Nothing is run when nobody could be asked and no flag was given.",
    ),
    "probe:claude-code": (
        '7-runtimes "claude-code"',
        "The real Claude Code is probed: it keeps to a scope although its model calls the denied tool by name, goes on with its session and takes a message.",
    ),
    "probe:refused": (
        "7-runtimes",
        "What claims nothing, is not configured or is asked by a worker is not probed, and the refusal says why.",
    ),
    "probe:scope:broken": (
        '8-field-failures "GENesis-AGI PR #1391"; decision 0025',
        "A denied tool that worked refuses every spawn with a scope, naming the probe, until another version is installed.",
    ),
    "probe:scope:open": (
        "decision 0025",
        "A worker that does not try proves nothing.",
    ),
    "probe:scope:proven": (
        '8-field-failures "spool #121"; decision 0025',
        "A worker that made a file when it might and none when its tools were denied is proven to keep to a scope, and its scoped spawns are not warned of any more.",
    ),
    "probe:state": (
        "5-surfaces §5",
        "A file of findings that cannot be read is named by doctor with the way out.",
    ),
}

PYTHON: Final[Lines] = {
    "python:sessions": (
        "5-surfaces §3",
        "In Python a session is interrupted and gone on with.",
    ),
}

REAL: Final[Lines] = {
    "real:codex:follow-up": (
        "2-lifecycle §5",
        "The end of a child is a further turn in the same session of the real Codex.",
    ),
    "real:codex:gone": (
        "2-lifecycle §10",
        "Two seconds after a cancel or an interrupt no process of the real Codex is left.",
    ),
    "real:codex:leaves-config": (
        '7-runtimes "codex"',
        "The user's own configuration of Codex is never written to.",
    ),
    "real:codex:limit": (
        '8-field-failures "provider limits"',
        "A provider that takes no more makes a run of Codex wait and not fail.",
    ),
    "real:codex:no-token-on-disk": (
        '6-house-style "Security"',
        "The worker's token is in no file and no argument, and its tools find it.",
    ),
    "real:codex:not-logged-in": (
        '7-runtimes "codex"',
        "Nobody logged in is an error with the way out.",
    ),
    "real:codex:sandbox": (
        '7-runtimes "codex"',
        "Commands of the real Codex write where they work and have no network.",
    ),
    "real:codex:scope": (
        "2-lifecycle §8",
        "A denied tool is neither shown to the real Codex's model nor works.",
    ),
    "real:codex:tasks": (
        '7-runtimes "codex"',
        "The real Codex does every task of the runtime table.",
    ),
    "real:install:pinned": (
        "7-runtimes",
        "Real programs are installed in pinned versions, and another version is none.",
    ),
}

RECOVERY: Final[Lines] = {
    "recovery:unwritten-turn-stopped": (
        "2-lifecycle §11",
        "A turn that was started before a crash is stopped when it may not start any more.",
    ),
}

REDACT: Final[Lines] = {
    "redact:own-program": (
        "4-observability §1",
        "A key that a runtime lets through by itself is a secret of its runs, whatever its shape.",
    ),
}

RUNTIME: Final[Lines] = {
    "runtime:discard": (
        "7-runtimes",
        "Output that is kept elsewhere can be let go, and the attempt's end is still known.",
    ),
    "runtime:forget": (
        "7-runtimes",
        "Forgetting an attempt leaves no file and can be repeated.",
    ),
    "runtime:interrupt": (
        "2-lifecycle §10",
        "An interrupted turn ends, or is refused as the abilities say.",
    ),
    "runtime:never-started": (
        "7-runtimes",
        "An attempt that was never started is seen to be gone.",
    ),
    "runtime:reads": (
        "7-runtimes",
        "What a worker says comes once and in order, with one terminal signal at the end.",
    ),
    "runtime:restart": (
        "7-runtimes",
        "Reading again from any point gives the rest, without a gap or an echo.",
    ),
    "runtime:resume": (
        "2-lifecycle §10",
        "A further turn goes on in the worker's session, or is refused as the abilities say.",
    ),
    "runtime:scope": (
        "2-lifecycle §8",
        "A denied tool is not used, and works where it is allowed.",
    ),
    "runtime:start-refused": (
        "7-runtimes",
        "What cannot start is refused with the reason and leaves nothing.",
    ),
    "runtime:start-repeated": (
        "7-runtimes",
        "Starting an attempt again adopts it: there is one worker.",
    ),
    "runtime:steer": (
        "2-lifecycle §10",
        "A message under one key reaches the worker once, or is refused as the abilities say.",
    ),
    "runtime:stop": (
        '7-runtimes "The shim"',
        "Stop ends every process of an attempt, returns when they are gone, and can be repeated.",
    ),
    "runtime:stop-first": (
        '7-runtimes "The shim"',
        "An attempt that was stopped before it started never works.",
    ),
    "runtime:suite-can-fail": (
        "7-runtimes",
        "A runtime that breaks a promise is found out by the suite.",
    ),
    "runtime:survives": (
        '7-runtimes "The shim"',
        "A new daemon adopts a live worker and goes on reading.",
    ),
}

RUNTIMES: Final[Lines] = {
    "runtimes:jsonrpc:reads-every-line": (
        '7-runtimes "codex", "acp"',
        "Every line of a JSON-RPC program is read as a value, never as an exception.",
    ),
    "runtimes:jsonrpc:writes-with-or-without-version": (
        '7-runtimes "codex", "acp"',
        "JSON-RPC lines are written with or without their version.",
    ),
    "runtimes:same-tasks": (
        "7-runtimes",
        "Every runtime does the same tasks: edit, command, ask, spawn, no deliverable, steer, interrupt, cancel, resume, scope, usage, daemon killed.",
    ),
    "runtimes:table-in-docs": (
        "7-runtimes",
        "The docs have a row for every program and a column for everything that was tried.",
    ),
    "runtimes:three-vendors": (
        "1-product",
        "A caller of one vendor gets each result of workers of two others once, over a kill of a worker and of the daemon.",
    ),
}

SALVAGE: Final[Lines] = {
    "salvage:crash-while-looking": (
        "2-lifecycle §11",
        "A crash while it is looked what an attempt left does not lose its end.",
    ),
    "salvage:last-words:bounded": (
        "2-lifecycle §7",
        "Last words are the end of what was said, at most 4,000 characters.",
    ),
    "salvage:last-words:deadline": (
        "2-lifecycle §5",
        "A run that met its deadline keeps its last words and the files of its contract.",
    ),
    "salvage:last-words:every-end": (
        "2-lifecycle §5",
        "Last words are kept whatever ended the run.",
    ),
    "salvage:last-words:only-without-result": (
        "2-lifecycle §7",
        "A run with a result has no last words besides.",
    ),
    "salvage:last-words:redacted": (
        "4-observability §1",
        "Last words hold no secret.",
    ),
    "salvage:timeout": (
        "2-lifecycle §5",
        "A run that timed out keeps its output and the files of its contract.",
    ),
}

SCRIPTED: Final[Lines] = {
    "scripted:continued": (
        '7-runtimes "scripted"',
        "A scripted run that goes on plays its own steps or answers with its message.",
    ),
}

SESSIONS: Final[Lines] = {
    "sessions:archived": (
        'seed 001 "Two Spawn Modes"',
        "A session outlives the archiving of its run.",
    ),
    "sessions:continue:contract": (
        "2-lifecycle §6",
        "A contract that was not met goes on to hold, one that was met does not.",
    ),
    "sessions:continue:depth": (
        "2-lifecycle §2 (3)",
        "Going on with a deep session brings it no nearer to the top.",
    ),
    "sessions:continue:never-wider": (
        "2-lifecycle §8",
        "A continuation keeps the scope of the run before and can only narrow it.",
    ),
    "sessions:continue:new-run": (
        '2-lifecycle §2, §10; 3-tools sessions_send; seed 001 "Two Spawn Modes"',
        "A message to a session in which nobody works is a new run that goes on with it, with its own result and announcement.",
    ),
    "sessions:continue:newest": (
        "3-tools sessions_send",
        "An old id, label or session key reaches the newest run of its session.",
    ),
    "sessions:continue:once": (
        "2-lifecycle §2",
        "The same key is one message, whether it was told to a run or started one.",
    ),
    "sessions:continue:one-at-a-time": (
        "2-lifecycle §12 (2)",
        "Messages to a session at once are one run, and messages to that.",
    ),
    "sessions:continue:refused": (
        "2-lifecycle §10",
        "What cannot be gone on with says why and what to do instead.",
    ),
    "sessions:continue:salvage": (
        '2-lifecycle §10; seed 002 "Retry"',
        "Failed, late, cancelled and interrupted runs are gone on with.",
    ),
    "sessions:continued-by": (
        "2-lifecycle §12 (2)",
        "Every ended run can learn who goes on with it, in the commit that stores that run.",
    ),
    "sessions:deadline-warning": (
        "2-lifecycle §5",
        "At 90 % of its deadline a worker is told to finish and report what it has.",
    ),
    "sessions:inherited": (
        "2-lifecycle §2",
        "What a continuation does not say is as in the run before.",
    ),
    "sessions:interrupt": (
        '7-runtimes "interrupt"; seed 003 §2',
        "An interrupted run keeps its last words, cancels what it spawned, and says when its runtime cannot.",
    ),
    "sessions:native": (
        '7-runtimes "Agents whose resume works"',
        "The session is what the worker's program called it last.",
    ),
    "sessions:real-program": (
        '7-runtimes "Agents whose resume works"',
        "A real program goes on with its own session from run to run, after an interruption, a cancel and a restart.",
    ),
    "sessions:tool": (
        "3-tools sessions_send, subagents",
        "By tool an ended child takes a followup and a live one an interrupt, below the caller only.",
    ),
}

SUPERVISOR: Final[Lines] = {
    "supervisor:cancel-turn": (
        "seed 003 §2 cancel_turn",
        "A turn is cancelled and the agent goes on with the next message.",
    ),
}

THREADS: Final[Lines] = {
    "threads:conversation": (
        '2-lifecycle §7; seed 001 "Two Spawn Modes"',
        "A conversation outside goes on over many runs and a killed daemon.",
    ),
    "threads:kept": (
        "2-lifecycle §11",
        "The session of a thread is never archived.",
    ),
    "threads:live": (
        "2-lifecycle §10",
        "What is written while the session works goes into its turn.",
    ),
    "threads:once": (
        "2-lifecycle §7",
        "A message of the conversation that comes twice is one.",
    ),
    "threads:refused": (
        "2-lifecycle §2 (1)",
        "What cannot be written into a thread is refused with the reason.",
    ),
    "threads:whoever-goes-on": (
        "2-lifecycle §7",
        "The thread hears of a run of its session that somebody started elsewhere.",
    ),
}

TRUST: Final[Lines] = {
    "trust:runtime-options": (
        "5-surfaces §1; decision 0012",
        "A project's file cannot change which program a user's agent starts, nor its thinking level, for callers that are agents.",
    ),
}

WORKTREE: Final[Lines] = {
    "worktree:changes:deleted": (
        '8-field-failures "dev-loops #1448"',
        "Changes name deleted files first, whether committed or not.",
    ),
    "worktree:changes:ignored": (
        '7-runtimes "isolation"',
        "Files that git ignores keep a worktree, caches of known tools do not.",
    ),
    "worktree:changes:names": (
        '7-runtimes "isolation"',
        "A file with any name is counted and can be sent as text.",
    ),
    "worktree:in-the-way": (
        '7-runtimes "isolation"',
        "Nothing that lies in the way of a worktree is overwritten.",
    ),
    "worktree:kept:changes": (
        '7-runtimes "isolation"',
        "A worktree with changes is kept.",
    ),
    "worktree:kept:commits": (
        '7-runtimes "isolation"',
        "A worktree with commits is kept.",
    ),
    "worktree:made:half": (
        "2-lifecycle §11",
        "A worktree that a crash left half made is made anew from the same commit.",
    ),
    "worktree:made:removed-by-hand": (
        '7-runtimes "isolation"',
        "A worktree that somebody removed comes back with its commits.",
    ),
    "worktree:made:same-subdirectory": (
        '7-runtimes "isolation"',
        "A run works in the same directory of the worktree as was asked for in the checkout.",
    ),
    "worktree:made:twice": (
        "2-lifecycle §12",
        "Making a worktree again changes nothing in it.",
    ),
    "worktree:of-a-worktree": (
        '7-runtimes "isolation"',
        "A worktree can be made of a worktree.",
    ),
    "worktree:plan:changes-nothing": (
        '7-runtimes "isolation"',
        "Planning a worktree at the spawn changes nothing.",
    ),
    "worktree:refused": (
        "2-lifecycle §2",
        "A directory of which no worktree can be made is refused with the way out.",
    ),
    "worktree:removed:clean": (
        '7-runtimes "isolation"',
        "A clean worktree is removed with its branch.",
    ),
    "worktree:repository-gone": (
        '7-runtimes "isolation"',
        "A repository that is gone is an error, and its worktree stays.",
    ),
    "worktree:retry:crash": (
        "2-lifecycle §11",
        "A crash while work is set aside does not replace what was kept.",
    ),
    "worktree:retry:goes-on": (
        "2-lifecycle §6",
        "An attempt that goes on finds the work as it was.",
    ),
    "worktree:retry:same-base": (
        "2-lifecycle §4",
        "A retry in a worktree begins from the same commit as the first attempt.",
    ),
    "worktree:retry:which-begin-afresh": (
        "2-lifecycle §4",
        "Only a retry of a failed attempt begins afresh.",
    ),
    "worktree:retry:work-kept": (
        "2-lifecycle §5",
        "The work of the attempt before is kept on a branch.",
    ),
    "worktree:several-at-once": (
        '7-runtimes "isolation"',
        "Several worktrees of one repository are made at once.",
    ),
    "worktree:sweep:pruned": (
        "2-lifecycle §11",
        "The worktree of a deleted run goes when it is clean and stays with its work.",
    ),
    "worktree:uncommitted:said": (
        "2-lifecycle §2",
        "Uncommitted changes that the worktree will not hold are said in the receipt.",
    ),
}

RUNTIME_PARTS: Final = (
    ACP,
    AGENTS,
    BRIDGE,
    CLAUDE_WORKER,
    CLI,
    CODEX,
    CONFIG,
    CONVERSATION,
    COURIERS,
    DOCTOR,
    FIELD,
    FOLLOWUPS,
    GIT,
    INIT,
    INTERRUPT,
    ISOLATION,
    LIMITS,
    LLM,
    PLUGINS,
    PROBE,
    PYTHON,
    REAL,
    RECOVERY,
    REDACT,
    RUNTIME,
    RUNTIMES,
    SALVAGE,
    SCRIPTED,
    SESSIONS,
    SUPERVISOR,
    THREADS,
    TRUST,
    WORKTREE,
)
"""Every part of this file."""
