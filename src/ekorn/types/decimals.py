"""Decimal numbers as columns of a precision and a scale hold them."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext

from ekorn.types.data_types import DecimalType

__all__ = ["decimal_of"]

_DIGITS = 200  # more than any column has, so that rounding happens once, at the scale


def decimal_of(value: Decimal, data_type: DecimalType) -> Decimal:
    """Return a decimal number rounded to the scale of a type; raise a ValueError if it has too many digits."""
    with localcontext(prec=_DIGITS):
        try:
            rounded = value.quantize(Decimal(1).scaleb(-data_type.scale), ROUND_HALF_UP)
        except InvalidOperation:
            raise ValueError(f"{value} has too many digits for {data_type!r}") from None
    if len(rounded.as_tuple().digits) > data_type.precision:
        # Flink: uses null for such a number, without an error.
        raise ValueError(f"{value} has too many digits for {data_type!r}")
    return rounded
