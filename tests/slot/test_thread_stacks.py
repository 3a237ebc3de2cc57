"""What a slot shows of its threads."""

from __future__ import annotations

import threading

from ekorn.metrics.thread_stacks import thread_stacks


def waits_here(begun: threading.Event, may_end: threading.Event) -> None:
    begun.set()
    may_end.wait(30)


def test_every_thread_is_shown_by_its_name_with_the_innermost_call_last() -> None:
    begun, may_end = threading.Event(), threading.Event()
    thread = threading.Thread(target=waits_here, args=(begun, may_end), name="the waiting one")
    thread.start()
    begun.wait(30)
    stacks = {stack.name: stack for stack in thread_stacks()}
    may_end.set()
    thread.join()
    assert stacks["the waiting one"].ident == thread.ident
    stack = stacks["the waiting one"].stack
    assert 0 < stack.index("waits_here") < stack.rindex("in wait")
    assert "test_every_thread_is_shown" in stacks[threading.current_thread().name].stack
