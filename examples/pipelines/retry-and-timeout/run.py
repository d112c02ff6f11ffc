"""Retry and timeout: a step that may fail now and then, and one that may hang. The twin of run.yaml, which says more.

    paddleflow run create -yr run.yaml --watch
    python run.py

The run fails, because its second step hangs and is ended.
"""

from __future__ import annotations

from paddleflow.pipeline import (
    FAIL_CONTINUE,
    Artifact,
    ContainerStep,
    FailureOptions,
    FSOptions,
    MainFS,
    Pipeline,
    RetryOptions,
)

FLAKY = """\
echo attempt >> {{attempts}}
test $(cat {{attempts}} | wc -l) -ge 3
"""


@Pipeline(
    name="retry-and-timeout",
    failure_options=FailureOptions(FAIL_CONTINUE),
    fs_options=FSOptions(main_fs=MainFS("examples", sub_path="retry-and-timeout")),
)
def retry_and_timeout() -> None:
    ContainerStep(
        name="flaky",
        outputs={"attempts": Artifact()},
        retry=RetryOptions(times=3, backoff=0.2),
        command=FLAKY,
    )
    ContainerStep(name="hangs", timeout=1, command="sleep 600")


if __name__ == "__main__":
    _, run_id = retry_and_timeout().run()
    print(run_id)
