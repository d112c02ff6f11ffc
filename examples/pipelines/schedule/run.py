"""Schedules: a stored pipeline, run again and again by the clock. The twin of run.yaml, which says more.

    paddleflow pipeline create -yr run.yaml
    paddleflow schedule create journal PIPELINE VERSION "@every 2s" -c 1 -cp skip
    python run.py

``create`` stores a pipeline, ``update`` a new version of it; a schedule runs one version, and no other.
"""

from __future__ import annotations

from paddleflow import Client
from paddleflow.pipeline import Artifact, ContainerStep, FSOptions, MainFS, Pipeline

WRITE = """\
echo "run {{PF_RUN_ID}} of {{PF_USER_NAME}}" > {{entry}}
mkdir -p runs
cat {{entry}} >> runs/journal
"""


@Pipeline(name="schedule", fs_options=FSOptions(main_fs=MainFS("examples", sub_path="schedule")))
def schedule() -> None:
    ContainerStep(name="write", outputs={"entry": Artifact()}, command=WRITE)


def start(pipeline: Pipeline, crontab: str) -> str:
    """Store the pipeline, as a new version if it is known already, and schedule it; the id of the schedule."""
    with Client.from_config() as client:
        _, known = client.list_pipeline(name_filter=pipeline.name)
        if known["pipelineList"]:
            _, stored = pipeline.update(known["pipelineList"][0].pipeline_id)
            pipeline_id, version = stored["pipelineID"], stored["pipelineVersionID"]
        else:
            _, stored = pipeline.create()
            pipeline_id, version = stored["pplID"], stored["pplVerID"]
        _, schedule_id = client.create_schedule(
            "journal", pipeline_id, version, crontab, concurrency=1, concurrency_policy="skip"
        )
    return schedule_id


if __name__ == "__main__":
    print(start(schedule(), "@every 2s"))
