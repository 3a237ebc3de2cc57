"""Waits for a job in the foreground: Ctrl-C and SIGTERM end the job in order, and one line says how to resume it."""

from __future__ import annotations

import atexit
import contextlib
import logging
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import NoReturn, TypeVar

from ekorn.driver.job_handle import JobHandle
from ekorn.errors import JobCancelledError
from ekorn.functions.results.job_execution_result import JobExecutionResult

__all__ = ["JobInterrupted", "end_with_program", "start_in_foreground", "wait_in_foreground"]

T = TypeVar("T")

_PATIENCE_S = 30.0


class JobInterrupted(SystemExit, KeyboardInterrupt):
    """A job was ended by Ctrl-C or by SIGTERM.

    It is a `KeyboardInterrupt` for programs that handle one, and a `SystemExit` otherwise: a script ends with the exit
    code of the signal, and without a traceback.
    """


class SessionInterrupted(KeyboardInterrupt):
    """A job was ended by Ctrl-C in an interactive session, which goes on. It is shown as one line."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in place of a traceback."""
        return [f"ekorn: {self}"]


class _Terminated(BaseException):
    """SIGTERM arrived."""


def start_in_foreground(start: Callable[[], T]) -> T:
    """Start a job; the start takes seconds if Spark is to be started too.

    Raises:
        JobInterrupted: Ctrl-C ended the start. In an interactive session it is a `SessionInterrupted`.
    """
    try:
        with _ctrl_c_only_raises():
            return start()
    except KeyboardInterrupt:
        _raise_interrupted("Ctrl-C interrupted the start of the job; no record was read", 128 + signal.SIGINT)


def wait_in_foreground(handle: JobHandle) -> JobExecutionResult:
    """Wait for the end of a job.

    Raises:
        JobExecutionError: The job failed.
        JobCancelledError: The job was cancelled.
        JobInterrupted: Ctrl-C or SIGTERM ended it. In an interactive session it is a `SessionInterrupted`.
    """
    handle.view.is_in_foreground = True
    with _ctrl_c_only_raises():
        try:
            with _sigterm_raises():
                return handle.wait()
        except KeyboardInterrupt:
            line = _end(handle, "Ctrl-C")
            code = 128 + signal.SIGINT
        except _Terminated:
            line = _end(handle, "SIGTERM")
            code = 128 + signal.SIGTERM
    _raise_interrupted(line, code)


def _raise_interrupted(line: str, code: int) -> NoReturn:
    if _is_interactive():
        _show_in_one_line()
        raise SessionInterrupted(line) from None
    print(f"ekorn: {line}", file=sys.stderr)
    raise JobInterrupted(code) from None


def _end(handle: JobHandle, signal_name: str) -> str:
    """End a job and keep its checkpoints; return the line about it."""
    handle.requests.suspend()
    with contextlib.suppress(JobCancelledError):  # suspending a job ends it with this error
        try:
            handle.wait(_PATIENCE_S)
        except TimeoutError:
            return f"{signal_name}: job {handle.job_name!r} has not ended after {_PATIENCE_S:.0f} s and was abandoned"
        except KeyboardInterrupt:
            return f"Ctrl-C once more: job {handle.job_name!r} has not ended and was abandoned"
    return f"{signal_name} ended job {handle.job_name!r}; {_how_to_resume(handle)}"


def _how_to_resume(handle: JobHandle) -> str:
    statistics = handle.view.statistics
    if statistics is not None and not statistics.graph.settings.in_slots:
        return "its sinks leave nothing, and the next run starts from the beginning"
    path = handle.progress().last_checkpoint_path
    if path is None or path.startswith("memory:"):
        facts = None if statistics is None else statistics.facts
        path = None if facts is None else facts.restored_path
        if facts is None or path is None:
            return "it has no checkpoint in a directory, so the next run starts from the beginning"
        if not facts.is_resumed:
            again = f"env.set_restore_path({path!r})" if _is_interactive() else f"ekorn run -s {path} {_script()}"
            return (
                f"it has no checkpoint in a directory since it started from {path}; to start from there again: {again}"
            )
    resume = "declare it again and call env.resume()" if _is_interactive() else f"ekorn run --resume {_script()}"
    return f"to resume it: {resume}, or start from {path}"


def end_with_program(handle: JobHandle) -> None:
    """End a job that still runs when the program ends, and say so.

    Called after the engine has started: functions registered later are called earlier, so Spark still runs then.
    """
    atexit.register(_end_running, weakref.ref(handle))


def _end_running(reference: weakref.ref[JobHandle]) -> None:
    handle = reference()
    if handle is None or handle.status().is_terminal_state():
        return
    print(
        f"ekorn: the program ended while job {handle.job_name!r} was running, so the job ends too; to wait for it, "
        "call client.get_job_execution_result().result()",
        file=sys.stderr,
    )
    handle.requests.suspend()
    if handle.results.wait_for_end(_PATIENCE_S):
        print(f"ekorn: job {handle.job_name!r} has ended; {_how_to_resume(handle)}", file=sys.stderr)


def _script() -> str:
    return sys.argv[0] if sys.argv and sys.argv[0].endswith(".py") else "SCRIPT"


def _show_in_one_line() -> None:
    """Let Python's own prompt show a `SessionInterrupted` without a traceback. IPython does so by itself."""
    before = sys.excepthook

    def once(kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
        sys.excepthook = before
        if isinstance(error, SessionInterrupted):
            print(f"ekorn: {error}", file=sys.stderr)
        else:
            before(kind, error, frames)

    sys.excepthook = once


def _is_interactive() -> bool:
    return hasattr(sys, "ps1") or "get_ipython" in getattr(sys.modules.get("builtins"), "__dict__", {})


@contextlib.contextmanager
def _ctrl_c_only_raises() -> Iterator[None]:
    """Let Ctrl-C cancel nothing in the block, where PySpark would cancel all jobs of the session, and print traces.

    The job is ended in order, and with it the jobs of Spark that belong to it.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not _is_of_pyspark(before):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.getLogger().addFilter(_is_news)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        logging.getLogger().removeFilter(_is_news)


def _is_of_pyspark(handler: object) -> bool:
    return str(getattr(handler, "__module__", "")).partition(".")[0] == "pyspark"


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a line of the log is more than the call that Ctrl-C ended, with which Py4J fills 20 lines."""
    return "KeyboardInterrupt while sending command" not in str(record.msg)


@contextlib.contextmanager
def _sigterm_raises() -> Iterator[None]:
    """Let SIGTERM interrupt the block, unless the program has a handler of its own, or runs it on another thread."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def terminated(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
