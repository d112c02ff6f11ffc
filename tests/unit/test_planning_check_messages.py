"""Every message of the check stage, word for word, and the text that earns it."""

from __future__ import annotations

import textwrap

import pytest

from paddleflow.documents import load
from paddleflow.planning.check import Problem, problems
from paddleflow.planning.parse import parse
from paddleflow.planning.source import Limits, Overrides, Source
from tests.planned import with_commands

FS = "fs_options: {main_fs: {name: work}}\n"
NOTHING = Overrides()


def source_of(text: str) -> Source:
    head = "" if text.startswith("name:") else "name: p\n"
    document = load(head + textwrap.dedent(text))
    return with_commands(parse(document.value, document.lines))


def found(text: str, overrides: Overrides = NOTHING, limits: Limits | None = None) -> tuple[Problem, ...]:
    return problems(source_of(text), overrides, limits or Limits())


def messages(text: str, overrides: Overrides = NOTHING, limits: Limits | None = None) -> list[str]:
    return [problem.message for problem in found(text, overrides, limits)]


VARIABLE = "invalid, should be in ^[A-Za-z_][A-Za-z0-9_]{0,49}$"
REFERENCE = "check reference failed, only outer components can be refered, error: "

NAMES = {
    "parameter": (
        "entry_points: {a: {parameters: {9p: 1}}}",
        f"check parameters[9p] in component[a] failed: format of variable name[9p] {VARIABLE}",
    ),
    "env": (
        "entry_points: {a: {env: {a-b: x}}}",
        f"check env[a-b] in component[a] failed: format of variable name[a-b] {VARIABLE}",
    ),
    "output that climbs": (
        FS + "entry_points: {a: {artifacts: {output: ['../x']}}}",
        f"check outputArtifacts[../x] in component[a] failed: format of variable name[../x] {VARIABLE}",
    ),
    "input": (
        FS + "entry_points: {b: {artifacts: {output: [o]}}, a: {deps: b, artifacts: {input: {i.j: '{{b.o}}'}}}}",
        f"check inputArtifacts[i.j] in component[a] failed: format of variable name[i.j] {VARIABLE}",
    ),
    "in a component": (
        "entry_points: {}\ncomponents: {a: {parameters: {9p: 1}}}",
        f"check parameters[9p] in component[a] failed: format of variable name[9p] {VARIABLE}",
    ),
    "pipeline": (
        "name: 9p\nentry_points: {}",
        (
            "check pipelineName[9p] in run[] failed: format of run or pipeline name[9p] invalid,"
            " should be in ^[A-Za-z_][A-Za-z0-9_-]{0,127}$"
        ),
    ),
    "node with an underscore": (
        "entry_points: {a_b: {}}",
        (
            "check stepName[a_b] in run[] failed: format of component name[a_b] invalid,"
            " should be in ^[a-zA-Z][a-zA-Z0-9-]{0,29}$"
        ),
    ),
    "node too long": (
        f"entry_points: {{d: {{entry_points: {{{'a' * 31}: {{}}}}}}}}",
        (
            f"check stepName[{'a' * 31}] in run[] failed: format of component name[{'a' * 31}] invalid,"
            " should be in ^[a-zA-Z][a-zA-Z0-9-]{0,29}$"
        ),
    ),
    "two parameters": (
        "entry_points: {a: {parameters: {p: 1, P: 2}}}",
        "parameter name[P] has already existed in params/artifacts of component[a] (these names are case-insensitive)",
    ),
    "input like a parameter": (
        FS
        + "entry_points: {b: {artifacts: {output: [o]}},"
        + " a: {deps: b, parameters: {x: 1}, artifacts: {input: {X: '{{b.o}}'}}}}",
        "inputAtf name[X] has already existed in params/artifacts of component[a] (these names are case-insensitive)",
    ),
    "output like a parameter": (
        FS + "entry_points: {a: {parameters: {x: 1}, artifacts: {output: [x]}}}",
        "outputAtf name[x] has already existed in params/artifacts of component[a] (these names are case-insensitive)",
    ),
}

STRUCTURE = {
    "dep that is not there": ("entry_points: {a: {deps: zzz}}", "component [a] has an wrong dep [zzz]"),
    "dep nearly right": (
        "entry_points: {train: {}, a: {deps: trian}}",
        "component [a] has an wrong dep [trian], did you mean [train]?",
    ),
    "dep inside a dag": (
        "entry_points: {t: {}, d: {entry_points: {a: {deps: t}}}}",
        "component [d.a] has an wrong dep [t]",
    ),
    "dep inside a component": (
        "entry_points: {}\ncomponents: {d: {entry_points: {a: {deps: zzz}}}}",
        "component [d.a] has an wrong dep [zzz]",
    ),
    "circle": ("entry_points: {a: {deps: b}, b: {deps: a}}", "workflow is not acyclic"),
    "itself": ("entry_points: {a: {deps: a}}", "workflow is not acyclic"),
    "circle inside": ("entry_points: {d: {entry_points: {a: {deps: b}, b: {deps: a}}}}", "workflow is not acyclic"),
    "component with deps": ("entry_points: {}\ncomponents: {c: {deps: x}}", "components can not have deps"),
    "component refers to nothing": (
        "entry_points: {}\ncomponents: {c: {reference: {component: zzz}}}",
        "no component named zzz",
    ),
    "components in a circle": (
        (
            "entry_points: {}\ncomponents: {c: {entry_points: {x: {reference: {component: d}}}}, "
            "d: {reference: {component: c}}}"
        ),
        "components reference is not acyclic",
    ),
    "step refers to nothing": (
        "entry_points: {a: {reference: {component: zzz}}}",
        REFERENCE + "no component named zzz",
    ),
    "step refers to an entry point": (
        "entry_points: {b: {}, a: {reference: {component: b}}}",
        REFERENCE + "no component named b",
    ),
    "upstream refers to nothing": (
        "entry_points: {a: {reference: {component: zzz}}, b: {deps: a, parameters: {p: '{{a.p}}'}}}",
        "reference.component [zzz] in component[a] is not exist",
    ),
    "output of a child that refers to nothing": (
        FS + "entry_points: {d: {artifacts: {output: {o: '{{a.o}}'}}, entry_points: {a: {reference: {component: z}}}}}",
        "reference.component [z] in component[d.a] is not exist",
    ),
    "reference and more": (
        "entry_points: {a: {reference: {component: c}, command: x}}\ncomponents: {c: {}}",
        REFERENCE + "reference step can only have deps, parameters, input artifacts, reference",
    ),
    "reference and retry": (
        "entry_points: {a: {reference: {component: c}, retry: {times: 1}}}\ncomponents: {c: {}}",
        REFERENCE + "reference step can only have deps, parameters, input artifacts, reference",
    ),
    "reference with a strange parameter": (
        "entry_points: {a: {reference: {component: c}, parameters: {zzz: 1}}}\ncomponents: {c: {}}",
        REFERENCE + "parameters in step with reference must be in refered component",
    ),
    "reference with a value of another type": (
        (
            "entry_points: {a: {reference: {component: c}, parameters: {p: x}}}\n"
            "components: {c: {parameters: {p: {type: int, default: 1}}}}"
        ),
        REFERENCE + "parameters in step with reference check dict param in refered param failed, error:"
        " invalid type[string] for param[x]. expect type[int]",
    ),
    "reference with a strange input": (
        FS + "entry_points: {b: {artifacts: {output: [o]}},"
        " a: {deps: b, reference: {component: c}, artifacts: {input: {i: '{{b.o}}'}}}}\ncomponents: {c: {}}",
        REFERENCE + "input artifact in step with reference must be in refered component",
    ),
    "reference without an input": (
        "entry_points: {a: {reference: {component: c}}}\ncomponents: {c: {artifacts: {input: {i: ''}}}}",
        REFERENCE + "input artifact in refered component should all used by reference component",
    ),
    "image as tar": ("docker_env: x.tar\nentry_points: {}", "image as tar file is not supported for now"),
    "image as tar in a step": (
        "entry_points: {a: {docker_env: x.tar}}",
        "image as tar file is not supported for now",
    ),
    "dag beside an item of a loop": (
        "entry_points: {d: {loop_argument: [1, 2], entry_points: {a: {}}}, d-1: {entry_points: {a: {}}}}",
        "dag [d-1] would keep its artifacts where item 1 of the loop of dag [d] keeps them, rename one of the two",
    ),
}

UP = "entry_points: {up: {parameters: {q: 1}, artifacts: {output: [o]}}, c: {deps: up, "
TEMPLATES = {
    "own parameter in parameters": (
        "entry_points: {a: {parameters: {p: 1, q: 'x{{p}}'}}}",
        "unsupported SysParamName[p] for param[x{{p}}] of filedType[parameters]",
    ),
    "old system parameter in parameters": (
        "entry_points: {a: {parameters: {q: '{{ PF_FS_ID }}'}}}",
        "unsupported SysParamName[PF_FS_ID] for param[{{ PF_FS_ID }}] of filedType[parameters]",
    ),
    "unknown in env": (
        "entry_points: {a: {env: {E: '{{PF_FS_NAME}}'}}}",
        "unsupported RefParamName[PF_FS_NAME] for param[{{PF_FS_NAME}}] of filedType[env]",
    ),
    "artifact in env": (
        FS + "entry_points: {a: {env: {E: '{{out}}'}, artifacts: {output: [out]}}}",
        "unsupported RefParamName[out] for param[{{out}}] of filedType[env]",
    ),
    "unknown in command": (
        "entry_points: {a: {command: 'echo {{zzz}}'}}",
        "unsupported RefParamName[zzz] for param[echo {{zzz}}] of filedType[command]",
    ),
    "not in deps": (
        "entry_points: {up: {parameters: {q: 1}}, c: {parameters: {p: '{{up.q}}'}}}",
        "invalid reference param {{ up.q }} in component[c]: component[up] not in deps",
    ),
    "artifact not in deps": (
        FS + "entry_points: {up: {artifacts: {output: [o]}}, c: {artifacts: {input: {i: '{{up.o}}'}}}}",
        "invalid reference param {{ up.o }} in component[c]: component[up] not in deps",
    ),
    "component does not exist": (
        "entry_points: {c: {deps: up, parameters: {p: '{{up.q}}'}}}",
        "invalid reference param {{ up.q }} in component[c]: component[up] not exist",
    ),
    "parameter does not exist": (
        FS + UP + "parameters: {p: '{{up.zzz}}'}}}",
        "invalid reference param {{ up.zzz }} in component[c]: parameter[zzz] not exist",
    ),
    "output does not exist": (
        FS + UP + "artifacts: {input: {i: '{{up.zzz}}'}}}}",
        "invalid reference param {{ up.zzz }} in component[c]: output artifact[zzz] not exist",
    ),
    "parent has no parameter": (
        "entry_points: {d: {entry_points: {c: {parameters: {p: '{{PF_PARENT.q}}'}}}}}",
        "invalid reference param {{ PF_PARENT.q }} in component[d.c]: parameter[q] not exist",
    ),
    "parent has no input": (
        "entry_points: {d: {entry_points: {c: {artifacts: {input: {i: '{{PF_PARENT.q}}'}}}}}}",
        "invalid reference param {{ PF_PARENT.q }} in component[d.c]: input artifact[q] not exist",
    ),
    "parent has no loop": (
        "entry_points: {d: {entry_points: {c: {parameters: {p: '{{PF_PARENT.PF_LOOP_ARGUMENT}}'}}}}}",
        "invalid reference param {{ PF_PARENT.PF_LOOP_ARGUMENT }} in component[d.c]: loop_argument not exist",
    ),
    "artifact of a node with a condition": (
        FS
        + "entry_points: {up: {condition: 1 > 0, artifacts: {output: [o]}},"
        + " c: {deps: up, artifacts: {input: {i: '{{up.o}}'}}}}",
        (
            "invalid reference param {{ up.o }} in component[c]:"
            " component[up] has condition so its param and output artifacts can't be refered"
        ),
    ),
    "parent at the top": (
        "entry_points: {a: {parameters: {p: '{{PF_PARENT.q}}'}}}",
        "PF_PARENT should used by a child component",
    ),
    "parent's artifact at the top": (
        "entry_points: {a: {artifacts: {input: {i: '{{PF_PARENT.q}}'}}}}",
        "PF_PARENT should used by a child component",
    ),
    "parent in a command at the top": (
        "entry_points: {a: {command: '{{PF_PARENT.q}}'}}",
        "PF_PARENT should used by a child component",
    ),
    "parent in a component": (
        "entry_points: {}\ncomponents: {a: {parameters: {p: '{{PF_PARENT.q}}'}}}",
        "PF_PARENT should used by a child component",
    ),
    "parent in a command": (
        "entry_points: {d: {parameters: {q: 1}, entry_points: {a: {command: '{{PF_PARENT.q}}'}}}}",
        "PF_PARENT can only used in parameters or input artifacts",
    ),
    "parent in outputs": (
        FS + "entry_points: {d: {artifacts: {output: {o: '{{PF_PARENT.q}}'}}, entry_points: {a: {}}}}",
        "PF_PARENT can only used in parameters or input artifacts",
    ),
    "upstream in a command": (
        FS + UP + "command: 'echo {{up.q}}'}}",
        (
            "component [c] refer [up.q] invalid, only parameters can use upstream parameters"
            " and only input artifacts can use upstream output artifacts"
        ),
    ),
    "upstream in env": (
        FS + UP + "env: {E: '{{up.q}}'}}}",
        (
            "component [c] refer [up.q] invalid, only parameters can use upstream parameters"
            " and only input artifacts can use upstream output artifacts"
        ),
    ),
    "input that is no template": (
        "entry_points: {a: {artifacts: {input: {i: /etc/passwd}}}}",
        (
            "check input artifact [i] in component[a] failed: format of value[/etc/passwd] invalid,"
            " should be like {{XX-XX.XX_XX}}"
        ),
    ),
    "input with more than a template": (
        FS + UP + "artifacts: {input: {i: '{{up.o}}/x'}}}}",
        (
            "check input artifact [i] in component[c] failed: format of value[{{up.o}}/x] invalid,"
            " should be like {{XX-XX.XX_XX}}"
        ),
    ),
    "dag output that is no template": (
        FS + "entry_points: {d: {artifacts: {output: {o: x}}, entry_points: {a: {}}}}",
        "check output artifact value [x] in dag[d] failed: format of value[x] invalid, should be like {{XX-XX.XX_XX}}",
    ),
    "dag output of nobody": (
        FS + "entry_points: {d: {artifacts: {output: {o: '{{zzz.o}}'}}, entry_points: {a: {}}}}",
        "invalid reference param {{ zzz.o }} in component[d]: component[zzz] not exist",
    ),
    "dag output that its child has not": (
        FS + "entry_points: {d: {artifacts: {output: {o: '{{a.o}}'}}, entry_points: {a: {}}}}",
        "invalid reference param {{ a.o }} in component[d]: output artifact[o] not exist",
    ),
    "dag output of a child with a condition": (
        FS + "entry_points: {d: {artifacts: {output: {o: '{{a.o}}'}},"
        " entry_points: {a: {condition: 1 > 0, artifacts: {output: [o]}}}}}",
        (
            "invalid reference param {{ a.o }} in component[d]:"
            " component[a] has condition so its param and output artifacts can't be refered"
        ),
    ),
    "artifact without a filesystem": (
        "entry_points: {a: {artifacts: {output: [o]}}}",
        "cannot define artifact in component[a] with no Fs mounted",
    ),
}


def parameter(value: str) -> str:
    return f"entry_points: {{a: {{parameters: {{p: {value}}}}}}}"


PARAMETERS = {
    "no default": (
        parameter("{type: int}"),
        "invalid value[<nil>] in dict param[name: p, value: {Type:int Default:<nil>}]",
    ),
    "empty default": (
        parameter("{type: string, default: ''}"),
        "invalid value[] in dict param[name: p, value: {Type:string Default:}]",
    ),
    "empty default comes before an unknown type": (
        parameter("{type: what, default: ''}"),
        "invalid value[] in dict param[name: p, value: {Type:what Default:}]",
    ),
    "unknown type": (
        parameter("{type: what, default: 3}"),
        "type[what] is not supported for dict param[name: p, value: {Type:what Default:3}]",
    ),
    "neither type nor default": (
        parameter("{}"),
        "type[] is not supported for dict param[name: p, value: {Type: Default:<nil>}]",
    ),
    "no type": (
        parameter("{default: 10}"),
        "type[] is not supported for dict param[name: p, value: {Type: Default:10}]",
    ),
    "text for int": (
        parameter("{type: int, default: x}"),
        "invalid type[string] for param[x]. expect type[int]",
    ),
    "float for int": (
        parameter("{type: int, default: 1.5}"),
        "invalid type[float64] for param[1.5]. expect type[int]",
    ),
    "bool for int": (
        parameter("{type: int, default: true}"),
        "invalid type[bool] for param[true]. expect type[int]",
    ),
    "int for string": (
        parameter("{type: string, default: 1}"),
        "invalid type[int] for param[1]. expect type[string]",
    ),
    "list for float": (
        parameter("{type: float, default: [1, 2]}"),
        "invalid type[[]interface {}] for param[[1 2]]. expect type[float]",
    ),
    "text for list": (
        parameter("{type: list, default: x}"),
        "invalid type[string] for param[x]. expect type[list]",
    ),
    "path": (parameter("{type: path, default: 'a b'}"), "invalid path value[a b] in parameter[p]"),
    "template in a list": (
        parameter("[1, [2, 'x{{PF_RUN_ID}}']]"),
        "list param item [x{{PF_RUN_ID}}] is invalid, each item must not be templete",
    ),
    "template in a typed list": (
        parameter("{type: list, default: ['{{PF_RUN_ID}}']}"),
        "list param item [{{PF_RUN_ID}}] is invalid, each item must not be templete",
    ),
    "bool in a list": (parameter("[true]"), "list param item can only be int, float, string, list type"),
    "nothing in a list": (parameter("[1, null]"), "list param item can only be int, float, string, list type"),
    "bool": (parameter("true"), "type[bool] is not supported for param[p]"),
    "nothing": (parameter("null"), "type[<nil>] is not supported for param[p]"),
    "not a number": (parameter(".nan"), "value of param[p] is invalid, NaN is not a finite number"),
    "not a number in a list": (parameter("[.inf]"), "list param item is invalid, +Inf is not a finite number"),
    "deep list": (
        parameter("[" * 34 + "]" * 34),
        "list param is invalid, lists are nested more than 32 deep",
    ),
}


def looped(loop: str) -> str:
    return f"entry_points: {{a: {{parameters: {{p: 1}}, loop_argument: {loop}}}}}"


CONTROL = {
    "unknown in a condition": (
        "entry_points: {a: {condition: '{{zzz}} > 1'}}",
        "{{zzz}} in condition is not parameter or input artifact or system templete",
    ),
    "upstream in a condition": (
        "entry_points: {b: {parameters: {p: 1}}, a: {deps: b, condition: '{{b.p}} > 1'}}",
        "{{b.p}} in condition is not parameter or input artifact or system templete",
    ),
    "template in a loop list": (
        looped("[1, ['{{p}}']]"),
        "[{{p}}]in loopArgument of component [a] is invalid, each one in list loopArgument must not be templete",
    ),
    "two templates as loop": (
        looped("'{{p}}{{p}}'"),
        "loopArgument[{{p}}{{p}}] is invalid, using templates in loopArgument invalid",
    ),
    "template and more as loop": (
        looped("'{{p}}x'"),
        "loopArgument[{{p}}x] is invalid, using template and others in the sametime",
    ),
    "loop over nobody's value": (
        looped("'{{ zzz }}'"),
        "loopArgument {{zzz}} is not parameter or input artifact",
    ),
    "loop over an upstream value": (looped("'{{b.p}}'"), "loopArgument {{b.p}} is not parameter or input artifact"),
    "loop over its own item": (
        looped("'{{PF_LOOP_ARGUMENT}}'"),
        "loopArgument {{PF_LOOP_ARGUMENT}} is not parameter or input artifact",
    ),
    "JSON that is no list": (
        looped("'3'"),
        "loopArgument [3] unmarshal to list failed, error: it is int, not a list",
    ),
    "bool in a loop": (looped("[true]"), "each one in list loopArgument should be int or float or string"),
    "object in a JSON loop": (looped("'[{}]'"), "each one in list loopArgument should be int or float or string"),
    "number as loop": (looped("5"), "loopArgument can only be string or list type"),
    "infinite item": (
        looped("[.inf]"),
        "loopArgument of component [a] is invalid, +Inf is not a finite number",
    ),
    "deep loop": (
        looped(f"'{'[' * 500}{']' * 500}'"),
        "loopArgument of component [a] is invalid, lists are nested more than 32 deep",
    ),
    "disabled twice": ("disabled: a,a\nentry_points: {a: {}}", "disabled component[a] is set repeatedly!"),
    "disabled nobody": ("disabled: zzz\nentry_points: {a: {}}", "disabled component[zzz] not existed!"),
    "disabled nearly": (
        "disabled: sub.trian\nentry_points: {sub: {entry_points: {train: {}}}}",
        "disabled component[sub.trian] not existed!, did you mean [sub.train]?",
    ),
    "disabled but its parameter is used": (
        "disabled: a\nentry_points: {a: {parameters: {p: 1}}, b: {deps: a, parameters: {p: '{{a.p}}'}}}",
        "disabled component[a] is refered by [b]",
    ),
    "disabled but its output is used": (
        FS
        + "disabled: d.a\nentry_points: {d: {entry_points: {a: {artifacts: {output: [o]}},"
        + " b: {deps: a, artifacts: {input: {i: '{{a.o}}'}}}}}}",
        "disabled component[d.a] is refered by [d.b]",
    ),
    "disabled but the dag gives its output": (
        FS
        + "disabled: d.a\nentry_points: {d: {artifacts: {output: {o: '{{a.o}}'}},"
        + " entry_points: {a: {artifacts: {output: [o]}}}}}",
        "disabled component[d.a] is refered by [d]",
    ),
}

POST_PROCESS = {
    "two": ("entry_points: {}\npost_process: {a: {}, b: {}}", "post_process can only has 1 step at most"),
    "name taken": (
        "entry_points: {a: {}}\npost_process: {a: {}}",
        "a step in post_process has name [a], which is same to name of a step in entry_points",
    ),
    "inputs": (
        "entry_points: {}\npost_process: {a: {artifacts: {input: {i: '{{b.o}}'}}}}",
        "step [a] in post_process has input artifacts",
    ),
    "deps": ("entry_points: {b: {}}\npost_process: {a: {deps: b}}", "step [a] in post_process has deps"),
    "cache": (
        "entry_points: {}\npost_process: {a: {cache: {enable: true}}}",
        "step [a] in post_process should not use cache",
    ),
    "condition": (
        "entry_points: {}\npost_process: {a: {condition: 1 > 0}}",
        "step [a] in post_process should not have condition",
    ),
    "loop": (
        "entry_points: {}\npost_process: {a: {loop_argument: [1]}}",
        "step [a] in post_process should not have loop_argument",
    ),
    "loop of its component": (
        "entry_points: {}\ncomponents: {c: {loop_argument: [1]}}\npost_process: {a: {reference: {component: c}}}",
        "step [a] in post_process should not have loop_argument",
    ),
    "reference": (
        "entry_points: {}\npost_process: {a: {reference: {component: zzz}}}",
        "reference[zzz] of step [a] in post_process is not exist",
    ),
    "dag": (
        "entry_points: {}\ncomponents: {c: {entry_points: {x: {}}}}\npost_process: {a: {reference: {component: c}}}",
        "component in post_process should be a step, not dag",
    ),
    "parameters of others": (
        "entry_points: {b: {parameters: {p: 1}}}\npost_process: {a: {parameters: {q: '{{b.p}}'}}}",
        "step in post_process can not use parameters of steps in entry_points",
    ),
    "parameters of others in the command": (
        "entry_points: {b: {parameters: {p: 1}}}\npost_process: {a: {command: '{{b.p}}'}}",
        "step in post_process can not use parameters of steps in entry_points",
    ),
}

OPTIONS = {
    "expiry": ("cache: {max_expired_time: soon}\nentry_points: {}", "MaxExpiredTime[soon] of cache not correct"),
    "expiry of a step": (
        "entry_points: {a: {cache: {max_expired_time: '1.5'}}}",
        "MaxExpiredTime[1.5] of cache in step[a] not correct",
    ),
    "expiry of a step of a component": (
        "entry_points: {}\ncomponents: {d: {entry_points: {a: {cache: {max_expired_time: x}}}}}",
        "MaxExpiredTime[x] of cache in step[d.a] not correct",
    ),
    "strategy": (
        "failure_options: {strategy: hope}\nentry_points: {}",
        "failure strategy should be [fail_fast] or [continue], setted by [hope]",
    ),
    "read only": (
        "fs_options: {main_fs: {name: a, read_only: true}}\nentry_points: {}",
        "[read_only] in [main_fs] must be false",
    ),
    "sub path of main": (
        "fs_options: {main_fs: {name: a, sub_path: /x}}\nentry_points: {}",
        "[sub_path] in [main_fs] should not start with '/'",
    ),
    "sub path of extra": (
        "fs_options: {extra_fs: [{name: a, sub_path: /x}]}\nentry_points: {}",
        "[sub_path] in [extra_fs] should not start with '/'",
    ),
    "sub path of a step": (
        "entry_points: {a: {extra_fs: [{name: a, sub_path: /x}]}}",
        "[sub_path] in [extra_fs] should not start with '/'",
    ),
    "sub path that climbs": (
        "fs_options: {main_fs: {name: a, sub_path: a/../../b}}\nentry_points: {}",
        "[sub_path] in [main_fs] should not contain '..'",
    ),
    "mount path": (
        "fs_options: {extra_fs: [{name: a, mount_path: x}]}\nentry_points: {}",
        "[mount_path] in [extra_fs] should be an absolute path without '..', not the root directory",
    ),
    "no name": (
        "fs_options: {main_fs: {name: '', mount_path: /data}}\nentry_points: {}",
        "[name] in [extra_fs] or [main_fs] must not be empty",
    ),
    "no name in a step": (
        "entry_points: {a: {extra_fs: [{name: ''}]}}",
        "[name] in [extra_fs] or [main_fs] must not be empty",
    ),
    "scope without a name": (
        "cache: {fs_scope: [{name: ''}]}\nentry_points: {}",
        "[fs_name] in fs_scope must not be empty",
    ),
    "scope that is not mounted": (
        "cache: {fs_scope: [{name: other}]}\n" + FS + "entry_points: {}",
        "fs_name [other] in fs_scope must also be in [extra_fs] or [main_fs]",
    ),
    "scope of a step that is not mounted": (
        FS + "entry_points: {b: {extra_fs: [{name: other}]}, a: {cache: {fs_scope: [{name: other}]}}}",
        "fs_name [other] in fs_scope must also be in [extra_fs] or [main_fs]",
    ),
    "scope that climbs": (
        FS + "cache: {fs_scope: [{name: work, path: 'a,../b'}]}\nentry_points: {}",
        "[path] in fs_scope should not contain '..'",
    ),
}

TABLES = {
    "names": NAMES,
    "structure": STRUCTURE,
    "templates": TEMPLATES,
    "parameters": PARAMETERS,
    "control": CONTROL,
    "post_process": POST_PROCESS,
    "options": OPTIONS,
}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(text, message, id=f"{table}-{name}")
        for table, cases in TABLES.items()
        for name, (text, message) in cases.items()
    ],
)
def test_each_fault_has_its_message(text: str, message: str) -> None:
    found_here = messages(text)
    assert message in found_here
    assert len(found_here) == 1 or message in COME_WITH_OTHERS


COME_WITH_OTHERS = {
    "reference.component [zzz] in component[a] is not exist",
    "reference.component [z] in component[d.a] is not exist",
    "invalid reference param {{ up.q }} in component[c]: component[up] not exist",
    "step [a] in post_process has input artifacts",
    "step in post_process can not use parameters of steps in entry_points",
}
"""Another rule sees the same fault from its own side; every other fault is told once."""


def test_bad_json_is_quoted_and_explained() -> None:
    (message,) = messages(looped("'[1, '"))
    assert message.startswith("loopArgument [[1, ] unmarshal to list failed, error: ")


def test_a_condition_that_cannot_be_read() -> None:
    (message,) = messages("entry_points: {a: {condition: '1 >'}}")
    assert message.startswith("condition[1 >] is invalid, error: ")


OVERRIDES = {
    "nowhere": ("zzz", "param[zzz] not exist"),
    "no such node": ("zzz.p", "cannont find component to replace param with [zzz.p]"),
    "no such child": ("d.zzz.p", "cannont find component to replace param with [d.zzz.p]"),
    "not in the step": ("a.zzz", "no parameter named [zzz] in step [a]"),
    "not in the dag": ("d.zzz", "no parameter named [zzz] in dag [d]"),
    "through a step": ("a.b.p", "replace param by request failed, component [a] should be a dag, not step"),
    "only in a component": ("c", "param[c] not exist"),
    "of another type": ("a.typed", "invalid type[string] for param[x]. expect type[int]"),
    "everywhere, of another type somewhere": ("typed", "invalid type[string] for param[x]. expect type[int]"),
}


@pytest.mark.parametrize(("key", "message"), OVERRIDES.values(), ids=OVERRIDES)
def test_each_fault_of_a_request_has_its_message(key: str, message: str) -> None:
    text = """
        entry_points:
          a: {parameters: {p: 1, typed: {type: int, default: 1}}}
          d: {parameters: {p: 1}, entry_points: {b: {parameters: {p: 1}}}}
        components: {x: {parameters: {c: 1}}}
    """
    assert messages(text, Overrides(parameters={key: "x"})) == [message]


def test_a_number_of_more_than_64_bits_is_refused() -> None:
    text = parameter("1")
    assert messages(text, Overrides(parameters={"p": 2**63 - 1})) == []
    assert messages(text, Overrides(parameters={"p": 2**63})) == [
        "value of param[p] is invalid, a whole number must fit in 64 bits"
    ]
    assert messages(looped("[1, 9223372036854775808]")) == [
        "loopArgument of component [a] is invalid, a whole number must fit in 64 bits"
    ]


EMPTY = {
    "left out": ("entry_points: {a: {}}", "a", 2),
    "empty": ("entry_points:\n  a:\n    command: ''", "a", 4),
    "blank": ("entry_points:\n  a:\n    command: ' \t'", "a", 4),
    "in a dag": ("entry_points: {d: {entry_points: {a: {env: {E: x}}}}}", "d.a", 2),
}


@pytest.mark.parametrize(("text", "name", "line"), EMPTY.values(), ids=EMPTY.keys())
def test_a_step_without_a_program(text: str, name: str, line: int) -> None:
    document = load("name: p\n" + text)
    (problem,) = problems(parse(document.value, document.lines), NOTHING, Limits())
    assert problem.message == f"command of step [{name}] is empty, give the program to run"
    assert (problem.path[-1], problem.line) == ("command", line)


PROGRAMS = {
    "disabled": ("entry_points: {a: {}}", Overrides(disabled="a")),
    "of a component": (
        "entry_points: {a: {reference: {component: c}}}\ncomponents: {c: {command: ls}}",
        NOTHING,
    ),
    "of Ray": ("entry_points: {a: {env: {PF_JOB_TYPE: distributed, RAY_JOB_ENTRY_POINT: python x.py}}}", NOTHING),
}


@pytest.mark.parametrize(("text", "overrides"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_program_may_be_said_elsewhere(text: str, overrides: Overrides) -> None:
    document = load("name: p\n" + text)
    assert problems(parse(document.value, document.lines), overrides, Limits()) == ()
