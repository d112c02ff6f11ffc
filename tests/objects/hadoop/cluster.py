"""Starts the small cluster that Hadoop's own tests use, on ports nobody else has, below a directory of ours.

Needs Java 17 and Maven (Debian: openjdk-17-jre-headless, maven). The jars are fetched once, about 100 MB, into the
cache of the user; after that nothing is downloaded. The tests that want it run only when PADDLEFLOW_TEST_HDFS is set.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.waiting import wait_for

STARTS_WITHIN_S = 120.0
OPENED = ("java.lang", "java.util", "java.io", "java.net", "java.nio", "java.util.concurrent")


@dataclass(slots=True)
class HdfsCluster:
    process: subprocess.Popen[bytes]
    directory: Path
    rpc_port: int
    http_port: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.rpc_port}"

    def properties(self, **changes: str) -> dict[str, str]:
        return {"user": "root", "group": "root", "webhdfs": f"http://127.0.0.1:{self.http_port}"} | changes

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def fetch_jars() -> Path:
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing: install openjdk-17-jre-headless and maven")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paddleflow-tests" / "hadoop-3.4.1"
    if not (cache / "whole").exists():
        pom = Path(__file__).with_name("pom.xml")
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={cache}"]
        subprocess.run(command, check=True, timeout=600)
        (cache / "whole").touch()
    return cache


def start_hdfs(directory: Path, *, name_port: int = 0, http_port: int = 0) -> HdfsCluster:
    """Any user name is believed; ``root`` may do everything, whoever runs the tests."""
    details, config, log = directory / "details.json", directory / "config.xml", directory / "hdfs.log"
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    command = [
        "java",
        "-Xmx512m",
        "-Dfile.encoding=UTF-8",
        *opened,
        f"-Dtest.build.data={directory}/data",
        "-cp",
        f"{fetch_jars()}/*",
    ]
    command += ["org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "1"]
    command += ["-nnport", str(name_port), "-httpport", str(http_port)]
    # Pages of a listing small enough that a test can fill several.
    command += ["-D", "dfs.ls.limit=50"]
    command += ["-writeDetails", str(details), "-writeConfig", str(config)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=os.environ | {"HADOOP_USER_NAME": "root"},
            cwd=directory,
            start_new_session=True,
        )

    def told() -> str:
        if process.poll() is not None:
            pytest.fail(f"HDFS ended at once: {log.read_text(errors='replace')[-3000:]}")
        text = details.read_text()
        return text if text.endswith("}") else ""

    try:
        rpc = int(json.loads(wait_for(told, f"HDFS starts; see {log}", deadline_s=STARTS_WITHIN_S))["namenode_port"])
        return HdfsCluster(process, directory, rpc, _http_port(config))
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _http_port(config: Path) -> int:
    for item in ET.parse(config).getroot():
        if item.findtext("name") == "dfs.namenode.http-address":
            return int((item.findtext("value") or "").rpartition(":")[2])
    raise RuntimeError("the cluster does not say where its name node serves HTTP")
