"""The program of a mount's worker: ``python -m paddleflow.wiring.storage_worker FD``.

Its number and the mount's plan come as the first message. Worker 0 also keeps the cache within its limits, and renews
the mount's leave and reports to the server when the front's heart beats.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from paddleflow.domain.errors import Denied
from paddleflow.pfs.cache import Cache
from paddleflow.pfs.plan import MountPlan
from paddleflow.pfs.stagehand import Stagehand
from paddleflow.pfs.wire import Inbox, receive
from paddleflow.pfs.worker import die_with_parent, serve
from paddleflow.wiring.mount_access import Renewal, desk_of, give_back, renew, report
from paddleflow.wiring.stores import StorePlan, open_routes

_log = logging.getLogger(__name__)
_TIDY_EVERY_S = 10.0
_COUNTED_EVERY_S = 60.0
"""Counting looks at every file of the cache; reports may be a little old."""
_SHOWN_FOR_S = 2.0
_ANSWERED = (
    "stat",
    "list",
    "fetch",
    "read",
    "put",
    "delete",
    "make_directory",
    "remove_directory",
    "rename",
    "set_modes",
    "make_link",
    "xattrs",
    "set_xattr",
    "remove_xattr",
    "usage",
)


class Desk:
    """What this worker does for the front, by name."""

    def __init__(self, plan: MountPlan) -> None:
        self._plan = plan
        self._cache = Cache(plan.levels)
        self._stagehand = Stagehand(open_routes([StorePlan(**store) for store in plan.stores]), self._cache)
        self._renewing = threading.Lock()

    def methods(self) -> Mapping[str, Callable[..., Any]]:
        answered: dict[str, Callable[..., Any]] = {name: getattr(self._stagehand, name) for name in _ANSWERED}
        return answered | {
            "cache_usage": self.cache_usage,
            "heartbeat": self.heartbeat,
            "use_access": self.use_access,
            "farewell": self.farewell,
            "replan": self.replan,
        }

    def heartbeat(self, counters: Mapping[str, int]) -> Renewal | None:
        """Renew the leave when it is time, and tell the server what the cache holds; what changed goes to the front."""
        if not self._plan.access:
            return None
        with self._renewing:
            desk = desk_of(self._plan.access)
            try:
                renewal = renew(self._plan, desk)
                self._plan = self._plan.renewed(renewal.stores, renewal.access)
                report(self._plan, desk, self._cache.usage(max_age_s=_COUNTED_EVERY_S), counters)
            except Denied as error:
                return Renewal(refusal=error.message)
            finally:
                desk.close()
            return renewal

    def use_access(self, access: Mapping[str, Any]) -> None:
        with self._renewing:
            self._plan = self._plan.renewed(self._plan.stores, access)

    def farewell(self) -> None:
        """The mount is gone for good."""
        if not self._plan.access:
            return
        with self._renewing:
            give_back(self._plan.access)

    def cache_usage(self) -> Mapping[str, Any]:
        """Of this filesystem, and of all that share the directories."""
        usage = self._cache.usage(max_age_s=_SHOWN_FOR_S)
        mine = [usage.stores[one] for one in self._stagehand.routes.identities if one in usage.stores]
        return {
            "bytes": sum(one.bytes for one in mine),
            "files": sum(one.files for one in mine),
            "all_bytes": usage.bytes,
            "all_files": usage.files,
            "limit": usage.limit,
        }

    def replan(self, stores: list[Mapping[str, Any]]) -> None:
        """Links came or went, or credentials changed: what is asked from now on goes to these."""
        self._stagehand.use_routes(open_routes([StorePlan(**store) for store in stores]))

    def tidy_for_ever(self) -> None:
        waiting = threading.Event()
        while not waiting.wait(_TIDY_EVERY_S):
            try:
                self._cache.trim()
            except OSError:  # a disk that fails now may work later, and nothing but room depends on it
                _log.exception("the cache could not be tidied")


def main() -> None:
    die_with_parent()
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s worker: %(message)s", stream=sys.stderr
    )
    end = socket.socket(fileno=int(sys.argv[1]))
    messages = receive(end, Inbox())
    index, data = next(messages)
    plan = MountPlan.from_json(json.loads(data))
    os.umask(0o077)
    desk = Desk(plan)
    if index == 0:
        threading.Thread(target=desk.tidy_for_ever, name="tidy", daemon=True).start()
    serve(end, messages, desk.methods(), plan.threads)


if __name__ == "__main__":
    main()
