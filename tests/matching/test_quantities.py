"""Quantities become whole numbers without losing or inventing anything (rule R8)."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from groups.errors import FluenceError
from scheduler_core import quantity

EXACT = Context(prec=400)
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}

numbers = st.one_of(
    st.from_regex(r"[0-9]{1,12}", fullmatch=True),
    st.from_regex(r"[0-9]{0,9}\.[0-9]{1,9}", fullmatch=True),
    st.from_regex(r"[0-9]{1,9}\.", fullmatch=True),
)
suffixes = st.one_of(st.sampled_from(sorted(DECIMAL | BINARY)), st.integers(-30, 30).map(lambda e: f"e{e}"))


def exactly(number: str, suffix: str) -> Decimal:
    value = Decimal(number)
    if suffix in BINARY:
        return EXACT.multiply(value, Decimal(1024 ** BINARY[suffix]))
    exponent = DECIMAL[suffix] if suffix in DECIMAL else int(suffix[1:])
    return EXACT.scaleb(value, exponent)


def capped(value: Decimal) -> int:
    return max(-quantity.LIMIT, min(quantity.LIMIT, int(value)))


@given(st.sampled_from(("", "+", "-")), numbers, suffixes)
@settings(deadline=None)
def test_a_quantity_is_what_exact_decimal_arithmetic_says(sign: str, number: str, suffix: str):
    """R8: requests round up and capacity rounds down, never further than to the next whole number."""
    value = exactly(sign + number, suffix)
    text = f"{sign}{number}{suffix}"
    assert quantity.units(text) == capped(value.to_integral_value(ROUND_CEILING, EXACT))
    assert quantity.units(text, up=False) == capped(value.to_integral_value(ROUND_FLOOR, EXACT))
    thousandths = EXACT.scaleb(value, 3)
    assert quantity.milli(text) == capped(thousandths.to_integral_value(ROUND_CEILING, EXACT))


@pytest.mark.parametrize(
    ("resource", "text", "up", "down"),
    [
        ("cpu", "1", 1000, 1000),
        ("cpu", "500m", 500, 500),
        ("cpu", "0.1", 100, 100),
        ("cpu", "1500u", 2, 1),
        ("cpu", "100n", 1, 0),
        ("cpu", "2e3", 2_000_000, 2_000_000),
        ("memory", "64Mi", 64 << 20, 64 << 20),
        ("memory", "1.5Gi", 3 << 29, 3 << 29),
        ("memory", "100m", 1, 0),
        ("memory", "1E", 10**18, 10**18),
        ("memory", "1E3", 1000, 1000),
        ("memory", "1e-3", 1, 0),
        ("memory", "129M", 129_000_000, 129_000_000),
        ("nvidia.com/gpu", "8", 8, 8),
        ("hugepages-2Mi", "100Mi", 100 << 20, 100 << 20),
        ("memory", "16Ei", quantity.LIMIT, quantity.LIMIT),
        ("memory", "1e999999999", quantity.LIMIT, quantity.LIMIT),
        ("memory", "0", 0, 0),
    ],
)
def test_every_suffix_and_both_directions(resource: str, text: str, up: int, down: int):
    """R8 and case C88: cpu in milli, the rest in ones."""
    assert quantity.amount(resource, text) == up
    assert quantity.amount(resource, text, up=False) == down


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "abc",
        "1 Gi",
        "1gi",
        "1K",
        "Gi",
        ".",
        "1e",
        "e3",
        "1_0",
        "0x10",
        "1,5",
        "--1",
        "\u0661",
        "1" * 129,
    ],
)
def test_a_wrong_quantity_is_named_in_the_error(text: str):
    """A user has to find the value in a long manifest."""
    with pytest.raises(FluenceError, match="is not a Kubernetes quantity") as error:
        quantity.units(text)
    assert f'"{text[:60]}"' in str(error.value)


@given(st.sampled_from(("cpu", "memory", "nvidia.com/gpu")), st.integers(0, 2**50))
@settings(deadline=None)
def test_what_a_message_says_is_never_more_than_there_is(resource: str, value: int):
    """Human units are exact or rounded down, and readable as a quantity."""
    text = quantity.human(resource, value)
    read = quantity.amount(resource, text)
    assert value - (value >> 6) <= read <= value


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("cpu", 0, "0"),
        ("memory", 64 << 20, "64Mi"),
        ("memory", 3 << 30, "3Gi"),
        ("memory", 1536 << 20, "1536Mi"),
        ("memory", 1_000_000_000, "953.67Mi"),
        ("memory", 1000, "1000"),
        ("nvidia.com/gpu", 1024, "1024"),
    ],
)
def test_amounts_read_as_people_write_them(resource: str, value: int, text: str):
    """C117: texts that people can read."""
    assert quantity.human(resource, value) == text
