"""Durations as people read them: short, and no more exact than they are known."""

from __future__ import annotations


def spelt_whole_seconds(seconds: float) -> str:
    """The same of what is known to the second only: ``<1s``, ``3s``."""
    whole = int(seconds)
    return spelt_seconds(whole) if whole >= 10 else f"{whole}s" if whole else "<1s"


def spelt_seconds(seconds: float) -> str:
    """``0.4s``, ``12s``, ``3m05s``, ``2h07m``."""
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{rest:02}s"
    return f"{minutes // 60}h{minutes % 60:02}m"
