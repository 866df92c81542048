"""PostgreSQL does what every store must do, also behind a pooler."""

from tests.extensions.cluster.postgres.postgres_server import PostgresPlace
from tests.store.test_open_runs import *  # noqa: F403 - its tests are these
from tests.store.test_set_aside import *  # noqa: F403 - its tests are these
from tests.store.test_store_suite import *  # noqa: F403 - its tests are these
from tests.store.test_store_suite import every_requirement

from subagents.extensions.testing.conformance import Behaviour, StorePlace


@every_requirement
def test_postgres_keeps_it_behind_a_pooler_of_transactions(
    behaviour: Behaviour[StorePlace], pooled_place: PostgresPlace
) -> None:
    behaviour.check(pooled_place)
