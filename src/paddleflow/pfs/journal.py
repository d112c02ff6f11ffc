"""What must not be done twice: a record of each change of names, begun and done, kept by request.

The kernel sends a request again when the process that had it died. Reading twice harms nobody; making a directory twice
is an error that the program would see. So a change is written down before it begins and, with its answer, when it is
done. A request that comes again and was done gets the answer of then; one that was only begun is done *tolerantly*:
what it wanted and finds already so, counts as its own work.

Records go out with one ``write`` each, without ``fsync``: they must outlive the process, not the machine, for the
kernel's requests do not outlive the machine either.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

_KEPT: Final = 512
"""Answers kept. The kernel is answered as soon as a change is done, so all but the last few are history."""

_REWRITE_AFTER: Final = 8192


@dataclass(frozen=True, slots=True)
class Answer:
    """How a change ended, as far as another process must know it to answer the same."""

    errno: int = 0
    node: int = 0
    handle: int = 0


class Journal:
    def __init__(self, path: str, *, is_successor: bool) -> None:
        self._path = path
        self._begun: dict[int, str] = {}
        self._done: dict[int, Answer] = {}
        self._records = 0
        if is_successor:
            self._load()
        self._fd = -1
        self._rewrite()

    def begin(self, unique: int, what: str) -> None:
        """``what`` is for people who read the journal; nothing is decided by it."""
        self._begun[unique] = what
        self._append(f"b {unique} {what}\0")

    def done(self, unique: int, answer: Answer) -> None:
        self._begun.pop(unique, None)
        self._done[unique] = answer
        self._append(f"d {unique} {answer.errno} {answer.node} {answer.handle}\0")
        if self._records > _REWRITE_AFTER:
            self._rewrite()

    def answer_of(self, unique: int) -> Answer | None:
        return self._done.get(unique)

    def was_begun(self, unique: int) -> bool:
        return unique in self._begun

    def close(self) -> None:
        os.close(self._fd)

    def _append(self, record: str) -> None:
        os.write(self._fd, record.encode("utf-8", "surrogateescape"))
        self._records += 1

    def _load(self) -> None:
        try:
            with open(self._path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return  # the predecessor died before its first change
        # A record cut off by death was never acted upon: the act comes after the write.
        for record in content.split(b"\0")[:-1]:
            kind, unique, rest = record.decode("utf-8", "surrogateescape").split(" ", 2)
            if kind == "b":
                self._begun[int(unique)] = rest
            else:
                number, node, handle = rest.split(" ")
                self._begun.pop(int(unique), None)
                self._done[int(unique)] = Answer(int(number), int(node), int(handle))

    def _rewrite(self) -> None:
        """Start a new file with what still matters, and put it in the place of the old one at once."""
        for unique in list(self._done)[:-_KEPT]:
            del self._done[unique]
        fresh = f"{self._path}.new"
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        records = [f"b {unique} {what}\0" for unique, what in self._begun.items()]
        records += [f"d {unique} {it.errno} {it.node} {it.handle}\0" for unique, it in self._done.items()]
        os.write(fd, "".join(records).encode("utf-8", "surrogateescape"))
        os.replace(fresh, self._path)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._records = fd, len(records)
