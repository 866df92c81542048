"""The page, its logins, and the TCP port on which it is served."""

from subagents.extension import Command, Extension

extension = Extension(
    name="web",
    routes=("subagents.extensions.web.login_routes",),
    listeners="subagents.extensions.web.tcp_listener:listeners",
    commands={
        "Look": (
            Command("ui", "subagents.extensions.web.ui_commands:ui", "Open the web page"),
            Command(
                "ui sessions",
                "subagents.extensions.web.ui_commands:sessions",
                "List browsers that are logged in",
            ),
            Command("ui revoke", "subagents.extensions.web.ui_commands:revoke", "Log browsers out"),
        )
    },
    checks="subagents.extensions.web.page_files:checks",
    parents={"ui": "Open the web page, and see who is logged in"},
)
