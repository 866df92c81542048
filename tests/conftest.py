"""Nothing but the profile of the property tests: fixtures live beside the tests that use them."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite",
    deadline=None,  # the machine may be busy with other tests
    derandomize=True,  # the same examples on every machine; the simulator explores further
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")
