"""Plain values, from whatever text they came, to a Source: types and keys are checked here, and nothing else.

Every complaint names the key and, when the lines are known, the line; unknown keys are refused, with the known one that
looks most like it. What the names and templates mean is the business of ``check``.
"""

from __future__ import annotations

from collections.abc import Mapping

from paddleflow.planning.parse_nodes import parse_nodes
from paddleflow.planning.parse_options import parse_cache, parse_extra_fs, parse_fs
from paddleflow.planning.parse_places import Place
from paddleflow.planning.source import CacheSource, FsSource, Limits, NodeSource, Path, Source, StepSource

WORKFLOW_KEYS = (
    "name",
    "docker_env",
    "entry_points",
    "components",
    "post_process",
    "cache",
    "parallelism",
    "disabled",
    "failure_options",
    "fs_options",
)
_NO_LINES: Mapping[Path, int] = {}


def parse(value: object, lines: Mapping[Path, int] = _NO_LINES, limits: Limits | None = None) -> Source:
    place = Place(value, (), lines)
    depth = (limits or Limits()).depth
    keys = place.fields("workflow", WORKFLOW_KEYS, "workflow")
    if "entry_points" not in keys:
        place.fail("[entry_points] of workflow should be map type")
    main_fs, extra_fs = _fs_options(keys["fs_options"]) if "fs_options" in keys else (None, ())
    return Source(
        name=_text(keys, "name"),
        docker_env=_text(keys, "docker_env"),
        nodes=_nodes(keys, "entry_points", depth),
        components=_nodes(keys, "components", depth),
        post_process=_post_process(keys, depth),
        cache=parse_cache(keys["cache"], "[cache] of workflow", "parse [cache] in workflow failed, error: ")
        if "cache" in keys
        else CacheSource(),
        parallelism=keys["parallelism"].integer("[parallelism] of workflow") if "parallelism" in keys else None,
        disabled=_text(keys, "disabled"),
        strategy=_strategy(keys["failure_options"]) if "failure_options" in keys else "",
        main_fs=main_fs,
        extra_fs=extra_fs,
        lines=lines,
    )


def _text(keys: dict[str, Place], key: str) -> str:
    return keys[key].text(f"[{key}] of workflow") if key in keys else ""


def _nodes(keys: dict[str, Place], key: str, depth: int) -> dict[str, NodeSource]:
    if key not in keys:
        return {}
    keys[key].mapping(f"[{key}] of workflow")
    return parse_nodes(keys[key].introduced(f"parse [{key}] failed, error: "), f"[{key}]", depth)


def _post_process(keys: dict[str, Place], depth: int) -> dict[str, StepSource]:
    steps: dict[str, StepSource] = {}
    for name, node in _nodes(keys, "post_process", depth).items():
        if not isinstance(node, StepSource):
            keys["post_process"].inner(name, None).fail("[post_process] can only have step")
        steps[name] = node
    return steps


def _strategy(place: Place) -> str:
    keys = place.fields("[failure_options] of workflow", ("strategy",), "[failure_options]")
    return keys["strategy"].text("[failure_options.strategy] of workflow") if "strategy" in keys else ""


def _fs_options(place: Place) -> tuple[FsSource | None, tuple[FsSource, ...]]:
    keys = place.fields("[fs_options] of workflow", ("main_fs", "extra_fs"), "[fs_options]")
    main_fs = None
    if "main_fs" in keys:
        introduction = "parse [main_fs] in [fs_options] failed, error: "
        written = parse_fs(keys["main_fs"], "[fs_options.main_fs]", introduction)
        # Programs that write every key, empty or not, mean none by this.
        main_fs = None if written == FsSource(name="") else written
    extra_fs: tuple[FsSource, ...] = ()
    if "extra_fs" in keys:
        extra_fs = parse_extra_fs(keys["extra_fs"], "[fs_options.extra_fs]", "[fs_options]")
    return main_fs, extra_fs
