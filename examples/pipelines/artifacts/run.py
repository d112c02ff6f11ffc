"""Artifacts: a step writes where ``{{name}}`` points, the next one reads it. The twin of run.yaml.

    paddleflow run create -yr run.yaml --watch
    python run.py

Own artifacts are named in double braces. Those of another step may stand in an f-string: the input, its name and the
order of the steps follow from it.
"""

from __future__ import annotations

from paddleflow.pipeline import Artifact, ContainerStep, FSOptions, MainFS, Pipeline


@Pipeline(name="artifacts", fs_options=FSOptions(main_fs=MainFS("examples", sub_path="artifacts")))
def artifacts() -> None:
    measure = ContainerStep(name="measure", outputs={"raw": Artifact()}, command="python3 measure.py {{raw}}")
    split = ContainerStep(
        name="split",
        inputs={"raw": measure.outputs["raw"]},
        outputs={"days": Artifact()},
        command="python3 split.py",
    )
    ContainerStep(
        name="summary",
        outputs={"table": Artifact()},
        command=f"python3 summary.py {measure.outputs['raw']} {split.outputs['days']}" + " > {{table}}",
    )


if __name__ == "__main__":
    _, run_id = artifacts().run()
    print(run_id)
