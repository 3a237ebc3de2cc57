"""`OutputTag`: the name and the type of a side output."""

from __future__ import annotations

from ekorn.functions.output_tag import OutputTag

__all__ = ["OutputTag"]
