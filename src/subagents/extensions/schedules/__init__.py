"""Work that is started at its times."""

from subagents.extension import Command, Extension, everyday

COMMANDS = "subagents.extensions.schedules.schedule_commands"

extension = Extension(
    name="schedules",
    commands={
        "Hand over work": (
            everyday(
                "schedule add", f"{COMMANDS}:add", "Start a task or plan at its times", spawns=True
            ),
            Command("schedule list", f"{COMMANDS}:list_", "List schedules"),
            Command("schedule show", f"{COMMANDS}:show", "Show a schedule's times"),
            Command("schedule run-now", f"{COMMANDS}:run_now", "Start its work now"),
            Command("schedule pause", f"{COMMANDS}:pause", "Let it start nothing"),
            Command("schedule resume", f"{COMMANDS}:resume", "Let it go on"),
            Command("schedule remove", f"{COMMANDS}:remove", "Remove a schedule"),
        )
    },
    parents={"schedule": "Start work at its times: every night, every 15 minutes"},
    renamed={"cron": "schedule add"},
    routes=("subagents.extensions.schedules.schedule_routes",),
    parts="subagents.extensions.schedules.schedules:Schedules",
    diagnostics="subagents.extensions.schedules.schedule_building:diagnosed",
    checks="subagents.extensions.schedules.schedule_checks:checks",
)
