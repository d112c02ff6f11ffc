"""Three steps: parameters, environment variables, who waits for whom. The twin of run.yaml.

    paddleflow run create -yr run.yaml --watch
    python run.py

A step belongs to the pipeline whose function makes it. Where a step uses a parameter of another, it waits for it; where
nothing says so, ``after`` does.
"""

from __future__ import annotations

from paddleflow.pipeline import ContainerStep, FSOptions, MainFS, Pipeline


@Pipeline(name="basic", fs_options=FSOptions(main_fs=MainFS("examples", sub_path="basic")))
def basic(count: int = 10) -> None:
    numbers = ContainerStep(
        name="numbers",
        parameters={"count": count},
        command="mkdir -p runs/{{PF_RUN_ID}}\nseq {{count}} > runs/{{PF_RUN_ID}}/numbers\n",
    )
    total = ContainerStep(
        name="total", command="python3 total.py runs/{{PF_RUN_ID}}/numbers > runs/{{PF_RUN_ID}}/total"
    ).after(numbers)
    ContainerStep(
        name="report",
        env={"UNIT": "points"},
        command=f'echo "{numbers.parameters["count"]} numbers make '
        '$(cat runs/{{PF_RUN_ID}}/total) $UNIT" > runs/{{PF_RUN_ID}}/report',
    ).after(total)


if __name__ == "__main__":
    _, run_id = basic().run()
    print(run_id)
