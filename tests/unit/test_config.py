from __future__ import annotations

from pathlib import Path

import pytest

from paddleflow.domain.errors import Invalid
from paddleflow.wiring.config import default_state_dir, load_settings


def written(tmp_path: Path, text: str) -> dict[str, object]:
    path = tmp_path / "paddleflow.yaml"
    path.write_text(text)
    return {"config": str(path)}


def test_nothing_given_means_defaults() -> None:
    assert load_settings({}, {}).server.port == 8999


def test_flags_win_over_environment_and_environment_over_file(tmp_path: Path) -> None:
    flags = written(tmp_path, "server: {host: a, port: 1, log_level: debug}")
    settings = load_settings({"PADDLEFLOW_SERVER_PORT": "2", "PADDLEFLOW_SERVER_HOST": "b"}, {**flags, "host": "c"})
    assert (settings.server.host, settings.server.port, settings.server.log_level) == ("c", 2, "debug")


def test_nodes_are_read_from_the_file(tmp_path: Path) -> None:
    text = "local: {nodes: [{name: sim, cpu: 4, gpus: 2, count: 3, labels: {zone: a}}], stop_grace_s: 2}"
    settings = load_settings({}, written(tmp_path, text))
    (node,) = settings.local.nodes
    assert (node.name, node.cpu, node.gpus, node.count, node.labels) == ("sim", "4", 2, 3, {"zone": "a"})
    assert settings.local.stop_grace_s == 2.0


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("serve: {}", "serve"),
        ("server: {prot: 1}", "prot"),
        ("server: {port: many}", "server.port"),
        ("server: {port: 70000}", "server.port"),
        ("server: {log_level: loud}", "log_level"),
        ("server: []", "server"),
        ("local: {nodes: [{cpu: 1}]}", "name"),
        ("local: {nodes: {}}", "local.nodes"),
        ("local: {nodes: [{name: n, cpu: lots}]}", "lots"),
        ("local: {nodes: [{name: n, count: 0}]}", "count"),
        ("local: {log_cap_mib: 0}", "log_cap_mib"),
        ("local: {images: pull}", "local.images"),
        ("scheduler: {settle_s: -1}", "scheduler.settle_s"),
        ("scheduler: {settle_s: nan}", "scheduler.settle_s"),
        ("scheduler: {settle_s: .inf}", "scheduler.settle_s"),
        ("[]", "sections"),
        ("a: [", "YAML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(Invalid, match=named):
        load_settings({}, written(tmp_path, text))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(Invalid, match=r"nowhere\.yaml"):
        load_settings({"PADDLEFLOW_CONFIG": "nowhere.yaml"}, {})


def test_the_state_directory_follows_xdg() -> None:
    assert default_state_dir({"XDG_STATE_HOME": "/s"}) == Path("/s/paddleflow")
    assert default_state_dir({"HOME": "/h"}) == Path("/h/.local/state/paddleflow")
