"""A pipeline in a file of this machine: read, checked and compiled right here, without a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paddleflow.domain.errors import Invalid

if TYPE_CHECKING:
    from paddleflow.planning.plan import Plan
    from paddleflow.planning.source import Overrides


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One thing that is wrong with a pipeline."""

    message: str
    path: str = ""
    """Where in the document; empty: in what was said beside it."""
    line: int | None = None

    def told(self, file: str) -> str:
        """``file:line: message (at path)``, so that editors can jump there."""
        place = f"{file}:{self.line}" if self.line is not None else file
        return f"{place}: {self.message}" + (f" (at {self.path})" if self.path else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    complaints: tuple[Complaint, ...] = ()
    plan: Plan | None = None
    """None: there are complaints."""


def check_file(file: Path, overrides: Overrides) -> Checked:
    """All that is wrong with the pipeline in a YAML or JSON file; or the plan it compiles to."""
    from paddleflow.documents import load
    from paddleflow.planning.check import problems
    from paddleflow.planning.compile import compile_plan
    from paddleflow.planning.parse import parse
    from paddleflow.planning.source import Limits

    limits = Limits()
    try:
        document = load(_text(file))
        source = parse(document.value, document.lines, limits)
        found = problems(source, overrides, limits)
        if found:
            told = (Complaint(message=one.message, path=one.place, line=one.line) for one in found)
            return Checked(complaints=tuple(told))
        return Checked(plan=compile_plan(source, overrides, limits))
    except Invalid as error:
        return Checked(complaints=(_complaint(error),))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(f"it is not UTF-8 text: {error.reason} at byte {error.start}", code="InvalidPipeline") from error
    except OSError as error:
        raise Invalid(f"it cannot be read: {error.strerror}", code="InvalidPipeline") from error


def _complaint(error: Invalid) -> Complaint:
    path, line = error.details.get("path"), error.details.get("line")
    place = path if isinstance(path, str) else ".".join(map(str, path)) if isinstance(path, tuple) else ""
    number = line if isinstance(line, int) else None
    # The sentence tells the place as well; here it is told in front.
    message = error.message.removesuffix(f" (line {number}, at {place})").removesuffix(f" (line {number})")
    return Complaint(message=message, path=place, line=number)
