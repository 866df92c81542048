"""Several machines that share a PostgreSQL database."""

from subagents.extension import Command, Extension, SettingsTable

extension = Extension(
    name="cluster",
    settings=(
        SettingsTable(
            "cluster",
            "subagents.extensions.cluster.cluster_settings:ClusterSettings",
        ),
    ),
    checks="subagents.extensions.cluster.cli.cluster_checks:checks",
    routes=("subagents.extensions.cluster.api.cluster_routes",),
    middleware="subagents.extensions.cluster.api.forwarding:middleware",
    listeners="subagents.extensions.cluster.api.node_listener:listeners",
    storage="subagents.extensions.cluster.postgres.home_store:storage",
    node="subagents.extensions.cluster.node_parts:node",
    commands={
        "Keep it running": (
            Command(
                "cluster init",
                "subagents.extensions.cluster.cli.membership_commands:init",
                "Make a cluster",
            ),
            Command(
                "cluster token",
                "subagents.extensions.cluster.cli.membership_commands:token",
                "Print a token to join by",
            ),
            Command(
                "cluster join",
                "subagents.extensions.cluster.cli.membership_commands:join",
                "Join a cluster",
            ),
            Command(
                "cluster leave",
                "subagents.extensions.cluster.cli.membership_commands:leave",
                "Leave the cluster",
            ),
            Command(
                "cluster status",
                "subagents.extensions.cluster.cli.node_commands:status",
                "List the nodes",
            ),
            Command(
                "cluster drain",
                "subagents.extensions.cluster.cli.node_commands:drain",
                "Let others take over from a node",
            ),
            Command(
                "cluster undrain",
                "subagents.extensions.cluster.cli.node_commands:undrain",
                "Take the node back",
            ),
            Command(
                "cluster forget",
                "subagents.extensions.cluster.cli.node_commands:forget",
                "Take over from a node that is gone",
            ),
        )
    },
    parents={"cluster": "Work on several machines that share a PostgreSQL database"},
)
