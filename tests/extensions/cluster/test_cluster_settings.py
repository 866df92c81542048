"""Where other nodes reach this one."""

import msgspec
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


@pytest.mark.requirement("cluster:settings")
@pytest.mark.parametrize(
    ("key", "host"),
    [
        *(("listen", host) for host in ("0.0.0.0", "a.example", "[::]")),  # noqa: S104
        *(("url", host) for host in ("https://a.example", "https://10.0.0.5", "https://[fd00::5]")),
        ("temporal", "a.example"),
    ],
)
def test_a_port_is_one_that_there_can_be(key: str, host: str) -> None:
    for port in (1, 7443, 59_999, 65_535):
        msgspec.convert({key: f"{host}:{port}"}, ClusterSettings)
    for bad in ("65536", "70000", "99999", "100000", "", "http"):
        with pytest.raises(msgspec.ValidationError, match=key):
            msgspec.convert({key: f"{host}:{bad}"}, ClusterSettings)
