"""What lies in the database of a cluster and is for its nodes alone."""

import pytest

from subagents.extensions.cluster.trust.sealing import Seal

SECRET = bytes(range(32))


@pytest.mark.requirement("cluster:sealed")
def test_what_one_node_encrypts_every_node_of_the_cluster_decrypts_and_nobody_else() -> None:
    sealed = Seal(SECRET, "environments").encrypt(b"TOKEN=hush")

    assert Seal(SECRET, "environments").decrypt(sealed) == b"TOKEN=hush"
    assert b"hush" not in sealed
    assert sealed != Seal(SECRET, "environments").encrypt(b"TOKEN=hush")
    for other in (Seal(SECRET[::-1], "environments"), Seal(SECRET, "other")):
        with pytest.raises(ValueError, match="another cluster"):
            other.decrypt(sealed)


@pytest.mark.requirement("cluster:sealed")
@pytest.mark.parametrize("at", [0, 11, 12, -1])
def test_what_was_changed_in_one_bit_is_refused(at: int) -> None:
    seal = Seal(SECRET, "environments")
    sealed = bytearray(seal.encrypt(b"TOKEN=hush"))
    sealed[at] ^= 1

    with pytest.raises(ValueError, match="changed since"):
        seal.decrypt(bytes(sealed))
    with pytest.raises(ValueError, match="changed since"):
        seal.decrypt(b"short")
