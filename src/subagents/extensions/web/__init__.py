"""The page, its logins, and the TCP port on which it is served."""

from subagents.extension import Extension, SettingsTable, everyday

extension = Extension(
    name="web",
    settings=(SettingsTable("web", "subagents.extensions.web.web_settings:WebSettings"),),
    routes=("subagents.extensions.web.login_routes",),
    listeners="subagents.extensions.web.tcp_listener:listeners",
    commands={
        "See what happens": (
            everyday("ui", "subagents.extensions.web.ui_commands:ui", "Open the web page"),
        )
    },
    retired={"share": "subagents ui --link: a teammate looks, and changes nothing"},
    renamed={"ui sessions": "ui --sessions", "ui revoke": "ui --revoke"},
    checks="subagents.extensions.web.page_files:checks",
)
