"""What must not be done twice: a record of each change of names, begun and done, kept by request.

The kernel sends a request again when the process that had it died. Reading twice harms nobody; making a directory twice
is an error that the program would see. So a change is written down before it begins and, with its answer, when it is
done. A request that comes again and was done gets the answer of then; one that was only begun is done *tolerantly*:
what it wanted and finds already so, counts as its own work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from paddleflow.pfs.records import RecordLog, read_records

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
        self._begun: dict[int, str] = {}
        self._done: dict[int, Answer] = {}
        if is_successor:
            self._load(path)
        records = self._what_matters()
        self._records = len(records)
        self._log = RecordLog(path, records, is_continued=is_successor)

    def begin(self, unique: int, what: str) -> None:
        """OSError when that cannot be written down: the change must not begin. ``what`` is for people who read the
        journal; nothing is decided by it."""
        self._log.append(f"b {unique} {what}")
        self._begun[unique] = what
        self._records += 1

    def done(self, unique: int, answer: Answer) -> None:
        self._begun.pop(unique, None)
        self._done[unique] = answer
        self._log.append_or_wait(_done(unique, answer))
        self._records += 1
        if self._records > _REWRITE_AFTER:
            records = self._what_matters()
            self._log.write_anew(records)
            self._records = len(records)

    def answer_of(self, unique: int) -> Answer | None:
        return self._done.get(unique)

    def was_begun(self, unique: int) -> bool:
        return unique in self._begun

    def close(self) -> None:
        self._log.close()

    def _load(self, path: str) -> None:
        for record in read_records(path):
            kind, unique, rest = record.split(" ", 2)
            if kind == "b":
                self._begun[int(unique)] = rest
            else:
                number, node, handle = rest.split(" ")
                self._begun.pop(int(unique), None)
                self._done[int(unique)] = Answer(int(number), int(node), int(handle))

    def _what_matters(self) -> list[str]:
        for unique in list(self._done)[:-_KEPT]:
            del self._done[unique]
        begun = [f"b {unique} {what}" for unique, what in self._begun.items()]
        return begun + [_done(unique, answer) for unique, answer in self._done.items()]


def _done(unique: int, answer: Answer) -> str:
    return f"d {unique} {answer.errno} {answer.node} {answer.handle}"
