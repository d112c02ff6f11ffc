"""Results are used again when nothing they depend on has changed. The twin of run.yaml, which says more.

    paddleflow run create -yr run.yaml --watch
    python run.py

Steps are told apart by what they do, not by who wrote them: this run uses the results of run.yaml's.
"""

from __future__ import annotations

from paddleflow.pipeline import Artifact, CacheOptions, ContainerStep, FSOptions, FSScope, MainFS, Pipeline

A_DAY = 86400


@Pipeline(
    name="cache",
    cache_options=CacheOptions(enable=True, max_expired_time=A_DAY),
    fs_options=FSOptions(main_fs=MainFS("examples", sub_path="cache")),
)
def cache() -> None:
    words = ContainerStep(
        name="words",
        outputs={"list": Artifact()},
        cache_options=CacheOptions(
            enable=True, max_expired_time=A_DAY, fs_scope=[FSScope("examples", path="cache/data")]
        ),
        command="python3 words.py data > {{list}}",
    )
    ContainerStep(
        name="count",
        inputs={"list": words.outputs["list"]},
        outputs={"number": Artifact()},
        command="python3 -c 'import sys; print(len(sys.stdin.readlines()))' < {{list}} > {{number}}",
    )


if __name__ == "__main__":
    _, run_id = cache().run()
    print(run_id)
