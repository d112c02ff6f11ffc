"""The table from errors to exit codes, and the one line an error is told in.

====  ==========================================================================
code  meaning
====  ==========================================================================
0     done; for commands that watch or wait: what was watched succeeded
1     the server said no, or the command failed for a reason of its own; a watched run did not succeed
2     the command line is wrong
3     the server cannot be reached
4     the log-in was refused, or the user may not do this
5     there is no such thing
10    the watched job failed
11    the watched job ended otherwise: terminated, preempted, cancelled or skipped
130   interrupted with Ctrl-C; a watched job goes on running
141   whoever read our output has closed it
====  ==========================================================================
"""

from __future__ import annotations

from enum import IntEnum

from paddleflow.domain.errors import Denied, NotFound, PaddleFlowError, Unauthenticated


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    AUTH = 4
    NOT_FOUND = 5
    JOB_FAILED = 10
    JOB_STOPPED = 11
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141


def exit_code(error: PaddleFlowError) -> ExitCode:
    from paddleflow.sdk.errors import UnreachableError

    match error:
        case UnreachableError():
            return ExitCode.UNREACHABLE
        case Unauthenticated() | Denied():
            return ExitCode.AUTH
        case NotFound():
            return ExitCode.NOT_FOUND
        case _:
            return ExitCode.FAILED


def job_exit_code(status: str) -> ExitCode:
    """How the shell hears about the end of a watched job."""
    from paddleflow.domain.jobs import JobStatus

    if status == JobStatus.SUCCEEDED:
        return ExitCode.OK
    return ExitCode.JOB_FAILED if status == JobStatus.FAILED else ExitCode.JOB_STOPPED


def run_exit_code(status: str) -> ExitCode:
    """How the shell hears about the end of a watched run."""
    from paddleflow.domain.runs import RunStatus

    return ExitCode.OK if status == RunStatus.SUCCEEDED else ExitCode.FAILED


def one_line(error: PaddleFlowError) -> str:
    """``error: <message> [<code>, request <id>]``, whatever line breaks the message had."""
    request_id = getattr(error, "requestId", None)
    origin = f"{error.code}, request {request_id}" if request_id else error.code
    message = " ".join(error.message.split()) or "no reason was given"
    hint = (
        "; start one with: paddleflow serve" if exit_code(error) is ExitCode.UNREACHABLE and _is_here(message) else ""
    )
    return f"error: {message}{hint} [{origin}]"


def _is_here(message: str) -> bool:
    """The address in the message is this machine's own."""
    return any(f"//{host}:" in message for host in ("127.0.0.1", "localhost", "[::1]"))
