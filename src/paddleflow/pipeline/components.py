"""Steps and DAGs, as users build them. A new one joins the DAG whose ``with`` block it is made in.

Which DAG that is belongs to the context, not to the module: threads and tasks that build pipelines at the same time do
not see each other's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, TypeVar

from paddleflow.pipeline import names
from paddleflow.pipeline.failures import dsl_error
from paddleflow.pipeline.mappings import EnvDict, InputArtifactDict, OutputArtifactDict, ParameterDict
from paddleflow.pipeline.options import CacheOptions, ExtraFS, RetryOptions, extra_fs_list, is_number
from paddleflow.pipeline.values import Artifact, LoopArgument

ComponentT = TypeVar("ComponentT", bound="Component")

_open_dag: ContextVar[DAG | None] = ContextVar("open_dag", default=None)


class Component:
    """What steps and DAGs have in common."""

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, Artifact] | None = None,
        outputs: Mapping[str, Artifact] | None = None,
        parameters: Mapping[str, Any] | None = None,
        condition: str | None = None,
        loop_argument: object = None,
    ) -> None:
        self.name = name
        self._parent: DAG | None = None
        self._upstreams: list[Component] = []
        self._inputs = InputArtifactDict(self)
        self._outputs = OutputArtifactDict(self, of_dag=isinstance(self, DAG))
        self._parameters = ParameterDict(self)
        self._inputs.fill(inputs, "inputs")
        self._outputs.fill(outputs, "outputs")
        self._parameters.fill(parameters, "parameters")
        self.condition = condition
        self.loop_argument = loop_argument

    @property
    def name(self) -> str:
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = names.check_component(name, self.class_name())

    @property
    def full_name(self) -> str:
        """Its own name after those of the DAGs around it: ``PF-ENTRY-POINT.preprocess.split``."""
        return self._name if self._parent is None else f"{self._parent.full_name}.{self._name}"

    @property
    def parent(self) -> DAG | None:
        return self._parent

    @property
    def inputs(self) -> InputArtifactDict:
        return self._inputs

    @property
    def outputs(self) -> OutputArtifactDict:
        return self._outputs

    @property
    def parameters(self) -> ParameterDict:
        return self._parameters

    @property
    def upstreams(self) -> tuple[Component, ...]:
        """What ``after`` named; what references imply is added by compiling."""
        return tuple(self._upstreams)

    @property
    def condition(self) -> str | None:
        return self._condition

    @condition.setter
    def condition(self, condition: str | None) -> None:
        if condition is not None and not isinstance(condition, str):
            raise dsl_error(f"the condition of {self.class_name()}[{self._name}] should be a text, not [{condition}]")
        self._condition = condition

    @property
    def loop_argument(self) -> Any:
        """None, or what it loops over (``.argument``) and the item inside the loop (``.item``)."""
        return self._loop_argument

    @loop_argument.setter
    def loop_argument(self, argument: object) -> None:
        self._loop_argument = None if argument is None else LoopArgument(argument, self)

    def after(self: ComponentT, *upstreams: Component) -> ComponentT:
        """Start only when these are done."""
        for upstream in upstreams:
            if not isinstance(upstream, Component):
                raise dsl_error(
                    f"{self.class_name()}[{self._name}] can only run after steps and DAGs, not [{upstream}]"
                )
            self._upstreams.append(upstream)
        return self

    def class_name(self) -> str:
        return type(self).__name__


class Step(Component):
    """A component that is one job."""


class ContainerStep(Step):
    """A command, its environment and where it runs."""

    def __init__(
        self,
        name: str,
        docker_env: str | None = None,
        command: str | None = None,
        inputs: Mapping[str, Artifact] | None = None,
        outputs: Mapping[str, Artifact] | None = None,
        parameters: Mapping[str, Any] | None = None,
        env: Mapping[str, Any] | None = None,
        cache_options: CacheOptions | None = None,
        condition: str | None = None,
        loop_argument: object = None,
        extra_fs: Sequence[ExtraFS] | ExtraFS | None = None,
        retry: RetryOptions | int | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(name, inputs, outputs, parameters, condition, loop_argument)
        self.docker_env = docker_env
        self.command = command
        self.cache_options = cache_options
        self._env = EnvDict(self)
        self._env.fill(env, "env")
        self._extra_fs = extra_fs_list(extra_fs, f"{self.class_name()}[{self.name}]")
        self.retry = retry
        self.timeout = timeout
        register(self)

    @property
    def env(self) -> EnvDict:
        return self._env

    def add_env(self, env: Mapping[str, Any]) -> None:
        self._env.fill(env, "env")

    @property
    def extra_fs(self) -> list[ExtraFS]:
        return self._extra_fs

    @extra_fs.setter
    def extra_fs(self, given: Sequence[ExtraFS] | ExtraFS | None) -> None:
        self._extra_fs = extra_fs_list(given, f"{self.class_name()}[{self.name}]")

    @property
    def retry(self) -> Any:
        """Given as a number it means that many times."""
        return self._retry

    @retry.setter
    def retry(self, retry: RetryOptions | int | None) -> None:
        options = RetryOptions(retry) if isinstance(retry, int) else retry
        if options is not None:
            if not isinstance(options, RetryOptions):
                raise dsl_error(f"the retry of step[{self.name}] should be a number or RetryOptions, not [{retry}]")
            options.compile()
        self._retry = options

    @property
    def timeout(self) -> float | None:
        """Seconds after which the step is stopped and has failed."""
        return self._timeout

    @timeout.setter
    def timeout(self, timeout: float | None) -> None:
        if timeout is not None and (not is_number(timeout) or not timeout > 0):
            raise dsl_error(f"the timeout of step[{self.name}] should be seconds above 0, not [{timeout}]")
        self._timeout = timeout


class DAG(Component):
    """Components that belong together; those made in its ``with`` block are in it."""

    def __init__(self, name: str, condition: str | None = None, loop_argument: object = None) -> None:
        super().__init__(name, condition=condition, loop_argument=loop_argument)
        self._entry_points: dict[str, Component] = {}
        self._tokens: list[Token[DAG | None]] = []
        if name != names.ROOT:
            register(self)

    @property
    def entry_points(self) -> dict[str, Component]:
        return self._entry_points

    def add(self, *components: Component) -> None:
        for component in components:
            self._add(component)

    def _add(self, component: Component) -> None:
        if not isinstance(component, Component):
            raise dsl_error(f"DAG[{self.name}] can only hold steps and DAGs, not [{component}]")
        if component is self or any(component is dag for dag in self._around()):
            raise dsl_error(f"DAG[{component.name}] cannot be inside itself")
        if component.name in self._entry_points:
            raise dsl_error(f"there are two components named [{component.name}] in DAG[{self.name}]")
        if component.parent is not None:
            raise dsl_error(f"component[{component.name}] is in DAG[{component.parent.name}] already")
        self._entry_points[component.name] = component
        component._parent = self  # noqa: SLF001 - a component is put into a DAG here and nowhere else

    def _around(self) -> Iterator[DAG]:
        dag = self.parent
        while dag is not None:
            yield dag
            dag = dag.parent

    def __enter__(self) -> DAG:
        self._tokens.append(_open_dag.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _open_dag.reset(self._tokens.pop())


def register(component: Component) -> None:
    """Put it into the DAG being built here, if there is one."""
    dag = _open_dag.get()
    if dag is not None:
        dag.add(component)


def open_dag() -> DAG | None:
    """The innermost DAG whose ``with`` block is open here."""
    return _open_dag.get()
