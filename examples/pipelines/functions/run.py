"""Plain functions as steps: nothing to learn but two marks for files. run.yaml is what this compiles to.

    python run.py
    paddleflow run create -yr run.yaml --watch

``Input`` and ``Output`` are artifacts, in the job the pathlib.Path of a file or directory; all other arguments are
parameters; what is returned is the artifact ``result``, as JSON. A function may use what its module imports and
defines: that travels along, and so do modules of your own. Only packages have to be installed where the step runs.
"""

from __future__ import annotations

import json
import statistics

from paddleflow.pipeline import CacheOptions, FSOptions, Input, MainFS, Output, Pipeline, step

DIGITS = 3


def rounded(value: float) -> float:
    return round(value, DIGITS)


@step(cache_options=CacheOptions(enable=True))
def measure(count: int, data: Output) -> list[int]:
    """Two things come out: a file, and the list of the limits to try."""
    data.write_text("\n".join(str(at * at % 17) for at in range(count)))
    return [4, 8]


@step
def above(data: Input, limit: int) -> dict[str, float]:
    chosen = [int(line) for line in data.read_text().split() if int(line) > limit]
    return {"limit": limit, "count": len(chosen), "mean": rounded(statistics.fmean(chosen))}


@step(retry=2, timeout=60)
def report(parts: list[Input], title: str, page: Output) -> None:
    lines = [f"above {one['limit']}: {one['count']}, mean {one['mean']}" for one in map(read, parts)]
    page.write_text("\n".join([title, *lines, ""]))


def read(path: Input) -> dict[str, float]:
    found: dict[str, float] = json.loads(path.read_text())
    return found


@Pipeline(name="functions", fs_options=FSOptions(main_fs=MainFS("examples", sub_path="functions")))
def functions(count: int = 20) -> None:
    measured = measure(count)
    parts = above.loop(limit=measured.result)(measured.data)
    report([parts.result], title="Squares")


if __name__ == "__main__":
    _, run_id = functions().run()
    print(run_id)
