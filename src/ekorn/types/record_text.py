"""Records as lines of text, for `print` and for text sinks; with or without a declared type."""

from __future__ import annotations

from typing import Any

from ekorn.types.type_information import TypeInformation

__all__ = ["record_file_text", "record_text"]


def record_text(type_info: TypeInformation | None, value: Any) -> str:
    """Return the line that ``print`` writes: the declared type's text, or Python's ``str`` if there is no type."""
    return str(value) if type_info is None else type_info.text(value)


def record_file_text(type_info: TypeInformation | None, value: Any) -> str:
    """Return the line that a text sink writes: the declared type's text, or Python's ``str`` if there is no type."""
    return str(value) if type_info is None else type_info.file_text(value)
