"""Sizes as people read them."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def spelt_size(size: float) -> str:
    """``0 B``, ``999 B``, ``1.5 KiB``, ``12 MiB``, ``1.5 GiB``."""
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 or size >= 99.5 else f"{size:.1f} {_UNITS[unit]}"
