"""The resources vector: parse, add, subtract, scale, compare.

Quantities are spelt as in Kubernetes ("500m", "20Gi", "1e3"). Inside, everything is an integer: CPU in thousandths
of a core, memory in bytes, every other resource in its own unit. Integers make sums exact and hashes stable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from paddleflow.domain.errors import Invalid

CPU = "cpu"
MEMORY = "memory"
STORAGE = "storage"
GPU = "nvidia.com/gpu"

_QUANTITY = re.compile(r"([+-]?)(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_LARGEST = 2**63 - 1
_SCALAR_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]{0,252}/)?[A-Za-z0-9][-A-Za-z0-9_.]{0,62}")


def parse_quantity(text: str) -> Fraction:
    """The exact value of a Kubernetes quantity."""
    found = _QUANTITY.fullmatch(text.strip()) if len(text) <= 64 else None
    if not found:
        raise Invalid(f"[{text[:64]}] is not a quantity such as 2, 500m or 8Gi")
    sign, digits, exponent, suffix = found.groups()
    value = Fraction(digits if digits[-1] != "." else digits[:-1])
    if exponent:
        power = int(exponent)
        if abs(power) > 30:
            raise Invalid(f"[{text[:64]}] is out of range")
        value *= Fraction(10) ** power
    elif suffix in _BINARY:
        value *= 1 << _BINARY[suffix]
    elif suffix:
        value *= Fraction(10) ** _DECIMAL[suffix]
    return -value if sign == "-" else value


def _units(name: str, text: str) -> int:
    """A quantity in the integer unit of that resource, rounded up as Kubernetes does."""
    value = parse_quantity(text)
    if name == CPU:
        value *= 1000
    rounded = -((-value.numerator) // value.denominator)
    if abs(rounded) > _LARGEST:
        raise Invalid(f"{name} [{text[:64]}] is out of range")
    return rounded


def format_units(name: str, units: int) -> str:
    """The shortest exact spelling: 2000 thousandths of a core is "2", 20 GiB is "20Gi"."""
    if name == CPU:
        return str(units // 1000) if units % 1000 == 0 else f"{units}m"
    if name in (MEMORY, STORAGE) and units:
        for suffix, bits in reversed(_BINARY.items()):
            if units % (1 << bits) == 0:
                return f"{units >> bits}{suffix}"
    return str(units)


@dataclass(frozen=True, slots=True)
class Resources:
    """An immutable vector of named integer amounts. An absent name is zero."""

    amounts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, amounts: Mapping[str, str]) -> Resources:
        """From spelt quantities; negative, absurd or misnamed ones are refused by name."""
        parsed: dict[str, int] = {}
        for name, text in amounts.items():
            if not _SCALAR_NAME.fullmatch(name):
                raise Invalid(
                    f"[{name[:80]}] is not a resource name such as cpu or nvidia.com/gpu", details={"field": name[:80]}
                )
            try:
                units = _units(name, text)
            except Invalid as error:
                raise Invalid(f"{name}: {error.message}", details={"field": name}) from None
            if units < 0:
                raise Invalid(f"{name}: [{text[:64]}] is negative", details={"field": name})
            parsed[name] = units
        return cls(parsed)

    @classmethod
    def of(cls, cpu: str = "0", memory: str = "0", **scalars: str) -> Resources:
        return cls.parse({CPU: cpu, MEMORY: memory, **scalars})

    def spell(self) -> dict[str, str]:
        return {name: format_units(name, units) for name, units in self.amounts.items()}

    @property
    def cpu_milli(self) -> int:
        return self.amounts.get(CPU, 0)

    @property
    def memory_bytes(self) -> int:
        return self.amounts.get(MEMORY, 0)

    @property
    def gpus(self) -> int:
        return self.amounts.get(GPU, 0)

    @property
    def scalars(self) -> dict[str, int]:
        """Everything that is not CPU, memory or storage."""
        return {n: v for n, v in self.amounts.items() if n not in (CPU, MEMORY, STORAGE)}

    def get(self, name: str) -> int:
        return self.amounts.get(name, 0)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self.amounts.items())

    def __add__(self, other: Resources) -> Resources:
        total = dict(self.amounts)
        for name, units in other.amounts.items():
            total[name] = total.get(name, 0) + units
        return Resources(total)

    def __sub__(self, other: Resources) -> Resources:
        """May go below zero: a queue whose maximum was lowered under its use has negative idle resources."""
        rest = dict(self.amounts)
        for name, units in other.amounts.items():
            rest[name] = rest.get(name, 0) - units
        return Resources(rest)

    def __mul__(self, times: int) -> Resources:
        return Resources({name: units * times for name, units in self.amounts.items()})

    def __hash__(self) -> int:
        return hash(frozenset((n, u) for n, u in self.amounts.items() if u))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Resources):
            return NotImplemented
        return {n: u for n, u in self.amounts.items() if u} == {n: u for n, u in other.amounts.items() if u}

    @property
    def is_zero(self) -> bool:
        return not any(self.amounts.values())

    def lacking_in(self, room: Resources) -> str | None:
        """The first resource of which ``room`` has too little, or None when this fits."""
        offered = room.amounts
        for name, units in self.amounts.items():
            if units > 0 and units > offered.get(name, 0):
                return name
        return None

    def fits(self, room: Resources) -> bool:
        return self.lacking_in(room) is None

    def over_named_limit(self, limit: Resources) -> str | None:
        """The first resource that ``limit`` names and this exceeds; what a quota does not name it does not limit."""
        for name, most in limit.amounts.items():
            if self.amounts.get(name, 0) > most:
                return name
        return None


NOTHING = Resources()
