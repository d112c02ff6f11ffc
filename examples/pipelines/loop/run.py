"""Loops: over a list, over a parameter, over the content of an artifact. The twin of run.yaml, which says more.

    paddleflow run create -yr run.yaml --watch
    python run.py

What a loop runs over may be a list, or a parameter or artifact itself.
"""

from __future__ import annotations

from paddleflow.pipeline import Artifact, ContainerStep, FSOptions, MainFS, Parameter, Pipeline


@Pipeline(name="loop", parallelism=4, fs_options=FSOptions(main_fs=MainFS("examples", sub_path="loop")))
def loop() -> None:
    letters = ContainerStep(
        name="letters",
        loop_argument=["a", "b", "c"],
        outputs={"line": Artifact()},
        command='echo "letter {{PF_LOOP_ARGUMENT}}" > {{line}}',
    )
    sides = Parameter([2, 3], type=list)
    squares = ContainerStep(
        name="squares",
        parameters={"sides": sides},
        loop_argument=sides,
        outputs={"line": Artifact()},
        command='echo "square $(({{PF_LOOP_ARGUMENT}} * {{PF_LOOP_ARGUMENT}}))" > {{line}}',
    )
    choose = ContainerStep(
        name="choose", outputs={"names": Artifact()}, command="""echo '["ann", "bob"]' > {{names}}"""
    )
    greet = ContainerStep(
        name="greet",
        loop_argument=choose.outputs["names"],
        outputs={"line": Artifact()},
        command='echo "hello {{PF_LOOP_ARGUMENT}}" > {{line}}',
    )
    lines = " ".join(str(each.outputs["line"]) for each in (letters, squares, greet))
    ContainerStep(name="gather", outputs={"all": Artifact()}, command=f"python3 gather.py {lines}" + " > {{all}}")


if __name__ == "__main__":
    _, run_id = loop().run()
    print(run_id)
