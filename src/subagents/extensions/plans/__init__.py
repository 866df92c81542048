"""Several runs as one: plan files, how they stand, and what waits for what."""

from subagents.extension import Command, Extension, everyday

COMMANDS = "subagents.extensions.plans.plan_commands"
EXPANSION = "subagents.extensions.plans.plan_expansion_commands"

extension = Extension(
    name="plans",
    commands={
        "Hand over work": (
            everyday("plan run", f"{COMMANDS}:run", "Start all runs of a file, or none"),
            Command("plan list", f"{COMMANDS}:list_", "List plans, newest first"),
            everyday("map", f"{EXPANSION}:map_", "Run a task for each of many items", spawns=True),
        )
    },
    parents={"plan": "Start many runs at once"},
    selectors={
        "show plan:": f"{COMMANDS}:show",
        "wait plan:": f"{COMMANDS}:wait",
        "cancel plan:": f"{COMMANDS}:cancel",
        "retry plan:": f"{COMMANDS}:retry",
    },
    renamed={
        "plan dry-run": "plan run --dry-run",
        "plan schema": "plan run --schema",
        "plan show": "show plan:",
        "plan wait": "wait plan:",
        "plan cancel": "cancel plan:",
        "plan retry": "retry --wait plan:",
    },
    retired={"--depends-on": "--after RUN"},
    topics={"plans": "subagents.extensions.plans.plan_topic:text"},
    plan_files="subagents.extensions.plans.plan_file:body_of",
    parts="subagents.extensions.plans.fan_outs:FanOuts",
    routes=("subagents.extensions.plans.plan_routes", "subagents.extensions.plans.graph_routes"),
)
