"""The front of a mount: ``python -m paddleflow.pfs.front``, started by the holder.

One loop between the kernel, the workers, the holder, and whoever asks at the control socket. It may die at any moment:
what the kernel relies on is in the state directory, and the next front goes on from there.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import Any, TypeVar

from paddleflow.domain.errors import Unavailable
from paddleflow.pfs.cache import Cache
from paddleflow.pfs.control import ControlDesk, Tell
from paddleflow.pfs.fuse.holding import HolderLink
from paddleflow.pfs.fuse.loop import Loop
from paddleflow.pfs.fuse.notify import Notifier
from paddleflow.pfs.fuse.passthrough import Backings, NoBackings
from paddleflow.pfs.fuse.protocol import Opcode
from paddleflow.pfs.fuse.session import Session
from paddleflow.pfs.later import Later, start
from paddleflow.pfs.plan import MountPlan
from paddleflow.pfs.remote import RemoteBackstage
from paddleflow.pfs.vfs import Vfs

T = TypeVar("T")

_log = logging.getLogger(__name__)
_PR_SET_NAME = 15
_CATCH_UP_EVERY_S = 15.0
_BESIDE = 4


class Front:
    def __init__(self, link: HolderLink) -> None:
        welcome = link.welcome
        self._link = link
        self._plan = MountPlan.from_json(welcome.plan)
        self._negotiated = welcome.negotiated
        self._generation = welcome.generation
        self._began = time.time()
        self._loop = Loop()
        plan, options = self._plan, replace(self._plan.options, passthrough=welcome.negotiated.passthrough)
        self._backstage = RemoteBackstage(plan.worker_argv, json.dumps(plan.to_json()), plan.workers, self._loop)
        self._notifier = Notifier(welcome.fuse_fd)
        has_passthrough = welcome.negotiated.passthrough
        self._backings = Backings(link, welcome.table_fd) if has_passthrough else NoBackings()
        self._beside = ThreadPoolExecutor(_BESIDE, thread_name_prefix="beside")
        self._vfs = Vfs(
            self._backstage,
            plan.state_dir,
            options,
            clock=time.time,
            find=Cache(plan.levels).find,
            kernel=self._notifier,
            generation=welcome.generation,
            clashes=self._backings.clashes,
            aside=self._aside,
        )
        self._session = Session(
            welcome.fuse_fd, self._vfs, welcome.negotiated, self._backings, self._loop, ended=self._ended
        )
        self._is_over = False
        self._is_renewing = False
        self._unmounting: list[Tell] = []

    def run(self) -> None:
        self._listen()
        self._link.unmount_failed = self._unmount_failed
        self._loop.add(self._link.fileno(), self._on_holder)
        self._loop.attend(self._session)
        if self._generation:
            self._session.resume()
        self._loop.call_later(self._plan.heartbeat_s if self._generation else 1.0, self._heartbeat)
        self._catch_up()
        self._link.serving()
        self._loop.run()
        self._beside.shutdown(wait=True)
        self._session.close()
        self._vfs.close()
        if self._is_over:
            self._backstage.say_farewell()
        self._backstage.stop()

    def _listen(self) -> None:
        handlers = {
            "stats": self._stats,
            "unmount": self._unmount,
            "access": self._access,
        }
        try:
            ControlDesk(self._plan.state_dir, self._loop, handlers)
        except OSError as error:
            _log.error("nobody can ask this mount anything yet: %s", error)
            self._loop.call_later(_CATCH_UP_EVERY_S, self._listen)

    def _aside(self, work: Callable[[], T]) -> Later[T]:
        """What blocks and computes nothing, on a thread; the answer comes back in the loop."""
        answer: Later[T] = Later()

        def done(future: Future[T]) -> None:
            error = future.exception()
            if error is not None:
                self._loop.call_soon(lambda: answer.fail(error))
            else:
                self._loop.call_soon(lambda: answer.succeed(future.result()))

        self._beside.submit(work).add_done_callback(done)
        return answer

    def stop(self) -> None:
        """Let a successor take over."""
        self._loop.stop()

    def _ended(self) -> None:
        """The mount is gone. What is not in the store yet goes there first; the holder says how long that may take."""
        self._is_over = True
        self._loop.remove(self._session.fileno())

        def done(left: int | None, error: BaseException | None) -> None:
            if error is not None or left:
                _log.warning("%s files are left to the next mount: %s", left or "some", error or "see above")
            self._loop.stop()

        start(self._vfs.finish(), done)

    def _on_holder(self) -> None:
        if not self._link.receive():
            _log.warning("the holder is gone: this mount ends with this process")
            self._loop.remove(self._link.fileno())

    # The heart

    def _catch_up(self) -> None:
        """Upload what closing could not, or what an earlier mount left."""

        def done(left: int | None, error: BaseException | None) -> None:
            if error is not None or left:
                _log.warning("%s files wait to be uploaded: %s", left or "some", error or "the store did not take them")
            self._loop.call_later(_CATCH_UP_EVERY_S, self._catch_up)

        start(self._vfs.catch_up(), done)

    def _heartbeat(self) -> None:
        """One at a time: a server that does not answer must not take the worker's threads one by one."""
        self._loop.call_later(self._plan.heartbeat_s, self._heartbeat)
        if self._plan.access and not self._is_renewing:
            self._is_renewing = True
            answer: Later[Any] = self._backstage.ask(0, "heartbeat", self._vfs.counters())
            answer.when_done(lambda: self._on_renewal(answer))

    def _on_renewal(self, answer: Later[Any]) -> None:
        self._is_renewing = False
        try:
            renewal = answer.result()
        except Exception as error:  # noqa: BLE001 - a server that is away must not stop the mount; it is asked again
            _log.warning("the mount's leave was not renewed: %s", error)
            return
        if renewal is None:
            return
        if renewal.refusal:
            # A server that is away does not end a mount; one that says no does. What is open stays until it is closed.
            _log.warning("the mount ends: %s", renewal.refusal)
            self._link.unmount(lazy=True)
            return
        are_new = tuple(renewal.stores) != self._plan.stores
        self._replan(self._plan.renewed(tuple(renewal.stores), renewal.access))
        if are_new:
            for done in self._backstage.ask_all("replan", list(renewal.stores)):
                done.when_done(self._vfs.doubt_everything)

    def _replan(self, plan: MountPlan) -> None:
        self._plan = plan
        self._link.renew_plan(plan.to_json())
        self._backstage.tell_plan(json.dumps(plan.to_json()))

    # What people ask

    def _stats(self, wish: Mapping[str, Any], tell: Tell) -> None:
        usage: Later[Any] = self._backstage.ask(0, "cache_usage")

        def answer() -> None:
            try:
                cache = usage.result()
            except Exception as error:  # noqa: BLE001 - what went wrong is what the asker is told
                tell({"error": str(error)})
                return
            tell({**self._figures(), "cache": cache, "done": True})

        usage.when_done(answer)

    def _figures(self) -> dict[str, Any]:
        requests = {Opcode(number).name.lower(): count for number, count in enumerate(self._session.counts) if count}
        return {
            "name": self._plan.name,
            "mountpoint": self._plan.mountpoint,
            "options": asdict(self._plan.options),
            "passthrough": self._negotiated.passthrough,
            "front": os.getpid(),
            "holder": os.getppid(),
            "workers": self._backstage.pids,
            "generation": self._generation,
            "uptime_s": time.time() - self._began,
            "requests": requests,
            "waiting": self._session.waiting,
            "backings": len(self._backings),
            "counters": self._vfs.counters(),
        }

    def _unmount(self, wish: Mapping[str, Any], tell: Tell) -> None:
        """The asker hears nothing but the end of the connection when it works: there is nobody left to say so."""
        self._unmounting.append(tell)
        self._link.unmount(lazy=bool(wish.get("lazy", False)))

    def _unmount_failed(self, sentence: str) -> None:
        waiting, self._unmounting = self._unmounting, []
        for tell in waiting:
            tell({"error": sentence})

    def _access(self, wish: Mapping[str, Any], tell: Tell) -> None:
        """A server that was started anew gives its mounts a leave of its own."""
        self._replan(replace(self._plan, access=dict(wish["access"])))
        done: Later[Any] = self._backstage.ask(0, "use_access", dict(wish["access"]))
        done.when_done(lambda: _tell_result(done, "access", tell))


def _tell_result(answer: Later[Any], name: str, tell: Tell) -> None:
    try:
        value = answer.result()
    except Exception as error:  # noqa: BLE001 - what went wrong is what the asker is told
        tell({"error": str(error)})
    else:
        tell({name: value, "done": True})


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s front: %(message)s", stream=sys.stderr)
    ctypes.CDLL(None).prctl(_PR_SET_NAME, b"pfs-front", 0, 0, 0)
    os.umask(0o077)
    try:
        link = HolderLink.inherit()
    except Unavailable:
        return  # we stood by, and were not needed
    front = Front(link)
    signal.signal(signal.SIGTERM, lambda *_: front.stop())
    front.run()


if __name__ == "__main__":
    main()
