"""``@step``: a plain typed Python function as a step.

::

    @step
    def make(n: int, data: Output) -> int:
        data.write_text("\\n".join(map(str, range(n))))
        return n

    @step
    def total(data: Input, factor: float = 1.0) -> float:
        return factor * sum(map(int, data.read_text().split()))

    @Pipeline(name="sums")
    def sums(n=10):
        made = make(n)
        total(made.data, factor=0.5)

Inside the job an ``Input`` or ``Output`` is the ``pathlib.Path`` of an artifact, everything else is a parameter, and
what is returned is the artifact ``result``, as JSON. The compiled step is an ordinary one: its command carries the
source of the function and of the local modules it imports, its arguments come by parameters and environment variables.
"""

from __future__ import annotations

import base64
import functools
import inspect
import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, overload

from paddleflow.pipeline import function_modules, function_runner, names
from paddleflow.pipeline.components import ContainerStep, open_dag
from paddleflow.pipeline.failures import dsl_error
from paddleflow.pipeline.function_arguments import ENV_PREFIX, Argument, Input, Kind, Output, read_arguments
from paddleflow.pipeline.function_source import check_function, function_text, returns_value
from paddleflow.pipeline.local_modules import ModuleBundle, bundle_for
from paddleflow.pipeline.values import Artifact, LoopItem, Parameter
from paddleflow.sdk.errors import InvalidError

RESULT = "result"
_BOOT = "import base64,sys;exec(base64.b64decode(sys.argv[1]))"
_COMMAND_LIMIT = 110_000
"""Characters; a server takes some 120,000, and a cd and some quotes are added on the way."""
_MADE_HERE = {"self", "command", "inputs", "outputs", "parameters"}
_OPTIONS = frozenset(inspect.signature(ContainerStep.__init__).parameters) - _MADE_HERE | {"python"}


@dataclass(slots=True)
class _Call:
    """One call of a step function: what the step gets, and what its runner must know."""

    parameters: dict[str, object] = field(default_factory=dict)
    inputs: dict[str, Artifact] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    specs: list[dict[str, object]] = field(default_factory=list)

    def by_environment(self, argument: Argument, source: str) -> None:
        self.env[ENV_PREFIX + argument.name.upper()] = names.template(source)
        self.specs.append({"name": argument.name, "kind": "parameter", "type": argument.type})


class FunctionStep(ContainerStep):
    """A step made from a function; its outputs, and then its parameters, are also its attributes."""

    def __getattr__(self, name: str) -> Any:
        # Asked only for what the step itself does not have; and before it is complete there is nothing to give.
        for found in (self.__dict__.get("_outputs"), self.__dict__.get("_parameters")):
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"step[{self.__dict__.get('_name')}] has no output or parameter named [{name}]")


class StepFunction:
    """What ``@step`` makes of a function. Calling it, inside a pipeline, makes a step."""

    def __init__(
        self, function: Callable[..., object], options: Mapping[str, Any], loop: tuple[str, object] | None = None
    ) -> None:
        self.__name__ = getattr(function, "__name__", str(function))
        self.__doc__ = function.__doc__
        self._title = f"step function[{self.__name__}]"
        check_function(function, self._title)
        unknown = options.keys() - _OPTIONS
        if unknown:
            raise dsl_error(f"{self._title} has no option {sorted(unknown)}: there are {sorted(_OPTIONS)}")
        self.function = function
        """The plain function, to be called and tested as such."""
        self._options = dict(options)
        self._loop = loop
        self._arguments = {each.name: each for each in read_arguments(function, self._title)}
        self._has_result = returns_value(function, self._title)
        if self._has_result and RESULT in {name.lower() for name in self._arguments}:
            raise dsl_error(f"{self._title} returns a value, so none of its arguments can be called [{RESULT}]")

    def options(self, **changes: Any) -> StepFunction:
        """The same function with other options: those of ``ContainerStep`` (``name``, ``docker_env``, ``env``,
        ``cache_options``, ``condition``, ``loop_argument``, ``extra_fs``, ``retry``, ``timeout``), and ``python``,
        the interpreter to run it with."""
        return StepFunction(self.function, {**self._options, **changes}, self._loop)

    def loop(self, **over: object) -> StepFunction:
        """Run once for each item, which is given to the one argument named: ``train.loop(lr=[0.1, 0.01])(data)``.

        The items are a list, the JSON text of one, a parameter, or an artifact that holds a JSON list.
        """
        if len(over) != 1:
            raise dsl_error(f"{self._title} loops over exactly one argument, not over {sorted(over)}")
        ((name, items),) = over.items()
        argument = self._arguments.get(name)
        if argument is None or argument.kind is not Kind.VALUE:
            raise dsl_error(f"{self._title} has no parameter [{name}] to loop over")
        loop = (name, _artifact_of(items) if isinstance(items, FunctionStep) else items)
        return StepFunction(self.function, self._options, loop)

    def __call__(self, *args: Any, **kwargs: Any) -> FunctionStep:
        """A step of the DAG being built here. Outputs are not passed: the platform says where they are written."""
        call = _Call()
        given = self._bound(args, kwargs)
        for argument in self._arguments.values():
            if argument.kind is Kind.OUTPUT:
                call.specs.append({"name": argument.name, "kind": "output"})
            elif self._loop is not None and argument.name == self._loop[0]:
                call.by_environment(argument, names.LOOP_ITEM)
            elif argument.kind is Kind.VALUE:
                self._pass_value(call, argument, given[argument.name])
            else:
                self._pass_artifacts(call, argument, given[argument.name])
        return self._step(call)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        looped = self._loop[0] if self._loop is not None else ""
        passed = [
            parameter
            for name, parameter in inspect.signature(self.function).parameters.items()
            if self._arguments[name].kind is not Kind.OUTPUT and name != looped
        ]
        try:
            bound = inspect.Signature(passed).bind(*args, **kwargs)
        except TypeError as error:
            raise dsl_error(f"{self._title} cannot be called so: {error}") from error
        bound.apply_defaults()
        return bound.arguments

    def _pass_value(self, call: _Call, argument: Argument, value: object) -> None:
        if isinstance(value, Artifact | FunctionStep):
            call.inputs[argument.name] = _artifact_of(value)
            call.specs.append({"name": argument.name, "kind": "json", "type": argument.type})
            return
        foreign = isinstance(value, Parameter | LoopItem)
        call.parameters[argument.name] = value if foreign else self._written(argument, value)
        call.by_environment(argument, argument.name)

    def _written(self, argument: Argument, value: object) -> object:
        """A plain value as the pipeline language has it: numbers are typed, what it lacks travels as text."""
        match argument.type, value:
            case "str", str():
                return value
            case "bool", bool():
                return "true" if value else "false"
            case ("int", int()) | ("float", int() | float()) if not isinstance(value, bool):
                return Parameter(value, argument.type)
            case ("list", list() | tuple()) | ("dict", dict()):
                return self._json(argument, value)
        raise dsl_error(
            f"argument[{argument.name}] of {self._title} should be of type {argument.type}, not [{value!r}]"
        )

    def _json(self, argument: Argument, value: object) -> str:
        try:
            return json.dumps(value)
        except (TypeError, ValueError) as error:
            raise dsl_error(f"argument[{argument.name}] of {self._title} cannot be written as JSON: {error}") from error

    def _pass_artifacts(self, call: _Call, argument: Argument, value: object) -> None:
        several = argument.kind is Kind.INPUTS and isinstance(value, list | tuple)
        given = list(value) if isinstance(value, list | tuple) and several else [value]
        values = [each for each in given if isinstance(each, Artifact | FunctionStep)]
        if not values or len(values) < len(given):
            raise dsl_error(
                f"argument[{argument.name}] of {self._title} is an Input: give it an output of another step, not "
                f"[{value!r}]"
            )
        parts = [f"{argument.name}_{at}" for at in range(len(values))] if several else [argument.name]
        call.inputs |= {part: _artifact_of(each) for part, each in zip(parts, values, strict=True)}
        spec: dict[str, object] = {"name": argument.name, "kind": str(argument.kind)}
        call.specs.append({**spec, "parts": parts} if several else spec)

    def _step(self, call: _Call) -> FunctionStep:
        options = dict(self._options)
        python = options.pop("python", "python3")
        if self._loop is not None:
            if options.get("loop_argument") is not None:
                raise dsl_error(f"{self._title} has a loop and a loop_argument: it can only have one of them")
            options["loop_argument"] = self._loop[1]
        outputs = [name for name, each in self._arguments.items() if each.kind is Kind.OUTPUT]
        outputs += [RESULT] if self._has_result else []
        return FunctionStep(
            name=options.pop("name", None) or self._free_name(),
            command=self._command(python, call.specs),
            inputs=call.inputs,
            outputs={name: Artifact() for name in outputs},
            parameters=call.parameters,
            env={**(options.pop("env", None) or {}), **call.env},
            **options,
        )

    def _command(self, python: str, specs: list[dict[str, object]]) -> str:
        source = function_text(self.function, self._title, _inside_a_job)
        bundle = bundle_for(self.function, source, self._title)
        result = RESULT if self._has_result else ""
        # A step without local modules has the command that it had before there were any: its results are still known.
        install = [f"{_text_of(function_modules)}\n\ninstall(sys.argv.pop())"] if bundle.modules else []
        run = f"run({self.__name__!r}, {source!r}, {specs!r}, {result!r})\n"
        program = "\n\n".join([_text_of(function_runner), *install, run])
        # Encoded, so that neither the shell nor the template language finds anything in it to read.
        words = [python, "-c", _BOOT, base64.b64encode(program.encode()).decode()]
        command = shlex.join([*words, bundle.plain] if bundle.modules else words)
        if bundle.modules and len(command) > _COMMAND_LIMIT:
            command = shlex.join([*words, bundle.compressed])
        if len(command) > _COMMAND_LIMIT:
            raise _too_large(self._title, len(command), bundle)
        return command

    def _free_name(self) -> str:
        """The function's name, with a number behind it from the second time on."""
        name, dag = self.__name__.replace("_", "-").strip("-"), open_dag()
        taken = dag.entry_points if dag is not None else {}
        free, count = name, 1
        while free in taken:
            count += 1
            free = f"{name}-{count}"
        return free


def _artifact_of(given: Artifact | FunctionStep) -> Artifact:
    """A step stands for its result, or for its only output."""
    if isinstance(given, Artifact):
        return given
    outputs = given.outputs
    if RESULT in outputs:
        return outputs[RESULT]
    if len(outputs) != 1:
        raise dsl_error(f"step[{given.name}] has the outputs {sorted(outputs)}: say which of them is meant")
    return next(iter(outputs.values()))


def _inside_a_job(value: object) -> object:
    """Inside a job a step function is the function it was made from, and a mark is the path it stands for."""
    if isinstance(value, StepFunction):
        return value.function
    return Path if value is Input or value is Output else value


@functools.cache
def _text_of(module: ModuleType) -> str:
    return inspect.getsource(module)


def _too_large(title: str, size: int, bundle: ModuleBundle) -> InvalidError:
    if not bundle.modules:
        return dsl_error(
            f"{title} and what it uses of its module make a command of {size} characters, the limit is "
            f"{_COMMAND_LIMIT}: put the larger part into a module that is installed where the step runs"
        )
    return dsl_error(
        f"{title} and the local modules it imports ({len(bundle.modules)}) make a command of {size} characters, "
        f"compressed, the limit is {_COMMAND_LIMIT}. The largest are {bundle.largest()}. Import less, or install them "
        "as a package (not editable), here and where the step runs"
    )


@overload
def step(function: Callable[..., object], /) -> StepFunction: ...
@overload
def step(**options: Any) -> Callable[[Callable[..., object]], StepFunction]: ...
def step(function: Callable[..., object] | None = None, /, **options: Any) -> Any:
    """Make a function a step; the options are those of ``StepFunction.options``."""
    if function is not None:
        return StepFunction(function, options)
    return lambda decorated: StepFunction(decorated, options)
