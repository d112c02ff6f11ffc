"""Conditions: a step that runs only if something holds. The twin of run.yaml, which says more.

    paddleflow run create -yr run.yaml --watch
    python run.py

Arguments of the function are choices made when the pipeline is built: ``condition(95).run()``.
"""

from __future__ import annotations

from paddleflow.pipeline import Artifact, ContainerStep, FSOptions, MainFS, Pipeline


@Pipeline(name="condition", fs_options=FSOptions(main_fs=MainFS("examples", sub_path="condition")))
def condition(limit: int = 60) -> None:
    exam = ContainerStep(name="exam", outputs={"score": Artifact()}, command="echo 87 > {{score}}")
    score = exam.outputs["score"]
    celebrate = ContainerStep(
        name="celebrate",
        parameters={"limit": limit},
        condition=f"{score} >= " + "{{limit}}",
        command='mkdir -p runs/{{PF_RUN_ID}} && echo "{{limit}} reached" > runs/{{PF_RUN_ID}}/celebrated',
    )
    repeat = ContainerStep(
        name="repeat",
        parameters={"limit": limit},
        condition=f"{score} < " + "{{limit}}",
        command='mkdir -p runs/{{PF_RUN_ID}} && echo "{{limit}} missed" > runs/{{PF_RUN_ID}}/to-be-repeated',
    )
    prizes = ContainerStep(
        name="prizes",
        loop_argument=["bronze", "silver", "gold"],
        condition="{{PF_LOOP_ARGUMENT}} in (silver, gold)",
        command="mkdir -p runs/{{PF_RUN_ID}} && touch runs/{{PF_RUN_ID}}/{{PF_LOOP_ARGUMENT}}",
    ).after(exam)
    ContainerStep(name="after", outputs={"happened": Artifact()}, command="ls runs/{{PF_RUN_ID}} > {{happened}}").after(
        celebrate, repeat, prizes
    )


if __name__ == "__main__":
    _, run_id = condition().run()
    print(run_id)
