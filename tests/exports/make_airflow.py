"""Builds the environment that ``test_airflow_real.py`` needs: ``python tests/exports/make_airflow.py DIRECTORY``.

It prints the interpreter to put into PADDLEFLOW_AIRFLOW_PYTHON. An environment that is there already is left alone.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

AIRFLOW = "3.3.2"
PACKAGES = (f"apache-airflow=={AIRFLOW}", "apache-airflow-providers-standard")
CONSTRAINTS = "https://raw.githubusercontent.com/apache/airflow/constraints-{airflow}/constraints-{python}.txt"


def main(directory: Path) -> int:
    python = directory / "bin" / "python"
    if not (directory / ".installed").exists():
        venv.create(directory, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        tested = ["--constraint", CONSTRAINTS.format(airflow=AIRFLOW, python=version)]
        if subprocess.run([*install, *tested], check=False, capture_output=True).returncode:
            sys.stderr.write("the tested versions of Airflow's dependencies cannot be had; taking the newest\n")
            subprocess.run(install, check=True)
        (directory / ".installed").touch()
    sys.stdout.write(f"{python}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
