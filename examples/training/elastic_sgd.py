"""Data-parallel training that goes on while workers come and go. Standard library only.

    python elastic_sgd.py --checkpoint /data/sgd.json

Every worker computes a gradient on its own share of the data. The worker of rank 0 keeps the weights: in each step it
hands them out, collects one gradient from every other member, and takes the mean. Who the members are is read before
each step from the file PF_MEMBERSHIP_FILE, so a change of size costs one step at most and no progress. On TERM the
weights are saved; started again, training continues there.
"""

import argparse
import json
import os
import random
import signal
import socket
import sys
import time
from pathlib import Path

TRUTH = [2.0, -3.0, 0.5, 1.0]
EXAMPLES, RATE = 240, 0.02


def data():
    """The same for everybody: inputs, and outputs of a line that training has to find."""
    chance = random.Random(7)
    inputs = [[chance.uniform(-1, 1) for _ in TRUTH] for _ in range(EXAMPLES)]
    return [(x, sum(a * b for a, b in zip(x, TRUTH, strict=True)) + chance.gauss(0, 0.01)) for x in inputs]


def gradient(weights, share):
    slope, loss = [0.0] * len(weights), 0.0
    for inputs, output in share:
        error = sum(w * x for w, x in zip(weights, inputs, strict=True)) - output
        loss += error * error / len(share)
        for n, x in enumerate(inputs):
            slope[n] += 2 * error * x / len(share)
    return slope, loss


def members():
    return json.loads(Path(os.environ["PF_MEMBERSHIP_FILE"]).read_text())["tasks"]


class Stop(Exception):
    """This task is told to go."""


def on_term(number, frame):
    raise Stop


def say(channel, message):
    channel.write(json.dumps(message) + "\n")
    channel.flush()


def lead(me, options):
    """Rank 0: keep the weights, and the step going."""
    weights, first = [0.0] * len(TRUTH), 0
    if options.checkpoint.exists():
        saved = json.loads(options.checkpoint.read_text())
        weights, first = saved["weights"], saved["step"]
        print(f"continuing at step {first}", flush=True)
    peers, door, everything, step = {}, socket.create_server((me["host"], me["ports"][0])), data(), first
    try:
        for step in range(first, options.steps):
            ranked = gather(door, peers, me)
            shares = [everything[rank :: len(ranked) + 1] for rank in range(len(ranked) + 1)]
            results = [gradient(weights, shares[0])]
            for rank, peer in enumerate(ranked, start=1):
                try:
                    say(peers[peer], {"weights": weights, "rank": rank, "size": len(ranked) + 1})
                    results.append(json.loads(peers[peer].readline()))
                except (OSError, ValueError):
                    peers.pop(peer).close()  # it left in the middle of the step: the others' gradients will do
            mean = [sum(slopes) / len(results) for slopes in zip(*(slope for slope, _ in results), strict=True)]
            weights = [w - RATE * m for w, m in zip(weights, mean, strict=True)]
            if step % options.report == 0:
                loss = sum(loss for _, loss in results) / len(results)
                print(f"step {step} size {len(results)} loss {loss:.6f}", flush=True)
            time.sleep(options.pause)
    except Stop:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        print(f"told to stop at step {step}", flush=True)
    save(options.checkpoint, {"weights": weights, "step": step})
    for channel in peers.values():
        say(channel, {"done": True})


def save(path, state):
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(state))
    fresh.replace(path)  # whole at any moment


def gather(door, peers, me):
    """The other members by rank, all connected. Whoever is no member any more is forgotten."""
    while True:
        others = [task["id"] for task in members() if task["id"] != me["id"]]
        for gone in peers.keys() - set(others):
            peers.pop(gone).close()
        if peers.keys() == set(others):
            return others
        door.settimeout(0.2)  # the membership may change while somebody is waited for
        try:
            channel = door.accept()[0].makefile("rw")
        except TimeoutError:
            continue
        peers[json.loads(channel.readline())["id"]] = channel


def follow(me, leader):
    """Any other rank: a gradient for every set of weights."""
    while True:
        try:
            channel = socket.create_connection((leader["host"], leader["ports"][0])).makefile("rw")
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    say(channel, {"id": me["id"]})
    everything = data()
    try:
        for line in channel:
            order = json.loads(line)
            if "done" in order:
                return
            say(channel, gradient(order["weights"], everything[order["rank"] :: order["size"]]))
    except Stop:
        print("leaving", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", required=True, type=Path)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--report", type=int, default=10, help="print every so many steps")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds a step takes longer, to have time to watch")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, on_term)
    tasks = members()
    me = next(task for task in tasks if task["id"] == os.environ["PF_TASK_ID"])
    if me["id"] == tasks[0]["id"]:
        lead(me, options)
    else:
        follow(me, tasks[0])


if __name__ == "__main__":
    try:
        main()
    except Stop:
        sys.exit(0)
