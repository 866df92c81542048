"""Results and states for people and programs elsewhere."""

from subagents.extension import Command, Extension, SettingsTable

extension = Extension(
    name="notifications",
    settings=(
        SettingsTable(
            "notifications",
            "subagents.extensions.notifications.notification_settings:NotificationChannel",
            is_named=True,
        ),
        SettingsTable(
            "threads",
            "subagents.extensions.notifications.notification_settings:ThreadSettings",
        ),
    ),
    checks="subagents.extensions.notifications.notification_checks:checks",
    followers="subagents.extensions.notifications.who_is_told:followers",
    couriers="subagents.extensions.notifications.who_is_told:couriers",
    routes=("subagents.extensions.notifications.notification_routes",),
    commands={
        "Set up": (
            Command(
                "notifications test",
                "subagents.extensions.notifications.notification_commands:send_test",
                "Send a real notification and say what came back",
            ),
        )
    },
    parents={"notifications": "Tell a person when a run needs them, failed, or all are done"},
    retired={"--notify": "[notifications] in subagents.toml; try it: subagents notifications test"},
    renamed={"threads test": "notifications test --threads"},
)
