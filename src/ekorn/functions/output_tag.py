"""`OutputTag`: the name and type of a side output."""

from __future__ import annotations

from collections.abc import Sequence

from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation


class OutputTag:
    """Names a side output. Two tags with the same id name the same output.

    Emit with ``yield tag, value`` from a process function and read with ``stream.get_side_output(tag)``.

    Example:
        >>> late = OutputTag("late")
        >>> late == OutputTag("late")
        True
    """

    def __init__(self, tag_id: str, type_info: TypeInformation | Sequence[TypeInformation] | None = None) -> None:
        """Create a tag.

        Args:
            tag_id: The name, unique among the side outputs of the operator that emits to it.
            type_info: The type of the records. A list of types stands for a row of them, None for any Python object.
        """
        if tag_id is None or tag_id == "":
            raise ValueError(f"an OutputTag needs an id, got {tag_id!r}")
        if not isinstance(tag_id, str):
            raise TypeError(f"the id of an OutputTag must be a string, got {tag_id!r}")
        self.tag_id = tag_id
        self.type_info = _as_type(tag_id, type_info)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and other.tag_id == self.tag_id

    def __hash__(self) -> int:
        return hash((OutputTag, self.tag_id))

    def __repr__(self) -> str:
        declared = "" if self.type_info is None else f", {self.type_info}"
        return f"OutputTag({self.tag_id!r}{declared})"


def _as_type(tag_id: str, type_info: TypeInformation | Sequence[TypeInformation] | None) -> TypeInformation | None:
    if type_info is None or isinstance(type_info, TypeInformation):
        return type_info
    if isinstance(type_info, (list, tuple)) and all(isinstance(field, TypeInformation) for field in type_info):
        return Types.ROW(list(type_info))
    raise TypeError(
        f"the type of OutputTag {tag_id!r} must be a TypeInformation such as Types.STRING(), or a list of them, "
        f"got {type_info!r}"
    )
