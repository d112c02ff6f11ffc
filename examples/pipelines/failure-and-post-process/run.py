"""When a step fails: what goes on, what is given up, what runs at the end. The twin of run.yaml, which says more.

    paddleflow run create -yr run.yaml --watch
    python run.py

The run fails, which is what it shows; the post-process is set on the pipeline, outside the function.
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
)

flow = Pipeline(
    name="failure-and-post-process",
    failure_options=FailureOptions(FAIL_CONTINUE),
    fs_options=FSOptions(main_fs=MainFS("examples", sub_path="failure-and-post-process")),
)
# Made outside the function below: it is none of the steps that wait for each other.
flow.set_post_process(
    ContainerStep(
        name="tidy-up",
        command='mkdir -p runs/{{PF_RUN_ID}} && echo "tidied up after {{PF_RUN_ID}}" > runs/{{PF_RUN_ID}}/tidy',
    )
)


@flow
def failure_and_post_process() -> None:
    prepare = ContainerStep(name="prepare", outputs={"data": Artifact()}, command="date +%s%N > {{data}}")
    broken = ContainerStep(
        name="broken",
        inputs={"data": prepare.outputs["data"]},
        outputs={"result": Artifact()},
        command="test -e repaired && cp {{data}} {{result}}",
    )
    ContainerStep(
        name="report",
        inputs={"result": broken.outputs["result"]},
        outputs={"text": Artifact()},
        command='echo "the result is $(cat {{result}})" > {{text}}',
    )
    ContainerStep(
        name="independent", outputs={"text": Artifact()}, command='echo "done all the same" > {{text}}'
    ).after(prepare)


if __name__ == "__main__":
    _, run_id = failure_and_post_process().run()
    print(run_id)
