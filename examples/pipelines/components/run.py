"""Components: written once and used several times. The twin of run.yaml.

    paddleflow run create -yr run.yaml --watch
    python run.py

In Python a component is a function that makes steps; calling it again makes them again.
"""

from __future__ import annotations

from paddleflow.pipeline import DAG, Artifact, ContainerStep, FSOptions, MainFS, Parameter, Pipeline


def player(name: str, seed: int) -> Artifact:
    """A dag that throws dice and takes their mean."""
    with DAG(name=name) as dag:
        dag.parameters["seed"] = seed
        dice = ContainerStep(
            name="dice",
            parameters={"seed": dag.parameters["seed"], "throws": Parameter(5, type=int)},
            outputs={"numbers": Artifact()},
            command="python3 dice.py throw {{seed}} {{throws}} > {{numbers}}",
        )
        mean = ContainerStep(
            name="mean",
            inputs={"numbers": dice.outputs["numbers"]},
            outputs={"mean": Artifact()},
            command="python3 dice.py mean {{numbers}} > {{mean}}",
        )
    return mean.outputs["mean"]


@Pipeline(name="components", fs_options=FSOptions(main_fs=MainFS("examples", sub_path="components")))
def components() -> None:
    ContainerStep(
        name="winner",
        inputs={"ann": player("ann", seed=1), "bob": player("bob", seed=2)},
        outputs={"name": Artifact()},
        command="python3 dice.py winner {{ann}} {{bob}} > {{name}}",
    )


if __name__ == "__main__":
    _, run_id = components().run()
    print(run_id)
