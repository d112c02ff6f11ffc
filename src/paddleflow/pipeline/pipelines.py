"""``Pipeline``: a decorator over the function that builds it, then the thing that compiles and runs.

::

    @Pipeline(name="training")
    def training(lr): ...        # steps made in here belong to it

    training(0.1).run()
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from paddleflow.pipeline import compiling, names
from paddleflow.pipeline.components import DAG, Component, Step
from paddleflow.pipeline.failures import dsl_error
from paddleflow.pipeline.mappings import EnvDict
from paddleflow.pipeline.options import CacheOptions, FailureOptions, FSOptions

if TYPE_CHECKING:
    from paddleflow.sdk.client import Client

Arguments = ParamSpec("Arguments")


class Pipeline:
    """Used as a decorator it makes pipelines; calling the decorated function gives one, with its steps in it."""

    def __init__(
        self,
        name: str,
        parallelism: int | None = None,
        docker_env: str | None = None,
        env: Mapping[str, Any] | None = None,
        cache_options: CacheOptions | None = None,
        failure_options: FailureOptions | None = None,
        fs_options: FSOptions | None = None,
    ) -> None:
        self.name = name
        self.parallelism = None if parallelism is None else compiling.check_parallelism(parallelism)
        self.docker_env = docker_env
        self.cache_options = cache_options
        self.failure_options = failure_options
        self.fs_options = fs_options
        self._env = EnvDict(self)
        self._env.fill(env, "env")
        self._entry_points: DAG | None = None
        self._post_process: Step | None = None

    @property
    def name(self) -> str:
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = names.check_pipeline(name)

    @property
    def full_name(self) -> str:
        return self._name

    @property
    def env(self) -> EnvDict:
        """Of every step that does not set the same variable itself."""
        return self._env

    def add_env(self, env: Mapping[str, Any]) -> None:
        self._env.fill(env, "env")

    @property
    def entry_points(self) -> dict[str, Component]:
        """Its steps and DAGs, by name."""
        return {} if self._entry_points is None else self._entry_points.entry_points

    def __call__(self, function: Callable[Arguments, object]) -> Callable[Arguments, Pipeline]:
        @functools.wraps(function)
        def build(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Pipeline:
            made = Pipeline(
                self.name,
                self.parallelism,
                self.docker_env,
                self._env,
                self.cache_options,
                self.failure_options,
                self.fs_options,
            )
            made._post_process = self._post_process
            made._entry_points = DAG(names.ROOT)
            with made._entry_points:
                function(*args, **kwargs)
            return made

        return build

    def set_post_process(self, step: Step) -> None:
        """The step that runs when all others have ended, however they ended. There is one at most."""
        if not isinstance(step, Step):
            raise dsl_error(f"post_process of Pipeline[{self.name}] should be a step, not [{step}]")
        self._post_process = step

    def get_post_process(self) -> Step | None:
        return self._post_process

    def compile(self, save_path: str | Path | None = None) -> dict[str, Any]:
        """The document a server reads; written to a file as well, if one is named."""
        if self._entry_points is None or not self._entry_points.entry_points:
            raise dsl_error(f"there is no step or DAG in Pipeline[{self.name}]")
        document: dict[str, Any] = {"entry_points": compiling.compile_graph(self._entry_points, self._env)}
        if self._post_process is not None:
            document["post_process"] = compiling.compile_post_process(
                self._post_process, self._env, document["entry_points"]
            )
        document |= compiling.compile_options(
            docker_env=self.docker_env,
            name=self.name,
            cache_options=self.cache_options,
            failure_options=self.failure_options,
            parallelism=self.parallelism,
            fs_options=self.fs_options,
        )
        if save_path is not None:
            compiling.write(document, save_path)
        return document

    def run(
        self,
        config: str | Path | None = None,
        username: str | None = None,
        fs_name: str | None = None,
        run_name: str | None = None,
        desc: str | None = None,
        disabled: Iterable[str | Component] | str | None = None,
    ) -> Any:
        """Start a run on the server of the configuration file; gives ``(True, run id)``."""
        raw, left_out = self._raw(), self._disabled(disabled)
        with self._client(config) as client:
            return client.create_run(fs_name, username, run_name, desc, run_yaml_raw=raw, disabled=left_out or None)

    def create(self, config: str | Path | None = None, username: str | None = None, desc: str | None = None) -> Any:
        """Store it on the server as a new pipeline."""
        raw = self._raw()
        with self._client(config) as client:
            return client.create_pipeline(desc=desc, username=username, yaml_raw=raw)

    def update(
        self,
        pipeline_id: str,
        config: str | Path | None = None,
        username: str | None = None,
        desc: str | None = None,
    ) -> Any:
        """Store it on the server as the next version of a pipeline."""
        raw = self._raw()
        with self._client(config) as client:
            return client.update_pipeline(pipeline_id, username=username, desc=desc, yaml_raw=raw)

    def _raw(self) -> bytes:
        return compiling.as_text(self.compile()).encode()

    def _disabled(self, given: Iterable[str | Component] | str | None) -> str:
        """``a,b.c``: full names as the server knows them, which does not count the outermost DAG."""
        wanted = given.split(",") if isinstance(given, str) else list(given or ())
        known = set(_full_names(self.entry_points, ""))
        chosen = []
        for each in wanted:
            full_name = each.full_name if isinstance(each, Component) else str(each).strip()
            full_name = full_name.removeprefix(f"{names.ROOT}.")
            if full_name not in known:
                raise dsl_error(f"disabled component[{full_name}] is not in Pipeline[{self.name}]")
            chosen.append(full_name)
        return ",".join(chosen)

    def _client(self, config: str | Path | None) -> Client:
        from paddleflow.sdk.client import Client  # noqa: PLC0415 - building pipelines does not need it

        return Client.from_config(config)


def _full_names(components: Mapping[str, Component], around: str) -> Iterable[str]:
    for component in components.values():
        full_name = f"{around}{component.name}"
        yield full_name
        if isinstance(component, DAG):
            yield from _full_names(component.entry_points, f"{full_name}.")
