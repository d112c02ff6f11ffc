"""What one run of the command line carries from the root to its command: the output format and a logged-in client."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from paddleflow.cli.config import TokenCache
    from paddleflow.sdk.client import Client
    from paddleflow.sdk.profile import Profile


class Invocation:
    """Made by the root group; commands get it with ``click.pass_obj``. Nothing is read before it is asked for."""

    def __init__(self, config_path: Path | None, output: str, *, is_patient: bool = True) -> None:
        """``is_patient``: a server on this machine that does not listen yet is waited for."""
        self.output = output
        self._is_patient = is_patient
        self._config_path = config_path
        self._client: Client | None = None
        self._kept_token: str | None = None

    @cached_property
    def config(self) -> Profile:
        from paddleflow.cli.config import load_config

        return load_config(self._config_path)

    @cached_property
    def _tokens(self) -> TokenCache:
        from paddleflow.cli.config import TokenCache

        return TokenCache(self.config)

    @property
    def client(self) -> Client:
        """Logged in, with the token of an earlier run if there is one; a stale token is renewed on the way."""
        if self._client is None:
            from paddleflow.sdk.client import Client

            config = self.config
            client = Client(config.host, config.user, config.password, config.port)
            if self._is_patient:
                client.wait_for_start(lambda: click.echo(f"waiting for a server at {client.address} …", err=True))
            self._kept_token = self._tokens.find()
            if self._kept_token is None:
                client.login(config.user, config.password)
            else:
                client.resume(self._kept_token)
            self._client = client
            self._remember()
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._remember()
            self._client.close()

    def _remember(self) -> None:
        token = None if self._client is None else self._client.token
        if token is not None and token != self._kept_token:
            self._tokens.keep(token)
            self._kept_token = token
