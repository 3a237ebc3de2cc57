"""The process of a slot: it ends with its executor and with its group, and answers queries in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from ekorn.slot import process
from tests.live_jobs import process_state, until


def test_a_slot_ends_with_its_executor() -> None:
    ended = threading.Event()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as executor:
        watching = threading.Thread(target=process._watch_executor, args=(executor.pid, ended), daemon=True)
        watching.start()
        assert not ended.is_set()
        executor.communicate(b"\n")
    assert ended.wait(60)
    watching.join(60)


def test_a_slot_whose_executor_ended_while_it_started_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(pid: int) -> int:
        raise ProcessLookupError(pid)

    monkeypatch.setattr(process, "os", Fake(pidfd_open=gone))
    ended = threading.Event()
    process._watch_executor(7, ended)
    assert ended.is_set()


class Fake:
    """Stands for a module that has these functions alone."""

    def __init__(self, **functions: object) -> None:
        self.__dict__.update(functions)


@pytest.mark.parametrize("kernel", ["old", "none"])
def test_a_slot_that_cannot_watch_its_executor_goes_on(monkeypatch: pytest.MonkeyPatch, kernel: str) -> None:
    def unknown(pid: int) -> int:
        raise OSError("function not implemented")

    monkeypatch.setattr(process, "os", Fake(pidfd_open=unknown) if kernel == "old" else Fake())
    ended = threading.Event()
    process._watch_executor(7, ended)
    assert not ended.is_set()


END = "import sys; sys.path[:] = {path!r}; from ekorn.slot.process import _end_group; _end_group()"
FORK = "import subprocess as s; p = s.Popen(['sleep', '600'], stdout=s.DEVNULL); print(p.pid, flush=True); "


@pytest.mark.parametrize("own_group", [True, False])
def test_a_slot_ends_what_user_code_forked_if_its_group_is_its_own(own_group: bool) -> None:
    program = [sys.executable, "-c", FORK + END.format(path=sys.path)]
    if not own_group:  # behind a shell that leads the group
        program = ["sh", "-c", '"$@"; exit $?', "sh", *program]
    with subprocess.Popen(program, stdout=subprocess.PIPE, start_new_session=True) as slot:
        assert slot.stdout is not None
        sleeper = int(slot.stdout.readline())
        code = slot.wait(60)
    if own_group:
        assert code == -signal.SIGKILL
        until(lambda: process_state(sleeper) in "ZX")
    else:
        assert code == 0 and process_state(sleeper) not in "ZX"
        os.kill(sleeper, signal.SIGKILL)


def test_threads_that_answer_queries_get_their_turn_soon() -> None:
    before = sys.getswitchinterval()
    try:
        process._switch_often()
        assert sys.getswitchinterval() == pytest.approx(process._SWITCH_S)
        assert process._SWITCH_S < 0.005, "than Python lets them"
    finally:
        sys.setswitchinterval(before)


def test_a_folder_with_files_of_other_slots_stays(tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("")
    process._remove_if_empty(str(tmp_path / "folder"))
    assert (tmp_path / "folder" / "file").exists()
    (tmp_path / "folder" / "file").unlink()
    process._remove_if_empty(str(tmp_path / "folder"))
    assert not (tmp_path / "folder").exists()
    process._remove_if_empty(str(tmp_path / "folder"))
