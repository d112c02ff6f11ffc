"""Several filesystems: the main one, and extra ones for every step or for one. The twin of run.yaml.

    paddleflow fs create reference local://$PWD/reference      # once, in this directory
    paddleflow run create -yr run.yaml --watch
    python run.py

Whole pipelines have ``fs_options``, single steps ``extra_fs``.
"""

from __future__ import annotations

from paddleflow.pipeline import Artifact, ContainerStep, ExtraFS, FSOptions, MainFS, Pipeline

TRANSLATE = """\
if touch /reference/mine 2> /dev/null; then echo "it should be read-only"; exit 1; fi
python3 translate.py /reference/words.txt < text.txt > {{text}}
mkdir -p published
"""


@Pipeline(
    name="multiple-fs",
    fs_options=FSOptions(
        main_fs=MainFS("examples", sub_path="multiple-fs"),
        extra_fs=ExtraFS("reference", mount_path="/reference", read_only=True),
    ),
)
def multiple_fs() -> None:
    translate = ContainerStep(name="translate", outputs={"text": Artifact()}, command=TRANSLATE)
    ContainerStep(
        name="publish",
        inputs={"text": translate.outputs["text"]},
        extra_fs=ExtraFS("examples", sub_path="multiple-fs/published", mount_path="/published"),
        command="cp {{text}} /published/{{PF_RUN_ID}}.txt",
    )


if __name__ == "__main__":
    _, run_id = multiple_fs().run()
    print(run_id)
