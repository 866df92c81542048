"""Several machines that share a PostgreSQL database."""

from subagents.extension import Command, Extension, SettingsTable

RETIRED = "set daemon.store, cluster.listen and cluster.secret on each node, then: subagents serve"

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
    middleware="subagents.extensions.cluster.hooks:middleware",
    listeners="subagents.extensions.cluster.hooks:listeners",
    storage="subagents.extensions.cluster.postgres.home_store:storage",
    node="subagents.extensions.cluster.hooks:node",
    commands={
        "Keep it running": (
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
                "cluster forget",
                "subagents.extensions.cluster.cli.node_commands:forget",
                "Take over from a node that is gone",
            ),
        )
    },
    retired={f"cluster {each}": RETIRED for each in ("init", "join", "leave", "token")},
    parents={"cluster": "Work on several machines that share a PostgreSQL database"},
    renamed={"cluster undrain": "cluster drain --undo"},
)
