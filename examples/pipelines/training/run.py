"""A small real training: data, a network for each learning rate, the best of them, published. The twin of run.yaml.

    paddleflow run create -yr run.yaml --watch
    python run.py

Needs numpy where the steps run.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddleflow.pipeline import (
    Artifact,
    CacheOptions,
    ContainerStep,
    FSOptions,
    FSScope,
    MainFS,
    Parameter,
    Pipeline,
    RetryOptions,
)


@Pipeline(name="training", fs_options=FSOptions(main_fs=MainFS("examples", sub_path="training")))
def training(rates: Sequence[float] = (0.01, 0.3, 1.0), epochs: int = 400, least_accuracy: float = 0.9) -> None:
    data = ContainerStep(
        name="data",
        parameters={"seed": 7, "count": 1200},
        outputs={"points": Artifact()},
        cache_options=CacheOptions(enable=True, fs_scope=FSScope("examples", path="training/make_data.py")),
        command="python3 make_data.py --seed {{seed}} --count {{count}} --to {{points}}",
    )
    points = data.outputs["points"]
    to_try = Parameter(list(rates), type=list)
    train = ContainerStep(
        name="train",
        parameters={"rates": to_try, "epochs": epochs},
        loop_argument=to_try,
        inputs={"points": points},
        outputs={"model": Artifact()},
        retry=RetryOptions(times=1),
        timeout=600,
        command=("python3 train.py --points {{points}} --rate {{PF_LOOP_ARGUMENT}} --epochs {{epochs}} --to {{model}}"),
    )
    evaluate = ContainerStep(
        name="evaluate",
        inputs={"points": points, "models": train.outputs["model"]},
        outputs={"best": Artifact(), "accuracy": Artifact(), "table": Artifact()},
        command=(
            "python3 evaluate.py --points {{points}} --models {{models}} "
            "--best {{best}} --accuracy {{accuracy}} --table {{table}}"
        ),
    )
    ContainerStep(
        name="publish",
        parameters={"least_accuracy": least_accuracy},
        inputs={"best": evaluate.outputs["best"], "accuracy": evaluate.outputs["accuracy"]},
        condition="{{accuracy}} >= {{least_accuracy}}",
        command="python3 publish.py --model {{best}} --accuracy {{accuracy}} --to published",
    )


if __name__ == "__main__":
    _, run_id = training().run()
    print(run_id)
