"""For every test."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, so that a failure is the change's own; `make nightly` sets a seed and looks further.
# No example has a time limit, and slow generation is no error: both depend on the machine.
settings.register_profile(
    "paddleflow",
    deadline=None,
    derandomize="PADDLEFLOW_HYPOTHESIS_SEED" not in os.environ,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("paddleflow")


def pytest_configure(config: pytest.Config) -> None:
    """A suite that a shell starts in the background ignores Ctrl-C, and so would every program it starts; but what
    programs do on Ctrl-C is tested."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
