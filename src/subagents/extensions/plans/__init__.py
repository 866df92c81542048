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
            Command("plan show", f"{COMMANDS}:show", "Show how a plan stands"),
            Command("plan wait", f"{COMMANDS}:wait", "Wait for a plan, print its results"),
            Command("plan cancel", f"{COMMANDS}:cancel", "Cancel what is left of a plan"),
            Command("plan retry", f"{COMMANDS}:retry", "Start what failed of a plan again"),
            Command("plan schema", f"{EXPANSION}:schema", "Print a plan's JSON Schema"),
            everyday("map", f"{EXPANSION}:map_", "Run a task for each of many items", spawns=True),
        )
    },
    parents={"plan": "Start many runs at once"},
    renamed={"plan dry-run": "plan run --dry-run"},
    topics={"plans": "subagents.extensions.plans.plan_topic:text"},
    plan_files="subagents.extensions.plans.plan_file:body_of",
    routes=("subagents.extensions.plans.plan_routes", "subagents.extensions.plans.graph_routes"),
)
