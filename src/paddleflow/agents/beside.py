"""``beside --service JSON --ready HOST:PORT -- COMMAND``: runs the command while a service runs beside it.

The service starts first; the command starts when the service listens, and ends the task: then the service is stopped
and the command's exit code is the task's. A service that ends early takes the command with it.
"""

from __future__ import annotations

import argparse
import json

from paddleflow.agents.programs import Failed, Program, connect, on_stop_request, run, say, wait_ended, words_after

_USAGE = "beside --service JSON --ready HOST:PORT -- COMMAND"


def main(arguments: list[str]) -> int:
    before, command = words_after(arguments, _USAGE)
    parser = argparse.ArgumentParser(prog="beside")
    parser.add_argument("--service", required=True, type=json.loads)
    parser.add_argument("--ready", required=True)
    options = parser.parse_args(before)
    service = Program(options.service)
    on_stop_request(service.signal)
    try:
        connect(options.ready, go_on=lambda: not service.has_ended).close()
        return _run_beside(service, command)
    except Failed:
        if service.has_ended:
            say(f"{options.service[0]} ended with exit code {service.exit_code} before the command could start")
        raise
    finally:
        service.stop()


def _run_beside(service: Program, command: list[str]) -> int:
    program = Program(command)
    on_stop_request(program.signal)
    wait_ended((program, service))
    if not program.has_ended:
        say(f"the service beside the command ended with exit code {service.exit_code}; the command is stopped")
        program.stop()
        return program.exit_code or 1
    return program.exit_code


if __name__ == "__main__":
    run(main)
