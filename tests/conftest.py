"""What holds for all tests: the profile of the property tests, and a Ctrl-C that works."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite",
    deadline=None,  # the machine may be busy with other tests
    derandomize=True,  # the same examples on every machine; the simulator explores further
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts this in the background says so; the programs under test inherit it, and
    # then no Ctrl-C of a test would reach them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
