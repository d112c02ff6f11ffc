"""``elastic --contract trainer|launcher -- COMMAND``: keeps a Paddle trainer in step with its job's membership.

Paddle's processes cannot change their number while they run: at every change the command gets TERM (a good moment for
a checkpoint) and is started again with the variables of the new membership. A peer that goes away looks like a failure
at first, so a failed command is given a moment in which a new membership explains it. A task that is no longer a
member ends.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

from paddleflow.agents.programs import (
    START_DEADLINE_S,
    Failed,
    Program,
    on_stop_request,
    run,
    say,
    wait_ended,
    words_after,
)
from paddleflow.frameworks.paddle_trainers import Trainer, launcher_environment, trainer_environment

_USAGE = "elastic --contract trainer|launcher -- COMMAND"
_LOOK_EVERY_S = 0.5
_EXPLAINED_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Membership:
    generation: int
    ids: tuple[str, ...]
    trainers: tuple[Trainer, ...]


def read_membership(path: str) -> Membership | None:
    """None before the first was published."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not needed for one file
            document = json.load(file)
    except FileNotFoundError:
        return None
    tasks = document["tasks"]
    return Membership(
        generation=int(document["generation"]),
        ids=tuple(task["id"] for task in tasks),
        trainers=tuple(Trainer(host=task["host"], ports=tuple(task["ports"])) for task in tasks),
    )


def variables(membership: Membership, me: str, contract: str) -> dict[str, str]:
    rank = membership.ids.index(me)
    env = launcher_environment(membership.trainers, rank)
    if contract == "trainer":
        env |= trainer_environment(membership.trainers, rank, membership.generation)
    return env | {
        "PF_WORLD_SIZE": str(len(membership.ids)),
        "PF_TASK_RANK": str(rank),
        "PF_MEMBERSHIP_GENERATION": str(membership.generation),
    }


class Follower:
    def __init__(self, command: list[str], contract: str, env: Mapping[str, str]) -> None:
        self._command = command
        self._contract = contract
        self._env = env
        self._me = env["PF_TASK_ID"]
        self._file = env["PF_MEMBERSHIP_FILE"]
        self._program: Program | None = None
        self._stop_signal = 0

    def request_stop(self, number: int) -> None:
        self._stop_signal = number
        if self._program is not None:
            self._program.signal(number)

    def follow(self) -> int:
        membership = self._wait_newer(-1, START_DEADLINE_S)
        if self._stop_signal:
            return 128 + self._stop_signal
        if membership is None:
            raise Failed(f"no membership that has {self._me} was published within {START_DEADLINE_S:g} s")
        while self._me in membership.ids and not self._stop_signal:
            given = variables(membership, self._me, self._contract)
            say(f"membership {membership.generation}: rank {given['PF_TASK_RANK']} of {given['PF_WORLD_SIZE']}")
            program = self._start(given)
            newer = self._watch(program, membership.generation)
            if newer is None:
                return program.exit_code
            program.stop()
            membership = newer
        return 0

    def _start(self, given: Mapping[str, str]) -> Program:
        # What the user has set empty is not to be there at all.
        refused = {name for name in given if self._env.get(name) == ""}
        env = {name: value for name, value in {**self._env, **given}.items() if name not in refused}
        program = self._program = Program(self._command, env)
        if self._stop_signal:
            program.signal(self._stop_signal)  # The request came while the program was being started.
        return program

    def _watch(self, program: Program, generation: int) -> Membership | None:
        """A newer membership, or None when the program's end is the task's."""
        while not wait_ended((program,), _LOOK_EVERY_S):
            newer = self._newer(generation)
            if newer is not None and not self._stop_signal:
                return newer
        if program.exit_code == 0 or self._stop_signal:
            return None
        say(f"the command ended with exit code {program.exit_code}; waiting for a membership that explains it")
        return self._wait_newer(generation, _EXPLAINED_WITHIN_S)

    def _wait_newer(self, generation: int, deadline_s: float) -> Membership | None:
        until = time.monotonic() + deadline_s
        while time.monotonic() < until and not self._stop_signal:
            newer = self._newer(generation)
            if newer is not None and (generation >= 0 or self._me in newer.ids):
                return newer
            time.sleep(_LOOK_EVERY_S)
        return None

    def _newer(self, generation: int) -> Membership | None:
        found = read_membership(self._file)
        return found if found is not None and found.generation > generation else None


def main(arguments: list[str]) -> int:
    before, command = words_after(arguments, _USAGE)
    parser = argparse.ArgumentParser(prog="elastic")
    parser.add_argument("--contract", required=True, choices=("trainer", "launcher"))
    contract = parser.parse_args(before).contract
    if "PF_MEMBERSHIP_FILE" not in os.environ:
        raise Failed("PF_MEMBERSHIP_FILE is not set: this runtime publishes no membership")
    follower = Follower(command, contract, dict(os.environ))
    on_stop_request(follower.request_stop)
    return follower.follow()


if __name__ == "__main__":
    run(main)
