"""Where other nodes reach this one."""

import pytest

from subagents.extensions.cluster.cluster_settings import ClusterSettings


@pytest.mark.requirement("cluster:settings")
@pytest.mark.parametrize(
    ("listen", "url", "address", "told"),
    [
        (None, None, None, None),
        ("10.0.0.5:7443", None, ("10.0.0.5", 7443), "https://10.0.0.5:7443"),
        ("0.0.0.0:7443", None, ("0.0.0.0", 7443), "https://me.example:7443"),  # noqa: S104
        ("[::]:7443", None, ("::", 7443), "https://me.example:7443"),
        ("[fd00::5]:7443", None, ("fd00::5", 7443), "https://[fd00::5]:7443"),
        ("0.0.0.0:7443", "https://a.example", ("0.0.0.0", 7443), "https://a.example"),  # noqa: S104
    ],
)
def test_other_nodes_are_told_an_address_that_they_can_call(
    listen: str | None, url: str | None, address: tuple[str, int] | None, told: str | None
) -> None:
    settings = ClusterSettings(listen=listen, url=url)

    assert settings.address == address
    assert settings.url_at("me.example") == told
