"""What we take of what a kernel offers."""

from __future__ import annotations

import struct

import pytest

from paddleflow.domain.errors import Unavailable
from paddleflow.pfs.fuse import negotiation, protocol
from paddleflow.pfs.fuse.negotiation import Negotiated, Offer, Wanted
from paddleflow.pfs.fuse.protocol import InitFlag

EVERYTHING = (1 << 64) - 1


def offer(flags: int = EVERYTHING, minor: int = 45, major: int = 7) -> Offer:
    return Offer(unique=1, major=major, minor=minor, max_readahead=131072, flags=flags)


def test_a_modern_kernel_as_root() -> None:
    chosen = negotiation.choose(offer(), Wanted())
    assert chosen.passthrough
    assert chosen.resend
    assert not chosen.flags & InitFlag.WRITEBACK_CACHE, "it excludes passthrough"
    assert not chosen.flags & InitFlag.NO_OPEN_SUPPORT
    assert chosen.flags & InitFlag.ATOMIC_O_TRUNC


@pytest.mark.parametrize(
    ("flags", "wanted", "why"),
    [
        (EVERYTHING & ~int(InitFlag.PASSTHROUGH), Wanted(), "Linux 6.9"),
        (EVERYTHING, Wanted(passthrough=False), "turned off"),
        (EVERYTHING, Wanted(dataset=True), "data set"),
    ],
)
def test_no_passthrough_has_a_reason(flags: int, wanted: Wanted, why: str) -> None:
    chosen = negotiation.choose(offer(flags), wanted)
    assert not chosen.passthrough
    assert not chosen.flags & InitFlag.PASSTHROUGH
    assert why in chosen.passthrough_why


def test_a_data_set_is_opened_without_asking() -> None:
    chosen = negotiation.choose(offer(), Wanted(dataset=True))
    assert chosen.flags & InitFlag.NO_OPEN_SUPPORT
    assert chosen.flags & InitFlag.NO_OPENDIR_SUPPORT


def test_an_older_kernel_is_told_its_own_version_and_no_more_than_it_offered() -> None:
    chosen = negotiation.choose(offer(flags=int(InitFlag.ASYNC_READ | InitFlag.BIG_WRITES), minor=31), Wanted())
    assert chosen.minor == 31
    assert chosen.flags == InitFlag.ASYNC_READ | InitFlag.BIG_WRITES
    assert not chosen.resend


@pytest.mark.parametrize(("major", "minor"), [(7, 30), (6, 45), (8, 0)])
def test_a_kernel_we_cannot_talk_to_is_named(major: int, minor: int) -> None:
    with pytest.raises(Unavailable, match=f"{major}.{minor}.*7.31"):
        negotiation.choose(offer(major=major, minor=minor), Wanted())


def test_high_flags_count_only_when_the_kernel_says_so() -> None:
    def init(low: int, high: int) -> bytes:
        body = struct.pack("<IIIII44x", 7, 45, 131072, low, high)
        return protocol.IN_HEADER.pack(40 + len(body), 26, 1, 0, 0, 0, 0, 0, 0) + body

    assert negotiation.read_offer(init(int(InitFlag.INIT_EXT), 1 << 5)).flags & InitFlag.PASSTHROUGH
    assert not negotiation.read_offer(init(0, 1 << 5)).flags & InitFlag.PASSTHROUGH
    old = protocol.IN_HEADER.pack(56, 26, 1, 0, 0, 0, 0, 0, 0) + struct.pack("<IIII", 7, 31, 131072, 1)
    assert negotiation.read_offer(old).flags == 1


def test_a_first_request_of_another_kind_is_refused() -> None:
    with pytest.raises(Unavailable, match="introduced"):
        negotiation.read_offer(protocol.IN_HEADER.pack(40, 3, 1, 1, 0, 0, 0, 0, 0))


def test_the_reply_golden() -> None:
    chosen = Negotiated(minor=45, flags=int(InitFlag.INIT_EXT | InitFlag.PASSTHROUGH), stack_depth=1, passthrough=True)
    reply = negotiation.pack_reply(offer(), chosen)
    assert len(reply) == 80
    (major, minor, readahead, low, background, congestion, write, gran, pages, _, high, depth, limit) = struct.unpack(
        "<IIIIHHIIHHIIH22x", reply[16:]
    )
    assert (major, minor, low, high, depth, limit) == (7, 45, 1 << 30, 1 << 5, 1, 0)
    assert (readahead, write, pages, gran) == (1 << 20, 1 << 20, 256, 1)
    assert background > congestion > 0


def test_a_successor_reads_what_was_negotiated() -> None:
    chosen = negotiation.choose(offer(), Wanted(stack_depth=2))
    assert Negotiated.from_json(chosen.to_json()) == chosen
