"""Jobs and pipeline steps on object storage, for real: server, S3, mounts, processes; a server that is killed."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.servers import Server
from tests.objects.servers import S3Server, start_rclone_s3
from tests.pfs.mounts import why_no_mounts

pytestmark = [pytest.mark.timeout(600), pytest.mark.skipif(bool(why_no_mounts()), reason=why_no_mounts())]

CONFIG = """
filesystems: {{mount_idle_s: 0.5, cache_dir: {cache}}}
"""


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = start_rclone_s3(tmp_path_factory.mktemp("buckets"))
    server.make_bucket("data")
    yield server
    server.stop()


class Site:
    def __init__(self, where: Path, s3: S3Server) -> None:
        self.state = where / "state"
        self.config = where / "config.yaml"
        self.config.write_text(CONFIG.format(cache=where / "cache"))
        self.s3 = s3
        self.server = self.start()

    def start(self) -> Server:
        return Server(self.state, None, "--config", str(self.config)).wait_ready()

    def create(self, name: str, **changes: str) -> None:
        properties = self.s3.properties("data", **changes)
        properties.pop("bucket")
        body = {"name": name, "url": f"s3://data/{name}", "properties": properties}
        status, answer = self.server.call("POST", "/fs", body)
        assert status == 201, answer

    def submit(self, command: str, name: str, **fs: Any) -> str:
        body = {
            "command": command,
            "schedulingPolicy": {"queue": "default-queue"},
            "fs": {"name": name, "mountPath": "/data", **fs},
        }
        status, answer = self.server.call("POST", "/job/single", body)
        assert status == 200, answer
        return str(answer["id"])

    def ended(self, job: str) -> dict[str, Any]:
        wanted = ("succeeded", "failed")
        self.server.wait_for(lambda: self.server.job(job)["status"] in wanted, f"the end of {job}")
        return self.server.job(job)

    def mounts(self) -> list[str]:
        lines = Path("/proc/self/mounts").read_text().splitlines()
        return [line.split()[1] for line in lines if line.split()[1].startswith(f"{self.state}/mnt/")]

    def close(self) -> None:
        with ExitStack() as ends:
            ends.callback(self._unmount)
            ends.callback(self.server.stop)
            self.server.end_jobs()

    def _unmount(self) -> None:
        for mountpoint in self.mounts():
            subprocess.run(["umount", "-l", mountpoint], check=False)


@pytest.fixture
def site(tmp_path: Path, s3: S3Server) -> Iterator[Site]:
    site = Site(tmp_path, s3)
    yield site
    site.close()


def test_jobs_share_a_mount_that_goes_when_they_have_gone(site: Site, tmp_path: Path) -> None:
    site.create("shared")
    go = tmp_path / "go"
    one = site.submit(f"echo 1 > /data/one; while [ ! -e {go} ]; do sleep 0.05; done", "shared")
    two = site.submit(f"while [ ! -s /data/one ]; do sleep 0.05; done; cat /data/one > {tmp_path}/seen", "shared")
    assert site.ended(two)["status"] == "succeeded"
    assert (tmp_path / "seen").read_text() == "1\n"
    assert len(site.mounts()) == 1
    status, answer = site.server.call("DELETE", "/fs/shared")
    assert status == 403, answer
    go.touch()
    assert site.ended(one)["status"] == "succeeded"
    site.server.wait_for(lambda: not site.mounts(), "the unmounting")
    site.server.wait_for(lambda: site.server.call("DELETE", "/fs/shared")[0] == 200, "that it may be deleted")


def test_a_server_that_was_killed_leaves_jobs_their_mounts(site: Site, tmp_path: Path) -> None:
    site.create("kept")
    go, ticks = tmp_path / "go", tmp_path / "ticks"
    tick = f"{{ date > /data/tick && touch {ticks}; }} || exit 1"
    job = site.submit(f"while [ ! -e {go} ]; do {tick}; sleep 0.05; done; echo end > /data/end", "kept")
    site.server.wait_for(ticks.exists, "that it writes")
    before = site.mounts()
    site.server.kill()
    site.server = site.start()
    assert site.mounts() == before
    again = site.submit("cat /data/tick", "kept")
    assert site.ended(again)["status"] == "succeeded"
    assert site.mounts() == before
    go.touch()
    assert site.ended(job)["status"] == "succeeded"
    site.server.wait_for(lambda: not site.mounts(), "the unmounting")


def test_a_read_only_filesystem_is_read_only(site: Site) -> None:
    site.create("guarded")
    made = site.submit("mkdir /data/sub && echo content > /data/sub/file", "guarded")
    assert site.ended(made)["status"] == "succeeded"
    read = site.submit("grep content /data/file && ! touch /data/other", "guarded", subPath="sub", readOnly=True)
    assert site.ended(read)["status"] == "succeeded"


def test_the_steps_of_a_pipeline_hand_artifacts_on_over_object_storage(site: Site) -> None:
    site.create("runs")
    text = """
name: two-steps
entry_points:
  numbers:
    command: "seq 10 > {{made}}"
    artifacts: {output: [made]}
  total:
    command: "awk '{s += $1} END {print s}' {{made}} > {{sum}}"
    deps: numbers
    artifacts: {input: {made: "{{numbers.made}}"}, output: [sum]}
cache: {enable: true}
fs_options: {main_fs: {name: runs}}
"""
    body = {"runYamlRaw": base64.b64encode(text.encode()).decode()}
    results = []
    for _ in range(2):
        status, answer = site.server.call("POST", "/run", body)
        assert status == 201, answer
        run = answer["runID"]
        site.server.wait_for(
            lambda run=run: site.server.call("GET", f"/run/{run}")[1]["status"] in ("succeeded", "failed"),
            "the end of the run",
        )
        results.append(site.server.call("GET", f"/run/{run}")[1])
    assert [result["status"] for result in results] == ["succeeded", "succeeded"], results
    steps = results[1]["runtime"]
    assert {node["cacheRunID"] for nodes in steps.values() for node in nodes} == {results[0]["runID"]}
    _, listed = site.server.call("GET", "/artifact")
    assert any(event["artifactName"] == "sum" for event in listed["artifactEventList"]), listed
