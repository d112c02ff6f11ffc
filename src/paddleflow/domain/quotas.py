"""The tree of elastic quotas: where a queue may stand, and with what amounts.

::

    root            every logical quota of a cluster that names no other parent; it need not exist
    ├── research    guarantees of children add up to no more than the parent's; no maximum above the parent's
    │   ├── vision
    │   └── speech
    └── product

Whoever creates or changes a queue asks here first, with the queue as it would be. Only rules the queue itself takes
part in are judged, so a tree that came to violate one (nodes went away) can still be mended step by step: what lowers
a guarantee is never refused for lack of nodes. A capability queue stands in no tree; a physical quota owns nodes and
stands alone. Whether jobs are in the way is not known here: the handler looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from paddleflow.domain.clusters import Node
from paddleflow.domain.errors import InUse, Invalid, invalid_field
from paddleflow.domain.ids import QueueName
from paddleflow.domain.queues import (
    ISOLATION_LABEL,
    NODE_QUOTA_LABEL,
    PARENT_LABEL,
    PHYSICAL,
    PUBLIC,
    TREE_ROOT,
    Queue,
    QuotaType,
)
from paddleflow.domain.resources import NOTHING, Resources, format_units

LOGICAL = "logical"
LARGEST_WEIGHT = 1_000_000
_AMOUNTS = "InvalidComputeResource"
_FIELD = "QueueInvalidField"
_Tree = Mapping[QueueName, Queue]


def check_quota_tree(queue: Queue, others: Iterable[Queue], nodes: Iterable[Node]) -> Queue:
    """The queue as it may be stored, or an error that names the field, the numbers and the fix.

    ``others`` are the stored queues; one of the same name is what this queue was before. ``nodes`` are those known; a
    cluster that has told of none yet limits nothing.
    """
    stored = tuple(others)
    before = next((other for other in stored if other.name == queue.name), None)
    here = [node for node in nodes if node.cluster == queue.cluster]
    _check_alone(queue, before)
    if queue.quota_type is not QuotaType.ELASTIC:
        return queue
    if queue.is_physical:
        return _with_own_nodes(queue, here)
    tree = quota_tree(queue.cluster, (*(other for other in stored if other.name != queue.name), queue))
    _check_parent(queue, tree, stored)
    above = _ancestors(queue, tree)
    _check_maxima(queue, above, _descendants(queue, tree))
    _check_guarantees(queue, above, children_of(queue, tree.values()), tree)
    if not above and here:
        was = quota_tree(queue.cluster, stored)
        _check_nodes(queue, tree, was, _sum(node.capacity for node in here if _owner(node) == PUBLIC))
    return queue


def check_may_delete(queue: Queue, others: Iterable[Queue]) -> None:
    """A quota goes after those under it."""
    below = children_of(queue, others)
    if below:
        raise InUse(
            f"queue[{queue.name}] is the parent of {_listed(below)}; delete them or give them another parent first",
            code="QueueIsInUse",
            details={"children": [child.name for child in below]},
        )


def quota_tree(cluster: str, queues: Iterable[Queue]) -> _Tree:
    """The logical quotas of one cluster by name. Those whose parent is not among them are its tops."""
    return {queue.name: queue for queue in queues if queue.cluster == cluster and _is_logical(queue)}


def parent_of(queue: Queue, queues: Iterable[Queue]) -> Queue | None:
    """The quota above; None for a top of the tree and for queues that stand in none."""
    return None if queue.parent is None else quota_tree(queue.cluster, queues).get(queue.parent)


def children_of(queue: Queue, queues: Iterable[Queue]) -> tuple[Queue, ...]:
    """The quotas directly under this one."""
    if not _is_logical(queue):
        return ()
    tree = quota_tree(queue.cluster, queues).values()
    return tuple(other for other in tree if other.parent == queue.name and other.name != queue.name)


def _is_logical(queue: Queue) -> bool:
    return queue.quota_type is QuotaType.ELASTIC and not queue.is_physical


def _check_alone(queue: Queue, before: Queue | None) -> None:
    """What can be judged without looking at any other queue."""
    if not 1 <= queue.weight <= LARGEST_WEIGHT:
        raise invalid_field("weight", f"{queue.weight} is not between 1 and {LARGEST_WEIGHT}", code=_FIELD)
    if queue.quota_type is not QuotaType.ELASTIC:
        if not queue.min_resources.is_zero:
            raise Invalid("minResources is only for elasticQuota queues", code=_AMOUNTS)
        return
    isolation = queue.location.get(ISOLATION_LABEL, LOGICAL)
    if isolation not in (LOGICAL, PHYSICAL):
        raise invalid_field(
            f"location.{ISOLATION_LABEL}", f"[{isolation[:80]}] is not {LOGICAL} or {PHYSICAL}", code=_FIELD
        )
    if before is not None and before.is_physical != queue.is_physical:
        was = PHYSICAL if before.is_physical else LOGICAL
        raise invalid_field(
            f"location.{ISOLATION_LABEL}",
            f"queue[{queue.name}] is {was} and cannot become {isolation}; create another queue instead",
            code=_FIELD,
        )
    for name, units in queue.min_resources:
        most = queue.max_resources.get(name)
        if units > most and not queue.is_physical:
            raise _bad_amount(
                f"minResources.{name}",
                f"maxResources less than minResources: {_spell(name, units)} is guaranteed and "
                f"{_spell(name, most)} allowed; raise maxResources.{name} or lower minResources.{name}",
            )


def _with_own_nodes(queue: Queue, nodes: Sequence[Node]) -> Queue:
    """A physical quota is guaranteed all that its own nodes have, up to its maximum, and may not be promised more."""
    location = {key: value for key, value in queue.location.items() if key != PARENT_LABEL}
    if not nodes:
        return replace(queue, location=location)
    owned = _owned(queue, nodes)
    over = next((name for name, units in queue.max_resources if units > owned.get(name)), None)
    if over is not None:
        raise _bad_amount(
            f"maxResources.{over}",
            f"{_spell(over, queue.max_resources.get(over))} is more than the {_spell(over, owned.get(over))} of the "
            f"nodes labelled {NODE_QUOTA_LABEL}={queue.name}; lower it, or label more nodes",
        )
    return replace(queue, location=location, min_resources=guarantee_of_own_nodes(queue, nodes))


def guarantee_of_own_nodes(queue: Queue, nodes: Iterable[Node]) -> Resources:
    """What a physical quota is guaranteed while these are the nodes."""
    owned = _owned(queue, nodes)
    return Resources({name: min(units, owned.get(name)) for name, units in queue.max_resources if owned.get(name)})


def _owned(queue: Queue, nodes: Iterable[Node]) -> Resources:
    return _sum(node.capacity for node in nodes if node.cluster == queue.cluster and _owner(node) == queue.name)


def _check_parent(queue: Queue, tree: _Tree, stored: Sequence[Queue]) -> None:
    parent = queue.parent
    if parent is None or parent in tree or parent == TREE_ROOT:
        return
    named = next((other for other in stored if other.name == parent), None)
    if named is None:
        problem = f"queue[{parent[:80]}] does not exist; create it first, or leave the parent out"
    elif named.cluster != queue.cluster:
        problem = f"queue[{parent}] belongs to cluster[{named.cluster}] and this one to cluster[{queue.cluster}]"
    else:
        problem = f"queue[{parent}] is not a logical elasticQuota, and only such a one has others under it"
    raise invalid_field(f"location.{PARENT_LABEL}", problem, code=_FIELD)


def _ancestors(queue: Queue, tree: _Tree) -> list[Queue]:
    """From the parent up; a circle is refused by its path."""
    path = [queue]
    while (parent := tree.get(path[-1].parent or QueueName(""))) is not None:
        names = [one.name for one in path]
        if parent.name in names:
            told = " -> ".join((*names[names.index(parent.name) :], parent.name))
            raise invalid_field(
                f"location.{PARENT_LABEL}", f"a quota cannot stand under itself: {told}; name another", code=_FIELD
            )
        path.append(parent)
    return path[1:]


def _descendants(queue: Queue, tree: _Tree) -> list[Queue]:
    found: list[Queue] = []
    level = [queue]
    while level:
        level = [child for parent in level for child in children_of(parent, tree.values())]
        found.extend(level)
    return found


def _check_maxima(queue: Queue, above: Sequence[Queue], below: Sequence[Queue]) -> None:
    """Nobody may use more than those above; what a quota does not name it does not limit."""
    for upper in above:
        for lower in (queue, *below):
            over = lower.max_resources.over_named_limit(upper.max_resources)
            if over is not None:
                more, less = _spell(over, lower.max_resources.get(over)), _spell(over, upper.max_resources.get(over))
                raise _bad_amount(
                    f"maxResources.{over}",
                    f"queue[{lower.name}] may use {more} and queue[{upper.name}] above it {less}; "
                    f"give at most {less}, or raise that of queue[{upper.name}] first",
                )
    for lower in below:
        over = lower.max_resources.over_named_limit(queue.max_resources)
        if over is not None:
            more, less = _spell(over, lower.max_resources.get(over)), _spell(over, queue.max_resources.get(over))
            raise _bad_amount(
                f"maxResources.{over}",
                f"{less} is less than queue[{lower.name}] under it may use; "
                f"give at least {more}, or lower that of queue[{lower.name}] first",
            )


def _check_guarantees(queue: Queue, above: Sequence[Queue], below: Sequence[Queue], tree: _Tree) -> None:
    """A parent passes its own guarantee on, and cannot pass on more."""
    promised = _sum(child.min_resources for child in below)
    for name, units in promised:
        own = queue.min_resources.get(name)
        if units > own:
            raise _bad_amount(
                f"minResources.{name}",
                f"{_spell(name, own)} is less than the {_spell(name, units)} that {_listed(below)} under it are "
                f"guaranteed together; give at least {_spell(name, units)}, or lower theirs first",
            )
    if not above:
        return
    parent = above[0]
    shared = _sum(child.min_resources for child in children_of(parent, tree.values()))
    for name, units in queue.min_resources:
        own, together = parent.min_resources.get(name), shared.get(name)
        if units and together > own:
            raise _bad_amount(
                f"minResources.{name}",
                f"with {_spell(name, units)} the quotas under queue[{parent.name}] are guaranteed "
                f"{_spell(name, together)} together, and it has {_spell(name, own)}; "
                f"give at most {_spell(name, max(0, own - together + units))}, or raise that of queue[{parent.name}]",
            )


def _check_nodes(queue: Queue, tree: _Tree, was: _Tree, capacity: Resources) -> None:
    """What the tops of the tree are guaranteed must be there: nodes that belong to everybody."""
    promised, before = _promised(tree), _promised(was)
    for name, units in promised:
        if units <= max(capacity.get(name), before.get(name)):
            continue
        own = queue.min_resources.get(name)
        most = max(0, capacity.get(name) - units + own)
        raise _bad_amount(
            f"minResources.{name}",
            f"with {_spell(name, own)} the queues of cluster[{queue.cluster}] are guaranteed {_spell(name, units)} "
            f"together, and its public nodes have {_spell(name, capacity.get(name))}; "
            f"give at most {_spell(name, most)}, or add nodes",
        )


def _promised(tree: _Tree) -> Resources:
    return _sum(queue.min_resources for queue in tree.values() if queue.parent not in tree)


def _owner(node: Node) -> str:
    return node.labels.get(NODE_QUOTA_LABEL, PUBLIC)


def _sum(amounts: Iterable[Resources]) -> Resources:
    return sum(amounts, NOTHING)


def _spell(name: str, units: int) -> str:
    return format_units(name, units)


def _listed(queues: Iterable[Queue]) -> str:
    names = sorted(queue.name for queue in queues)
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _bad_amount(field: str, problem: str) -> Invalid:
    return invalid_field(field, problem, code=_AMOUNTS)
