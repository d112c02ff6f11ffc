"""How an address is written for programs that split it at its last colon. Needs nothing: agents take it into users'
images."""

from __future__ import annotations


def spell_endpoint(host: str, port: int) -> str:
    """``host:port``; an IPv6 address stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
