"""What must be true of every decision, told from the plain record of a world and never from the scheduler's own books.

``cycle`` decides, checks, carries out and checks again; ``settle`` and ``drain`` look at longer stretches.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from random import Random

from paddleflow.domain.ids import JobId, NodeName, QueueName
from paddleflow.domain.jobs import Spot
from paddleflow.domain.queues import QueuePolicy, QueueStatus
from paddleflow.scheduling.decide import decide
from paddleflow.scheduling.decisions import Decisions
from paddleflow.scheduling.entries import TaskGroup, Waiting
from paddleflow.scheduling.ledger import Ledger
from paddleflow.scheduling.placement import Shortage, place
from paddleflow.scheduling.quota import sides
from paddleflow.scheduling.reasons import WaitKind
from paddleflow.scheduling.rooms import Rooms
from tests.properties.exhaustive import can_place, missed, watched
from tests.properties.histories import Life, State, World

Use = dict[str, int]


class Care(IntEnum):
    """How closely decisions are looked at: what takes longest is done in a part of the histories."""

    ALWAYS = 0
    OFTEN = 1
    SELDOM = 2


def cycle(world: World, care: Care) -> Decisions:
    """One decision, with everything that must be true of it."""
    before = digest(world.ledger) if care else None
    decisions = decide(world.ledger, world.now, world.rules)
    if care:
        assert digest(world.ledger) == before, "deciding changed the ledger"
        check_reasons(world, decisions)
    if care is Care.SELDOM:
        twin = world.fresh_ledger(world.chance)
        assert digest(twin) == before, "the ledger differs from one made anew from the same entries"
        again = decide(twin, world.now, world.rules)
        assert told(again) == told(decisions), "the order of the entries changed the decisions"
        check_one_reason(world, decisions)
    check_shape(world, decisions)
    check_promises(world, decisions)
    world.carry_out(decisions)
    check_nodes(world)
    check_maxima(world, decisions)
    return decisions


def digest(ledger: Ledger) -> object:
    """Everything the ledger holds, but for zeros and the order in which it came."""
    return (
        {name: (some(room.free), tuple(room.busy)) for name, room in ledger.rooms._rooms.items()},
        {cluster: some(free) for cluster, free in ledger.rooms.total_free.items()},
        {quota.name: (some(quota.used), some(quota.kept), some(quota.leaving)) for quota in ledger.quotas.all()},
        {queue: [(job.job_id, job.claim) for job in line] for queue, line in ledger.waiting.items()},
        dict(ledger.holding),
        set(ledger.claimants),
        set(ledger.elastic),
    )


def some(amounts: Mapping[str, int]) -> Use:
    return {name: units for name, units in amounts.items() if units}


def told(decisions: Decisions) -> tuple[object, ...]:
    """The decisions without the order in which they are listed."""
    return (
        sorted(decisions.admissions, key=lambda each: each.job_id),
        sorted(((each.job_id, each.spots) for each in decisions.reservations), key=str),
        sorted((each.job_id, each.in_favour_of) for each in decisions.evictions),
        sorted(((each.job_id, each.add, each.drop, each.in_favour_of or "") for each in decisions.resizes), key=str),
        {each.job_id: (each.spots, each.starts_by) for each in decisions.promises},
        {job_id: because().sentence for job_id, because in decisions.causes.items()},
        decisions.wake_at,
    )


# What each decision looks like.


def check_shape(world: World, decisions: Decisions) -> None:
    queues = {queue.name: queue for queue in world.queues}
    nodes = {node.name: node for node in world.nodes}

    def check_spots(life: Life, spots: Iterable[Spot]) -> None:
        queue = queues[life.entry.queue]
        for spot in spots:
            node, group = nodes[spot.node], group_of(life.entry, spot)
            assert node.schedulable, f"{life.entry.job_id} goes to {spot.node}, which takes no work"
            assert queue.may_use(node.labels), f"{life.entry.job_id} of {queue.name} goes to {spot.node}"
            assert all(node.labels.get(key) == value for key, value in group.selector.items()), "selector"
            assert len(set(spot.gpus)) == len(spot.gpus) == group.each.gpus, f"GPUs of {spot}"
            assert all(0 <= index < node.capacity.gpus for index in spot.gpus), f"GPUs of {spot}"

    assert len({each.job_id for each in decisions.reservations}) == len(decisions.reservations), "reserved twice"
    reserved = {each.job_id: each.spots for each in decisions.reservations}
    for admission in decisions.admissions:
        life = world.lives[admission.job_id]
        assert life.state is State.WAITING, f"{admission.job_id} starts but is {life.state}"
        assert queues[life.entry.queue].status is QueueStatus.OPEN, "a closed queue starts nothing"
        if life.claim and not world.is_recast:
            assert admission.spots == life.claim, (
                f"{admission.job_id} starts elsewhere than where room was freed for it"
            )
        check_spots(life, admission.spots)
        check_gang(life.entry, admission.spots)
    for job_id, spots in reserved.items():
        assert world.lives[job_id].state is State.WAITING
        if spots:
            assert not any(each.job_id == job_id for each in decisions.admissions), f"{job_id} starts and waits"
            check_spots(world.lives[job_id], spots)
            check_gang(world.lives[job_id].entry, spots)
    for eviction in decisions.evictions:
        assert world.lives[eviction.job_id].state is State.RUNNING, f"{eviction.job_id} is evicted again"
        assert reserved.get(eviction.in_favour_of), f"{eviction.job_id} goes for one who gets nothing"
    check_resizes(world, decisions, reserved, check_spots)


def check_gang(entry: Waiting, spots: Sequence[Spot]) -> None:
    found: defaultdict[str, set[int]] = defaultdict(set)
    for spot in spots:
        assert spot.index not in found[spot.role], f"{spot} is given twice"
        found[spot.role].add(spot.index)
    elastic = entry.elastic
    for group in entry.groups:
        size = len(found[group.role])
        if elastic is not None and elastic.role == group.role:
            assert size in elastic.allowed, f"{entry.job_id} starts with {size} of {elastic.allowed}"
            assert found[group.role] == set(range(size)), f"{entry.job_id} starts with workers {found[group.role]}"
        else:
            assert size == group.count, f"{entry.job_id} starts with {size} of {group.count} {group.role}"


def check_resizes(
    world: World,
    decisions: Decisions,
    reserved: Mapping[JobId, tuple[Spot, ...]],
    check_spots: Callable[[Life, Iterable[Spot]], None],
) -> None:
    evicted = {each.job_id for each in decisions.evictions}
    assert len({each.job_id for each in decisions.resizes}) == len(decisions.resizes), "resized twice in one cycle"
    for resize in decisions.resizes:
        life = world.lives[resize.job_id]
        elastic = life.entry.elastic
        assert life.state is State.RUNNING and elastic is not None and resize.job_id not in evicted
        assert bool(resize.add) != bool(resize.drop), "grown and shrunk at once"
        workers = {part.index for part in life.held if part.role == elastic.role}
        indices = {spot.index for spot in (*resize.add, *resize.drop)}
        assert all(spot.role == elastic.role for spot in (*resize.add, *resize.drop))
        if resize.drop:
            assert indices < workers and 0 not in indices, f"{resize.job_id} loses {indices} of {workers}"
            assert resize.in_favour_of is not None and reserved.get(resize.in_favour_of), "shrunk for nobody"
            assert len(workers) - len(indices) in elastic.allowed, f"{resize.job_id} shrinks to no size of {elastic}"
        else:
            assert not indices & workers, f"{resize.job_id} has {indices & workers} already"
            assert len(workers) + len(indices) in elastic.allowed, f"{resize.job_id} grows to no size of {elastic}"
            assert max(indices) < elastic.most
            check_spots(life, resize.add)


def group_of(entry: Waiting, spot: Spot) -> TaskGroup:
    return next(group for group in entry.groups if group.role == spot.role)


def check_promises(world: World, decisions: Decisions) -> None:
    """A promised start is never moved back, unless capacity changed or somebody has a better right: one who came since,
    or whose queue has had less meanwhile."""
    promises = {each.job_id: each.starts_by for each in decisions.promises if each.starts_by is not None}
    started = {each.job_id for each in decisions.admissions} | {each.job_id for each in decisions.reservations}
    served = {world.lives[job_id].entry.queue for job_id in started | {each.job_id for each in decisions.promises}}
    # How long those on their way out still take is not known to the scheduler.
    is_certain = not world.is_disturbed and not any(
        life.parting or life.state is State.LEAVING for life in world.lives.values()
    )
    for job_id, starts_by in world.promised.items() if is_certain else ():
        if job_id not in world.lives or job_id in started:
            continue
        job = world.lives[job_id].entry
        if not any(has_better_right(world, other, job) for other in served - {job.queue}):
            now = promises.get(job_id)
            assert now is not None, f"{job_id} was promised to start by {starts_by}, and is no longer"
            assert now <= starts_by, f"{job_id} was promised to start by {starts_by}, now by {now}"
    world.promised = promises


def has_better_right(world: World, other: QueueName, job: Waiting) -> bool:
    """Whether a job of another queue may go first: it is guaranteed, has waited for too long, or its queue had less."""
    patience_s = world.rules.patience_s
    if any(
        life.entry.queue == other and life.entry.since + patience_s <= world.now
        for life in world.in_state(State.WAITING)
    ):
        return True
    mine, theirs = world.ledger.quotas.find(job.queue), world.ledger.quotas.find(other)
    parted = None if mine is None or theirs is None else sides(theirs, mine)
    if parted is None:
        return True
    return bool(parted[0].minimum) or parted[0].share() <= parted[1].share()


# What is used, once the decisions are carried out.


def check_nodes(world: World) -> None:
    """No node and no GPU twice, now or when those who were told to go have gone."""
    now: defaultdict[NodeName, Use] = defaultdict(dict)
    later: defaultdict[NodeName, Use] = defaultdict(dict)
    cards_now: Counter[tuple[NodeName, int]] = Counter()
    cards_later: Counter[tuple[NodeName, int]] = Counter()
    for life in world.lives.values():
        for part in (*life.held, *life.parting):
            _add(now[part.node], part.each.amounts)
            cards_now.update((part.node, index) for index in part.gpus)
        for part in (*life.claimed, *(life.held if life.state is State.RUNNING else ())):
            _add(later[part.node], part.each.amounts)
            cards_later.update((part.node, index) for index in part.gpus)
    for node in world.nodes:
        for name in ("now", "later") if node.schedulable else ():
            use = (now if name == "now" else later)[node.name]
            over = {what: units for what, units in use.items() if units > node.capacity.get(what)}
            assert not over, f"{node.name} has {dict(node.capacity)} and {name} gives {over}"
    for cards in (cards_now, cards_later):
        twice = [card for card, users in cards.items() if users > 1]
        assert not twice, f"GPUs given twice: {twice}"


def check_maxima(world: World, decisions: Decisions) -> None:
    """Nothing is given that takes a quota above its maximum, now or when room that is being freed is taken."""
    limited = [queue for queue in world.queues if queue.max_resources.amounts and not queue.is_unlimited]
    if not limited:
        return
    now: dict[QueueName, Use] = {queue.name: {} for queue in world.queues}
    later: dict[QueueName, Use] = {queue.name: {} for queue in world.queues}
    for life in world.lives.values():
        for level in world.above.get(life.entry.queue, ()):
            for part in (*life.held, *life.parting):
                _add(now[level], part.each.amounts)
            for part in (*life.claimed, *(life.held if life.state is State.RUNNING else ())):
                _add(later[level], part.each.amounts)
    starting = [each.job_id for each in decisions.admissions]
    growing = [each.job_id for each in decisions.resizes if each.add]
    waiting = [each.job_id for each in decisions.reservations if each.spots]
    for use, given in ((now, starting + growing), (later, starting + growing + waiting)):
        for queue in limited:
            for name, most in queue.max_resources:
                units = use[queue.name].get(name, 0)
                if units > most:
                    # A maximum may be lowered under what is used; then nobody below it gets more.
                    to = [one for one in given if _asks(world, one, queue.name, name)]
                    assert not to, f"{queue.name} may use {most} of {name} and uses {units} with {to}"


def _asks(world: World, job_id: JobId, quota: QueueName, resource: str) -> bool:
    entry = world.lives[job_id].entry
    return quota in world.above[entry.queue] and entry.request.get(resource) > 0


def check_reasons(world: World, decisions: Decisions) -> None:
    """Everybody who waits is told why, and the numbers say so."""
    started = {each.job_id for each in decisions.admissions}
    for life in world.in_state(State.WAITING):
        reason = decisions.reason_of(life.waiting)
        assert (reason is None) == (life.entry.job_id in started), f"{life.entry.job_id} waits and nobody says why"
        if reason is None:
            continue
        numbers = reason.numbers
        if reason.kind is WaitKind.QUEUE_AT_MAXIMUM:
            assert _number(numbers["used"]) + _number(numbers["asked"]) > _number(numbers["maximum"]), reason
        elif reason.kind is WaitKind.NO_ROOM and "free" in numbers:
            assert _number(numbers["asked"]) > _number(numbers["free"]), reason
        elif reason.kind is WaitKind.NO_ROOM and "mostFree" in numbers and numbers["tasks"] == 1:
            assert _number(numbers["asked"]) > _number(numbers["mostFree"]), reason


def check_one_reason(world: World, decisions: Decisions) -> None:
    """Asking about one job changes nothing, and if it is told that there is no room, there is none."""
    if not decisions.causes:
        return
    life = world.lives[world.chance.choice(sorted(decisions.causes))]
    asked = decide(world.ledger, world.now, world.rules, focus=life.entry.job_id)
    reason = asked.reason_of(life.waiting)
    assert reason is not None
    assert told(asked)[:4] == told(decisions)[:4], "asking about a job changed what is decided"
    if reason.kind is WaitKind.NO_ROOM and not asked.promises:
        left = world.ledger.copy()
        left.apply(decisions, world.now)
        queue = next(queue for queue in world.queues if queue.name == life.entry.queue)
        if can_place(life.entry.groups, queue, left.rooms):
            missed["room"] += 1


def _number(text: object) -> float:
    return float(str(text).removesuffix("m")) / (1000 if str(text).endswith("m") else 1)


def _add(total: Use, amounts: Mapping[str, int]) -> None:
    for name, units in amounts.items():
        total[name] = total.get(name, 0) + units


# Stretches of time.


def history(chance: Random, care: Care) -> None:
    """A whole life of a world: things happen, it comes to rest, and in part of them everybody ends."""
    world = World(chance)
    with watched(tries_everything=care is Care.SELDOM):
        for _ in range(chance.randrange(5, 15)):
            world.happen()
            if chance.random() < 0.8:
                cycle(world, care)
        settle(world, care)
        if care:
            drain(world)


def care_for(seed: int) -> Care:
    if seed % 20 == 0:
        return Care.SELDOM
    return Care.OFTEN if seed % 4 == 0 else Care.ALWAYS


def settle(world: World, care: Care) -> None:
    """Nothing comes from outside any more: everything comes to rest, and nobody is pushed around on the way."""
    evicted: Counter[JobId] = Counter()
    started: set[JobId] = set()
    grown: Counter[JobId] = Counter()
    shrunk: Counter[JobId] = Counter()
    most = 10 + 6 * len(world.lives)
    for _ in range(most):
        claimed = {life.entry.job_id for life in world.lives.values() if life.claim}
        decisions = cycle(world, care)
        evicted.update(each.job_id for each in decisions.evictions)
        grown.update(each.job_id for each in decisions.resizes if each.add)
        shrunk.update(each.job_id for each in decisions.resizes if each.drop)
        assert max(evicted.values(), default=0) <= 1, f"evicted again without cause: {evicted}"
        # Between queues. Inside one, a promise to another queue may hold an urgent job back until it is withdrawn.
        in_vain = started & {
            each.job_id
            for each in decisions.evictions
            if world.lives[each.job_id].entry.queue != world.lives[each.in_favour_of].entry.queue
        }
        assert not in_vain, f"{in_vain} started and was evicted for somebody who waited already"
        both = [job_id for job_id in grown if grown[job_id] > 1 and shrunk[job_id] > 1]
        assert not both, f"grown and shrunk again and again: {both}"
        admitted = {each.job_id for each in decisions.admissions}
        # Room that was freed for a job is its own until it starts; only then may one with a better right ask for it.
        started = set() if admitted & claimed else started | admitted
        if not world.all_leave() and not decisions.changes_anything:
            if decisions.wake_at is None:
                return
            assert decisions.wake_at > world.now, "woken for nothing"
            world.now = decisions.wake_at
            world.is_disturbed = True  # nobody ends in a quiet time, not even who should
            started.clear()  # who has waited too long by now has another right than before
    raise AssertionError(f"no rest after {most} cycles")


def drain(world: World) -> None:
    """Nobody new comes and everybody who runs ends: whoever can start at all has its turn."""
    for _ in range(4 * len(world.lives) + 10):
        while world.all_leave() or cycle(world, Care.ALWAYS).changes_anything:
            pass
        running = world.in_state(State.RUNNING)
        if not running:
            break
        world.end(world.chance.choice(running))
    hopeless = {life.entry.queue for life in world.lives.values() if not can_ever_start(world, life.entry)}
    queues = {queue.name: queue for queue in world.queues}
    left = [
        life.entry.job_id
        for life in world.lives.values()
        if can_ever_start(world, life.entry)
        # Where nobody may pass, one that can never start stops those behind it: the queue asked for that.
        and not (QueuePolicy.STRICT in queues[life.entry.queue].policies and life.entry.queue in hopeless)
    ]
    assert not left, f"never started: {left}"


def can_ever_start(world: World, entry: Waiting) -> bool:
    queues = {queue.name: queue for queue in world.queues}
    queue = queues[entry.queue]
    if queue.status is not QueueStatus.OPEN:
        return False
    if any(queues[level].over_maximum(entry.request) for level in world.above[entry.queue]):
        return False
    return not isinstance(place(entry.groups, queue, Rooms(world.nodes), {}), Shortage)
