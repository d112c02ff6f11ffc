"""Dags inside dags, and a loop over one of them. The twin of run.yaml, which says more.

    paddleflow run create -yr run.yaml --watch
    python run.py

References may cross the borders of dags: what has to be handed through from dag to dag is found by the compiler.
"""

from __future__ import annotations

from paddleflow.pipeline import DAG, Artifact, ContainerStep, FSOptions, MainFS, Pipeline


@Pipeline(name="sub-dag", fs_options=FSOptions(main_fs=MainFS("examples", sub_path="sub-dag")))
def sub_dag(least: int = 4) -> None:
    with DAG(name="each-text", loop_argument=["rain", "sun"]) as each_text:
        each_text.parameters["least"] = least
        with DAG(name="words") as words:
            words.parameters["name"] = each_text.loop_argument.item
            split = ContainerStep(
                name="split",
                outputs={"words": Artifact()},
                command=f"python3 words.py split texts/{words.parameters['name']}.txt" + " > {{words}}",
            )
            choose = ContainerStep(
                name="choose",
                parameters={"least": each_text.parameters["least"]},
                inputs={"words": split.outputs["words"]},
                outputs={"chosen": Artifact()},
                command="python3 words.py choose {{words}} {{least}} > {{chosen}}",
            )
        count = ContainerStep(
            name="count",
            inputs={"words": choose.outputs["chosen"]},
            outputs={"counts": Artifact()},
            command="python3 words.py count {{words}} > {{counts}}",
        )
    ContainerStep(
        name="total",
        inputs={"counts": count.outputs["counts"]},
        outputs={"total": Artifact()},
        command="python3 words.py total {{counts}} > {{total}}",
    )


if __name__ == "__main__":
    _, run_id = sub_dag().run()
    print(run_id)
