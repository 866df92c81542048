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
            Command("schedule run-now", f"{COMMANDS}:run_now", "Start its work now"),
            Command("schedule remove", f"{COMMANDS}:remove", "Remove a schedule"),
        )
    },
    parents={"schedule": "Start work at its times: every night, every 15 minutes"},
    selectors={
        "show schedule:": f"{COMMANDS}:show",
        "pause schedule:": f"{COMMANDS}:pause",
        "resume schedule:": f"{COMMANDS}:resume",
    },
    renamed={
        "cron": "schedule add",
        "cron list": "schedule list",
        "cron remove": "schedule remove",
        "schedule show": "show schedule:",
        "schedule pause": "pause schedule:",
        "schedule resume": "resume schedule:",
    },
    retired={
        "--cron": (WHEN := "subagents schedule add NAME '0 3 * * *' TASK"),
        "--every": WHEN,
        "schedule delete": (REMOVE := "subagents schedule remove NAME"),
        "schedule edit": "subagents schedule add NAME WHEN TASK --replace",
        "schedule rm": REMOVE,
    },
    routes=("subagents.extensions.schedules.schedule_routes",),
    parts="subagents.extensions.schedules.schedules:Schedules",
    diagnostics="subagents.extensions.schedules.schedule_building:diagnosed",
    checks="subagents.extensions.schedules.schedule_checks:checks",
)
