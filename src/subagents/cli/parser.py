"""The parser of all commands; importing it costs 70 ms, which the overview need not pay."""

from cyclopts import App, Parameter

from subagents.cli.command_table import BEFORE_PARSER, commands, function_of, parents, target_of
from subagents.cli.help_page import HelpPage
from subagents.version import __version__


def application(help_page: HelpPage | None = None) -> App:
    """The parser with all commands, none of them imported but those that are groups, too.

    Args:
        help_page: What ``--help`` is shown by; None = as text on the terminal.
    """

    def new(name: str, help_: str) -> App:
        return App(
            name=name,
            help=help_,
            version=__version__,
            version_flags=["--version"] if name == "subagents" else [],
            help_format="plaintext",
            help_formatter=help_page or HelpPage(),
            result_action="return_value",
            exit_on_error=False,
            print_error=False,
            suppress_keyboard_interrupt=False,
            default_parameter=Parameter(negative=(), show_default=False),
        )

    app = new("subagents", "One local service that any agent can call and any agent can work for.")
    groups = {name: new(name, summary) for name, summary in parents().items()}
    for parent in groups.values():
        app.command(parent)
    for each in commands():
        if each.name == BEFORE_PARSER:
            continue
        if each.name in groups:
            groups[each.name].default(target_of(each))
            continue
        parent_name, _, name = each.name.rpartition(" ")
        parent = groups[parent_name] if parent_name else app
        parent.command(function_of(each), name=name, help=each.summary)
    return app
