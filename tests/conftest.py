"""For every test."""

from __future__ import annotations

import signal

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """A suite that a shell starts in the background ignores Ctrl-C, and so would every program it starts; but what
    programs do on Ctrl-C is tested."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
