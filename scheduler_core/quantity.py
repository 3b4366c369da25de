"""Convert Kubernetes quantities to whole numbers (rule R8), and whole numbers to readable text.

Owns: suffixes, rounding, readable units, and the unit of each resource: cpu in milli, all others in ones.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from groups.errors import FluenceError

#: The largest amount. The difference of two still fits an int64. (Kubernetes itself caps at 2^63-1.)
LIMIT: Final = 2**62

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?P<suffix>[eE][+-]?[0-9]+|[KMGTPE]i|[numkMGTPE])?"
)
_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
# Longer numbers have no use and would only cost time.
_MAX_TEXT = 128
_MAX_EXPONENT = 128


class QuantityError(FluenceError):
    """A text is not a Kubernetes quantity; the message names it."""

    def __init__(self, text: str, resource: str = "") -> None:
        head = f"{resource}: " if resource else ""
        super().__init__(
            f'{head}"{text:.60}" is not a Kubernetes quantity: write a number with an optional suffix '
            "n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent, such as 500m, 1.5Gi or 2e3"
        )


@functools.lru_cache(maxsize=65536)
def milli(text: str, *, up: bool = True) -> int:
    """The quantity in thousandths, rounded up (requests) or down (capacity)."""
    return _whole(text, 3, up=up)


@functools.lru_cache(maxsize=65536)
def units(text: str, *, up: bool = True) -> int:
    """The quantity in ones, rounded up (requests) or down (capacity)."""
    return _whole(text, 0, up=up)


def amount(resource: str, text: str, *, up: bool = True) -> int:
    """The quantity in the unit in which this resource is counted: cpu in milli, the rest in ones."""
    return milli(text, up=up) if resource == "cpu" else units(text, up=up)


def _whole(text: str, exponent: int, *, up: bool) -> int:
    found = _QUANTITY.fullmatch(text) if len(text) <= _MAX_TEXT else None
    if found is None:
        raise QuantityError(text)
    part, suffix = found["part"] or "", found["suffix"] or ""
    digits = found["whole"] + part
    if not digits:
        raise QuantityError(text)
    mantissa = int(digits)
    exponent -= len(part)
    if suffix in _BINARY:
        mantissa <<= _BINARY[suffix]
    elif suffix in _DECIMAL:
        exponent += _DECIMAL[suffix]
    else:
        exponent += max(-_MAX_EXPONENT, min(_MAX_EXPONENT, int(suffix[1:])))
    if found["sign"] == "-":
        mantissa = -mantissa
    if exponent >= 0:
        value: int = mantissa * 10**exponent
    else:
        # Floor division rounds towards minus infinity; twice negated it rounds up.
        scale = 10**-exponent
        value = -(-mantissa // scale) if up else mantissa // scale
    return max(-LIMIT, min(LIMIT, value))


def human(resource: str, value: int) -> str:
    """The amount as a user would write it: cpu "1500m" or "2", sizes in whole Ki to Ti where exact."""
    if resource == "cpu":
        return f"{value}m" if value % 1000 else str(value // 1000)
    if not _is_bytes(resource) or value == 0:
        return str(value)
    for suffix in ("Ti", "Gi", "Mi", "Ki"):
        if value % (1 << _BINARY[suffix]) == 0:
            return f"{value >> _BINARY[suffix]}{suffix}"
    return _rounded_bytes(value)


def _rounded_bytes(value: int) -> str:
    # Two digits after the point are easier to read than bytes. Rounded down, so that a message never
    # shows more than there is.
    sign, size = ("-", -value) if value < 0 else ("", value)
    for suffix in ("Ti", "Gi", "Mi", "Ki"):
        unit = 1 << _BINARY[suffix]
        if size >= unit:
            hundredths = size * 100 // unit
            text = f"{hundredths // 100}.{hundredths % 100:02d}".rstrip("0").rstrip(".")
            return f"{sign}{text}{suffix}"
    return str(value)


def _is_bytes(resource: str) -> bool:
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
