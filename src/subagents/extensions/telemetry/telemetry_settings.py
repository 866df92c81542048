"""`[telemetry]` of `subagents.toml`."""

from typing import Annotated, ClassVar

from msgspec import Meta

from subagents.config.settings import HeaderName, Section, Text, Url


class Telemetry(Section, frozen=True):
    """`[telemetry]`: read once, when the daemon starts; the user's own file and environment only.

    Nothing is sent anywhere unless `otlp_endpoint` is set.
    """

    TABLE: ClassVar = "telemetry"

    otlp_endpoint: Annotated[
        Url | None,
        Meta(
            description="OTLP/HTTP receiver that gets a span per attempt when a run ends, for "
            'example "http://127.0.0.1:4318"; unset = nothing is sent. Needs subagents[otel]. Only '
            "from your own file."
        ),
    ] = None
    headers: Annotated[
        dict[HeaderName, str],
        Meta(
            description="HTTP headers sent along, such as an API key for the receiver.",
            extra={"hidden": True},
        ),
    ] = {}
    content: Annotated[
        bool,
        Meta(description="Send tasks, results and error texts too; redacted, but content."),
    ] = False
    service_name: Annotated[
        Text, Meta(description="`service.name` of everything that is sent.")
    ] = "subagents"
