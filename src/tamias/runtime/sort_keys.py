"""The order in which BATCH mode visits keys: that of their serialized form, as in Flink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tamias.common.typeinfo import TypeInformation
from tamias.wire.values import dumps


def sort_key_for(type_info: TypeInformation | None) -> Callable[[Any], Any]:
    """What to sort a key by."""
    return dumps
