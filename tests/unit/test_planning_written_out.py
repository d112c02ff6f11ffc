"""Pipelines that a program has written: every key is there, and those that say nothing are empty.

Such a text is the same pipeline as the one that leaves the empty keys out."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import pytest

from paddleflow.documents import load
from paddleflow.domain.errors import Invalid
from paddleflow.planning.compile import compile_plan
from paddleflow.planning.parse import parse
from paddleflow.planning.plan import Plan
from paddleflow.planning.source import Limits, Overrides

SHORT = """
name: tour
entry_points:
  pack: {command: "pack {{bag}}", artifacts: {output: [bag]}}
  walk:
    deps: pack
    reference: {component: leg}
    artifacts: {input: {bag: "{{pack.bag}}"}}
  rest: {entry_points: {nap: {command: nap}}}
components:
  leg: {command: "walk {{bag}}", cache: {enable: true}, artifacts: {input: {bag: ""}}}
post_process: {home: {command: home}}
fs_options: {main_fs: {name: desk}}
"""

NOTHING_MORE = """\
loop_argument: null
condition: ""
parameters: {}
env: {}
docker_env: ""
extra_fs: []
"""
NO_CACHE = 'cache: {enable: false, max_expired_time: "", fs_scope: []}\n'


def filled(step: str, *, cache: str = NO_CACHE) -> str:
    return textwrap.indent(step + NOTHING_MORE + cache, " " * 4)


LONG = f"""
name: tour
docker_env: ""
parallelism: 0
disabled: ""
failure_options: {{strategy: ""}}
{NO_CACHE}
fs_options:
  main_fs: {{name: desk, mount_path: "", sub_path: "", read_only: false}}
  extra_fs: []
entry_points:
  pack:
{
    filled('''command: "pack {{bag}}"
deps: ""
reference: {component: ""}
artifacts: {input: {}, output: {bag: ""}}
''')
}
  walk:
{
    filled('''command: ""
deps: pack
reference: {component: leg}
artifacts: {input: {bag: "{{pack.bag}}"}, output: {}}
''')
}
  rest:
    loop_argument: null
    condition: ""
    parameters: {{}}
    deps: ""
    artifacts: {{input: {{}}, output: {{}}}}
    entry_points: {{nap: {{command: nap, deps: "", env: {{}}, reference: {{component: ""}}}}}}
components:
  leg:
{
    filled(
        '''command: "walk {{bag}}"
deps: ""
reference: {component: ""}
artifacts: {input: {bag: ""}, output: {}}
''',
        cache='cache: {enable: true, max_expired_time: "", fs_scope: []}',
    )
}
post_process:
  home:
{
    filled('''command: home
deps: ""
reference: {component: ""}
artifacts: {input: {}, output: {}}
''')
}
"""


def plan_of(text: str, overrides: Overrides) -> Plan:
    document = load(text)
    return compile_plan(parse(document.value, document.lines), overrides, Limits())


def test_empty_keys_change_nothing() -> None:
    assert plan_of(LONG, Overrides()) == plan_of(SHORT, Overrides())


EMPTY_FS = 'fs_options: {main_fs: {name: "", mount_path: "", sub_path: "", read_only: false}, extra_fs: []}\n'


@pytest.mark.parametrize("fs_name", ["", "desk"])
def test_an_empty_main_filesystem_is_none_unless_the_request_names_one(fs_name: str) -> None:
    steps = "name: tour\nentry_points: {a: {command: ls}}\n"
    request = replace(Overrides(), fs_name=fs_name)
    plan = plan_of(steps + EMPTY_FS, request)
    assert plan == plan_of(steps, request)
    assert (plan.main_fs.name if plan.main_fs else "") == fs_name


def test_an_empty_main_filesystem_keeps_no_artifacts() -> None:
    with pytest.raises(Invalid, match=r"cannot define artifact in component\[a\] with no Fs mounted"):
        plan_of("name: tour\nentry_points: {a: {artifacts: {output: [o]}}}\n" + EMPTY_FS, Overrides())


@pytest.mark.parametrize(
    "cache",
    ["{enable: true}", "{enable: false, max_expired_time: 60}", "{fs_scope: [{name: desk, path: code}]}"],
)
def test_a_step_with_a_reference_still_has_no_cache_of_its_own(cache: str) -> None:
    text = f"""
name: tour
fs_options: {{main_fs: {{name: desk}}}}
entry_points: {{a: {{reference: {{component: c}}, cache: {cache}}}}}
components: {{c: {{command: ls}}}}
"""
    with pytest.raises(Invalid, match="reference step can only have deps, parameters, input artifacts, reference"):
        plan_of(text, Overrides())
