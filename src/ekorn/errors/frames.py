"""Leaves the frames of this package, and of those that carry its work, out of the tracebacks that users see.

The traceback of a defect of this package keeps all frames.
"""

from __future__ import annotations

import traceback
from types import TracebackType

from ekorn.errors.base import EkornError
from ekorn.errors.origin import is_library, is_own_or_carrier

__all__ = [
    "ShownFrames",
    "formatted",
    "is_defect",
    "is_on_purpose",
    "left_out_note",
    "user_frames",
    "without_own_frames",
]


class ShownFrames:
    """Which frames the errors of this process show: the last environment has chosen."""

    all_frames = False


def user_frames(stack: traceback.StackSummary) -> list[traceback.FrameSummary]:
    """Return the frames that are not of this package."""
    return [frame for frame in stack if not is_own_or_carrier(frame.filename)]


def is_on_purpose(found: traceback.TracebackException, error: BaseException) -> bool:
    """Return whether this package raised an error, and no frame of it is the user's."""
    if user_frames(found.stack):
        return False
    return not found.stack or _is_raised(error, found.stack[-1])


def is_defect(stack: traceback.StackSummary, error: BaseException) -> bool:
    """Return whether a line of this package failed: it raised nothing on purpose, and called no line of the program.

    Lines of installed packages count as the program's only if no other line is: it may be installed itself.
    """
    if not stack:
        return False
    calls = [each for each in stack if not is_library(each.filename)]
    last = calls[-1] if user_frames(traceback.StackSummary.from_list(calls)) else stack[-1]
    return is_own_or_carrier(last.filename) and not _is_raised(error, last)


def _is_raised(error: BaseException, last: traceback.FrameSummary) -> bool:
    """Return whether this package raised an error on purpose in its innermost line. A failed assertion is a defect."""
    if isinstance(error, AssertionError):
        return False
    return isinstance(error, EkornError) or (last.line or "").startswith("raise ")


def formatted(found: traceback.TracebackException, error: BaseException, *, all_frames: bool) -> str:
    """Return the traceback of an error and those of its causes as text; one line says how many frames are left out.

    Only frames below the first one of the user are counted: what calls the user's function is no news.
    """
    left_out = 0
    link: traceback.TracebackException | None = None if all_frames else found
    cause: BaseException | None = error
    while link is not None and cause is not None:
        users = user_frames(link.stack)
        if users and not is_defect(link.stack, cause):
            left_out += len(link.stack) - link.stack.index(users[0]) - len(users)
            link.stack = traceback.StackSummary.from_list(users)
        if link.__cause__ is not None:
            link, cause = link.__cause__, cause.__cause__
        elif link.__suppress_context__:
            break  # it is not shown
        else:
            link, cause = link.__context__, cause.__context__
    text = "".join(found.format()).rstrip()
    return f"{text}\n{left_out_note(left_out)}" if left_out else text


def left_out_note(count: int) -> str:
    """Return the line that stands for frames that are left out.

    >>> left_out_note(1)
    '[1 frame inside ekorn is left out; ekorn.errors.frames: all shows it]'
    """
    frames, is_, it = ("frame", "is", "it") if count == 1 else ("frames", "are", "them")
    return f"[{count} {frames} inside ekorn {is_} left out; ekorn.errors.frames: all shows {it}]"


def without_own_frames(error: BaseException, trace: TracebackType | None) -> tuple[TracebackType | None, int]:
    """Return the traceback of an error that ends a program, without the frames of this package, and their number.

    The traceback stays whole if the error is a defect of this package: not raised on purpose, and in one of its lines.
    """
    stack = traceback.extract_tb(trace)
    if not user_frames(stack) or is_defect(stack, error):
        return trace, 0
    kept: list[TracebackType] = []
    each, count = trace, 0
    while each is not None:
        if is_own_or_carrier(each.tb_frame.f_code.co_filename):
            count += 1
        else:
            kept.append(each)
        each = each.tb_next
    shown: TracebackType | None = None
    for each in reversed(kept):
        shown = TracebackType(shown, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return shown, count
