"""Records as lines of text: what `print` and text sinks write for a record of a declared, or of no declared, type."""

from __future__ import annotations

from typing import Any

from tamias.types.type_information import TypeInformation

__all__ = ["record_file_text", "record_text"]


def record_text(type_info: TypeInformation | None, value: Any) -> str:
    """The line ``print`` writes: by the declared type, or Python's own ``str`` where none was declared."""
    return str(value) if type_info is None else type_info.text(value)


def record_file_text(type_info: TypeInformation | None, value: Any) -> str:
    """The line a text sink writes: by the declared type, or Python's own ``str`` where none was declared."""
    return str(value) if type_info is None else type_info.file_text(value)
