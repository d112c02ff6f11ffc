"""Make a directory with a file for each day. The paths come by the environment."""

import os
from pathlib import Path

raw = Path(os.environ["PF_INPUT_ARTIFACT_RAW"])
days = Path(os.environ["PF_OUTPUT_ARTIFACT_DAYS"])
days.mkdir()
for line in raw.read_text().splitlines():
    day, value = line.split()
    with (days / day).open("a") as file:
        file.write(f"{value}\n")
