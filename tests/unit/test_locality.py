"""Where a job's data is at hand: a preference between nodes that fit, and nothing more."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.ids import FilesystemId, MountId, NodeName
from paddleflow.domain.jobs import FsRef, Job
from paddleflow.domain.mounts import CacheReport, by_node
from paddleflow.scheduling.decide import decide
from paddleflow.scheduling.entries import waiting_of
from paddleflow.scheduling.ledger import Ledger
from paddleflow.scheduling.locality import cached_of, preferred
from paddleflow.testing.builders import THEN, a_job, a_member, a_node, a_queue, resources

DATA, MORE = FilesystemId("fs-alice-data"), FilesystemId("fs-alice-more")
NOW = THEN.timestamp()


def report(node: str, cached: int, *, fs: str = DATA, total: int = 0, mount: str = "m", **more: object) -> CacheReport:
    return CacheReport(
        fs_id=FilesystemId(fs),
        node=NodeName(node),
        mount_id=MountId(mount),
        cached_bytes=cached,
        total_bytes=total,
        reported_at=THEN,
        **more,  # type: ignore[arg-type]
    )


def reader(*filesystems: str, name: str = "job-a", replicas: int = 1, asking: str = "1") -> Job:
    refs = tuple(FsRef(name=fs, id=fs) for fs in filesystems)
    member = replace(a_member(resources(asking), replicas=replicas), extra_fs=refs)
    return a_job(name, member=member)


@pytest.mark.parametrize(
    ("reports", "filesystems", "shares"),
    [
        ([], [DATA], {}),
        ([report("n1", 100)], [], {}),
        ([report("n1", 100)], [MORE], {}),
        ([report("n1", 100)], [DATA], {"n1": 1.0}),
        ([report("n1", 100, total=1000)], [DATA], {"n1": 0.1}),
        ([report("n1", 99, total=1000)], [DATA], {}),
        ([report("n1", 0, total=1000)], [DATA], {}),
        ([report("n1", 100), report("n2", 55)], [DATA], {"n1": 1.0, "n2": 0.5}),
        ([report("n1", 100), report("n2", 300, fs=MORE)], [DATA, MORE], {"n1": 0.2, "n2": 0.7}),
        ([report("n1", 100), report("n1", 100, mount="other")], [DATA], {"n1": 1.0}),
    ],
)
def test_shares_in_tenths(reports: list[CacheReport], filesystems: list[str], shares: dict[str, float]) -> None:
    assert preferred(waiting_of(reader(*filesystems)), cached_of(reports)) == shares


@given(
    st.lists(
        st.builds(
            report,
            st.sampled_from(["n1", "n2", "n3"]),
            st.integers(0, 1 << 50),
            fs=st.sampled_from([DATA, MORE]),
            total=st.integers(0, 1 << 50),
            mount=st.sampled_from(["a", "b"]),
        )
    )
)
def test_a_share_is_between_a_tenth_and_all(reports: list[CacheReport]) -> None:
    shares = preferred(waiting_of(reader(DATA, MORE)), cached_of(reports))
    assert all(0.1 <= share <= 1 for share in shares.values())


def test_a_gang_is_packed_as_if_there_were_no_caches() -> None:
    assert preferred(waiting_of(reader(DATA, replicas=2)), cached_of([report("n1", 100)])) == {}


def placed(job: Job, *reports: CacheReport, late: bool = False) -> str:
    ledger = Ledger()
    nodes = [a_node("n1", resources("4")), a_node("n2", resources("8")), a_node("n3", resources("2"))]
    ledger.set_capacity((a_queue(),), nodes)
    if not late:
        ledger.set_cached(cached_of(reports))
    ledger.put(job)
    if late:
        ledger.set_cached(cached_of(reports))
    (admission,) = decide(ledger, NOW).admissions
    return admission.spots[0].node


@pytest.mark.parametrize("late", [False, True], ids=["reported before", "reported while it waits"])
def test_the_job_goes_where_its_data_is(late: bool) -> None:
    assert placed(reader(DATA)) == "n3", "without reports it is packed"
    assert placed(reader(DATA), report("n2", 90), report("n1", 40), late=late) == "n2"
    assert placed(reader(DATA), report("n2", 90), report("n1", 89), late=late) == "n2"
    assert placed(reader(DATA), report("n2", 1000), report("n1", 999, total=1000), late=late) == "n2"
    assert placed(reader(DATA), report("n2", 901), report("n1", 900, total=1000), late=late) == "n1", "equal: packed"
    assert placed(reader(MORE), report("n2", 90), late=late) == "n3", "another's data is no reason"


def test_a_node_that_is_too_small_is_not_waited_for() -> None:
    assert placed(reader(DATA, asking="4"), report("n3", 100)) == "n1"


def test_what_mounts_share_is_counted_once_and_what_they_count_is_added() -> None:
    (node,) = by_node(
        (
            report("n1", 100, mount="a", hits=3, misses=1, hit_bytes=30, miss_bytes=10),
            report("n1", 100, mount="b", hits=1, misses=0, hit_bytes=50, miss_bytes=10),
        )
    )
    assert (node.cached_bytes, node.hits, node.misses) == (100, 4, 1)
    assert node.hit_ratio == 0.8
    assert by_node((report("n1", 5),))[0].hit_ratio is None
