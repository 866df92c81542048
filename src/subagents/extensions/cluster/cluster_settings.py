"""`[cluster]` of `subagents.toml`."""

from typing import Annotated, ClassVar, Final

from msgspec import Meta

from subagents.config.settings import (
    EVERYWHERE,
    Inconsistency,
    NodeName,
    Section,
    Settings,
    Text,
)

_PORT: Final = r":(\d{1,4}|[0-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])"

ListenAddress = Annotated[
    str,
    Meta(
        pattern=r"^([A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9a-fA-F:.]{2,45}\])" + _PORT + "$",
        extra={"words": "HOST:PORT, such as 0.0.0.0:7443 or [::]:7443"},
    ),
]
NodeUrl = Annotated[
    str,
    Meta(
        pattern=r"^https://(\[[^\s/?#@\]]+\]|[^\s/?#@:]+)(" + _PORT + ")?$",
        extra={"words": "https://HOST or https://HOST:PORT", "secret": True},
    ),
]
Secret = Annotated[
    str,
    Meta(
        pattern=r"^\s*\S{16,1024}\s*$",
        extra={
            "words": "16 characters or more without a space, as of: openssl rand -base64 32",
            "secret": True,
        },
    ),
]
Address = Annotated[str, Meta(pattern=r"^[^\s/]+" + _PORT + "$", extra={"words": "HOST:PORT"})]
Objects = Annotated[
    str,
    Meta(
        pattern=r"^((s3|gs|az)://[^\s/?#@]+(/[^\s?#@]*)?|file:///[^\s?#]*)$",
        extra={
            "words": "s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH or file:///DIRECTORY",
            "secret": True,
        },
    ),
]


class ClusterSettings(Section, frozen=True):
    """`[cluster]`: read once, when the daemon starts; the user's own file and environment only."""

    TABLE: ClassVar = "cluster"

    listen: Annotated[
        ListenAddress | None,
        Meta(
            description="Address and port on which other nodes reach this one, always over TLS; "
            "unset = the daemon is alone. Needs `daemon.store` and `secret`."
        ),
    ] = None
    secret: Annotated[
        Secret | None,
        Meta(
            description="The same on all nodes, which know each other by it: "
            "`openssl rand -base64 32`. Better in `SUBAGENTS_CLUSTER__SECRET`; a file with it has "
            "to be yours alone (`chmod 600`)."
        ),
    ] = None
    url: Annotated[
        NodeUrl | None,
        Meta(
            description="What other nodes are told instead, where they reach it by another name; "
            "unset = `listen`, with the host's name for an address such as 0.0.0.0."
        ),
    ] = None
    labels: Annotated[
        tuple[NodeName, ...],
        Meta(description="What runs can ask for as their `place`, for example gpu or linux."),
    ] = ()
    slots: Annotated[
        Annotated[int, Meta(ge=0, le=10_000)] | None,
        Meta(description="Workers here at most, whoever decides about them; unset = no limit."),
    ] = None
    lease_seconds: Annotated[
        float,
        Meta(
            ge=1,
            le=300,
            description="How long after its last sign of life a node is over, and others go on.",
        ),
    ] = 6
    temporal: Annotated[
        Address | None,
        Meta(
            description="HOST:PORT of a Temporal that finds nodes for attempts, the same on all "
            "nodes; unset = nodes look into the database. Needs subagents[temporal]."
        ),
    ] = None
    temporal_namespace: Annotated[Text, Meta(description="Namespace in that Temporal.")] = "default"
    temporal_queues: Annotated[
        NodeName, Meta(description="What the names of this cluster's queues there begin with.")
    ] = "subagents"
    temporal_tls: Annotated[
        bool, Meta(description="Whether it is reached over TLS; implied by the files below.")
    ] = False
    temporal_ca: Annotated[
        Text | None,
        Meta(description="PEM file of who signed its certificate; unset = the system's."),
    ] = None
    temporal_cert: Annotated[
        Text | None, Meta(description="PEM file of our certificate for it, with `temporal_key`.")
    ] = None
    temporal_key: Annotated[Text | None, Meta(description="PEM file of its private key.")] = None
    temporal_api_key: Annotated[
        Text | None, Meta(description="API key for it; better `secret:NAME`, a secret that is one.")
    ] = None
    objects: Annotated[
        Objects | None,
        Meta(
            description="Object store of all nodes, such as s3://bucket/path, gs://…, az://… or "
            "file:///shared/directory, for the transcripts of archived runs; unset = "
            "they stay in the database. Needs subagents[objects]."
        ),
    ] = None

    def inconsistency(self, settings: Settings) -> Inconsistency | None:
        """See ``Section.inconsistency``."""
        has_store = settings.daemon.store is not None
        if self.listen is None or (has_store and self.secret is not None):
            return None
        if has_store:
            return Inconsistency(
                "cluster.listen",
                "cluster.listen needs cluster.secret: the nodes of a cluster know each other by it",
                "make one with openssl rand -base64 32, and set SUBAGENTS_CLUSTER__SECRET to it on"
                " every node",
            )
        return Inconsistency(
            "cluster.listen",
            "cluster.listen needs daemon.store: the nodes of a cluster share a database",
            "set daemon.store to the address of a PostgreSQL database, or remove cluster.listen",
        )

    @property
    def address(self) -> tuple[str, int] | None:
        """Host, without brackets, and port of `listen`; None = it is unset."""
        if self.listen is None:
            return None
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)

    def url_at(self, host_name: str) -> str | None:
        """Where other nodes reach this one; None = nowhere.

        Args:
            host_name: This machine's, for an address that means all of its addresses.
        """
        if self.url is not None or self.address is None:
            return self.url
        host, port = self.address
        named = host_name if host in EVERYWHERE else host
        return f"https://[{named}]:{port}" if ":" in named else f"https://{named}:{port}"
