"""A program that fills a cache directory: `python -m tests.pfs.cache.filler DIRECTORY LIMIT SEED [COUNT]`.

One line for each thing it did; an error nobody documented, or a wrong byte, ends it.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from paddleflow.domain.errors import DiskFull, Stale
from paddleflow.pfs.backstage import ObjectVersion
from paddleflow.pfs.cache import Cache
from tests.pfs.cache.kit import CHUNK, cache, content, version

VERSIONS = [version(f"file-{number}", size=number * 3 * CHUNK // 2) for number in range(12)]


def fill_some(kept: Cache, of: ObjectVersion, chance: random.Random) -> str:
    whole = content(of)
    if chance.random() < 0.2:
        kept.fill(of, whole).close()
        return "filled"
    with kept.open(of) as entry:
        if chance.random() < 0.5:
            entry.check(0, of.size)
        starts = list(range(0, of.size, CHUNK))
        chance.shuffle(starts)
        for start in starts[: chance.randint(1, len(starts) + 1)]:
            if not entry.has(start, CHUNK):
                entry.store(start, whole[start : start + CHUNK])
            assert os.pread(entry.fd, CHUNK, start) == whole[start : start + CHUNK], "what it has is right"
        return "verified" if entry.verify() else "stored"


def look(kept: Cache, of: ObjectVersion) -> str:
    whole = content(of)
    found = kept.find(of)
    if found is None:
        return "absent"
    with found:
        if found.is_verified():
            with Path(found.path).open("rb") as file:
                assert file.read() == whole, "a verified file is right"
            return "right"
        assert found.read(0, of.size) == whole, "what sums up is right"
        return "complete"


def main(directory: str, limit: str, seed: str, count: str = "0") -> None:
    kept = cache(directory, int(limit))
    chance = random.Random(int(seed))
    done = 0
    while not int(count) or done < int(count):
        of = chance.choice(VERSIONS)
        try:
            what = chance.choice([fill_some, fill_some, lambda kept, of, _: look(kept, of)])(kept, of, chance)
            if chance.random() < 0.02:
                kept.evict(of.store, of.key)
                what = "evicted"
        except DiskFull:
            what = "full"
        except (Stale, FileNotFoundError):
            what = "gone"  # evicted under our hands; FileNotFoundError is our own opening of a path
        done += 1
        sys.stdout.write(f"{what}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
