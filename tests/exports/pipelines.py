"""Pipelines that use, together, everything the exports map. They need a shell and nothing else."""

from __future__ import annotations

import textwrap

from paddleflow.documents import load
from paddleflow.planning.compile import compile_plan
from paddleflow.planning.parse import parse
from paddleflow.planning.plan import Plan
from paddleflow.planning.source import Limits, Overrides

EVERYTHING = """
name: everything
parallelism: 4
docker_env: "busybox:1.36"
fs_options: {main_fs: {name: work}}
entry_points:
  make:
    parameters: {count: 3, tag: "v-{{PF_STEP_NAME}}"}
    env: {GREETING: "hello {{tag}}", ITS_OWN: "$$ and $(this)"}
    command: |
      echo "$GREETING $ITS_OWN {{count}}" > {{note}}
      echo '["x", "y y", 3]' > {{words}}
      echo 0.75 > $PF_OUTPUT_ARTIFACT_SCORE
    artifacts: {output: [note, words, score]}
  square:
    deps: make
    parameters: {base: "{{make.count}}"}
    loop_argument: [1, 2.5, [3, 4]]
    command: "echo {{base}} times {{PF_LOOP_ARGUMENT}} > {{result}}"
    artifacts: {output: [result]}
  sum:
    deps: square
    command: "for each in $(echo {{results}} | tr , ' '); do cat $each; done > {{total}}"
    artifacts: {input: {results: "{{square.result}}"}, output: [total]}
  good:
    deps: make
    parameters: {least: 0.5}
    condition: "{{score}} > {{least}} && {{PF_STEP_NAME}} == good"
    command: "cat {{score}} > good.txt"
    artifacts: {input: {score: "{{make.score}}"}}
  bad:
    deps: make
    condition: "{{score}} > 0.9"
    command: "cat {{score}} > bad.txt"
    artifacts: {input: {score: "{{make.score}}"}}
  after-bad:
    deps: bad
    command: "echo went on > {{proof}}"
    artifacts: {output: [proof]}
  some:
    deps: make
    loop_argument: [1, 2, 3]
    condition: "{{PF_LOOP_ARGUMENT}} >= 2"
    command: "echo {{PF_LOOP_ARGUMENT}} >> some-{{PF_LOOP_ARGUMENT}}.txt"
  off:
    deps: make
    command: "exit 9"
  after-off:
    deps: off
    retry: {times: 2, backoff: 0.1}
    timeout: 60
    command: |
      if [ ! -e tried.txt ]; then touch tried.txt; exit 3; fi
      echo second > {{attempt}}
    artifacts: {output: [attempt]}
  search:
    deps: make
    parameters: {base: "{{make.tag}}"}
    loop_argument: [10, 20]
    artifacts: {input: {note: "{{make.note}}"}, output: {best: "{{pick.model}}"}}
    entry_points:
      fit:
        parameters: {rate: "{{PF_PARENT.PF_LOOP_ARGUMENT}}", label: "{{PF_PARENT.base}}/{{PF_PARENT.PF_LOOP_ARGUMENT}}"}
        loop_argument: ["p", "q"]
        command: "cat {{note}} > {{model}}; echo {{label}} {{rate}} {{PF_LOOP_ARGUMENT}} >> {{model}}"
        artifacts: {input: {note: "{{PF_PARENT.note}}"}, output: [model]}
      pick:
        deps: fit
        command: "for each in $(echo {{models}} | tr , ' '); do tail -n 1 $each; done > {{model}}"
        artifacts: {input: {models: "{{fit.model}}"}, output: [model]}
  publish:
    deps: search, sum
    command: "for each in $(echo {{best}} | tr , ' '); do cat $each; done > {{all}}"
    artifacts: {input: {best: "{{search.best}}"}, output: [all]}
  not-at-all:
    deps: publish
    parameters: {wanted: "no"}
    condition: "{{wanted}} == yes"
    entry_points:
      first: {command: "touch never.txt"}
      then: {command: "touch never.txt", deps: first}
disabled: "off"
post_process:
  last: {command: "echo it is over > over.txt"}
"""

DYNAMIC = """
name: dynamic
docker_env: "busybox:1.36"
fs_options: {main_fs: {name: work}}
failure_options: {strategy: continue}
entry_points:
  split:
    command: "echo '[\\"a\\", 2, \\"c c\\"]' > {{parts}}; echo '[]' > {{none}}"
    artifacts: {output: [parts, none]}
  each:
    deps: split
    loop_argument: "{{parts}}"
    command: "echo part {{PF_LOOP_ARGUMENT}} > {{piece}}"
    artifacts: {input: {parts: "{{split.parts}}"}, output: [piece]}
  join:
    deps: each
    command: "for each in $(echo {{pieces}} | tr , ' '); do cat $each; done > {{whole}}"
    artifacts: {input: {pieces: "{{each.piece}}"}, output: [whole]}
  nothing:
    deps: split
    loop_argument: "{{none}}"
    command: "touch never.txt"
    artifacts: {input: {none: "{{split.none}}"}}
  after-nothing:
    deps: nothing
    command: "echo here > {{proof}}"
    artifacts: {output: [proof]}
  nested:
    loop_argument: [[1, 2], [3]]
    entry_points:
      inner:
        parameters: {list: "{{PF_PARENT.PF_LOOP_ARGUMENT}}"}
        loop_argument: "{{list}}"
        command: "echo {{PF_LOOP_ARGUMENT}} of {{list}} > {{out}}"
        artifacts: {output: [out]}
  not-today:
    condition: "1 > 2"
    command: "touch never.txt"
  after-not-today:
    deps: not-today
    command: "echo here > {{proof}}"
    artifacts: {output: [proof]}
"""

FAILING = """
name: failing
docker_env: "busybox:1.36"
fs_options: {main_fs: {name: work}}
entry_points:
  wrong: {command: "exit 5"}
  after: {command: "touch never.txt", deps: wrong}
post_process:
  last: {command: "echo it is over > over.txt"}
"""

CONTINUING = FAILING.replace("failing", "continuing").replace(
    "entry_points:",
    """failure_options: {strategy: continue}
entry_points:
  other:
    command: "echo other > {{proof}}"
    artifacts: {output: [proof]}
  after-other: {command: "echo on > on.txt", deps: other}""",
)

TIMEOUT = """
name: late
fs_options: {main_fs: {name: work}}
entry_points:
  slow: {command: "sleep 600; touch never.txt", timeout: 1}
post_process:
  last: {command: "exit 4"}
"""

WITHOUT_FILES = """
name: plain
entry_points:
  one: {parameters: {words: "it's \\"quoted\\" {{PF_RUN_ID}}"}, command: 'test -n "{{PF_RUN_ID}}"; pwd'}
"""

ALL = {
    "everything": EVERYTHING,
    "dynamic": DYNAMIC,
    "failing": FAILING,
    "continuing": CONTINUING,
    "late": TIMEOUT,
    "plain": WITHOUT_FILES,
}


def plan_of(text: str, overrides: Overrides | None = None) -> Plan:
    document = load(textwrap.dedent(text))
    return compile_plan(parse(document.value, document.lines), overrides or Overrides(), Limits())
