"""The driver and the slots as processes: what is told of them, their logs, and what the system knows."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.errors import SlotLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.metrics.thread_stacks import ThreadStack
from ekorn.rest import process_answers
from ekorn.slot_protocol.diagnostics import SlotLog, SlotLogs, SlotVitals
from ekorn.web.http_messages import FileAnswer, HttpError
from tests.rest.fakes import JOB, asked, job, vertex

VITALS = SlotVitals(host="h", pid=7, resident_bytes=100, rocksdb_cache_bytes=50, threads=3, cpu_ms=9)
LOGS = SlotLogs(SlotLog("l\u00f6g", 5), SlotLog("printed", 6))


def lost(slot: int) -> Any:
    raise SlotLostError(slot, "gone")


def known(pids: tuple[int, ...] = (), **view: Any) -> Any:
    lives = {SubtaskId(3, n): SimpleNamespace(slot=slot, state="RUNNING") for n, slot in enumerate((0, 0, 1))}
    found = job(vertex(3, 3), lives=SimpleNamespace(all=lambda: lives))
    found.slot_id = lambda slot: f"{JOB}-slot-{slot}"
    given: dict[str, Any] = {"slot_vitals": lambda slot: VITALS, "job_name": "a job", **view}
    found.view = SimpleNamespace(progress=lambda: SimpleNamespace(slot_pids=pids), **given)
    return found


def jobs(*of: Any) -> Any:
    return SimpleNamespace(running=lambda: list(of))


FIRST, SECOND = f"{JOB}-slot-0", f"{JOB}-slot-1"


def test_the_slots_of_all_running_jobs_are_told():
    first, second = process_answers.slots(jobs(known((11, 12))))["taskmanagers"]
    assert [each["id"] for each in (first, second)] == [FIRST, SECOND]
    assert (first["path"], first["assignedTasks"], second["assignedTasks"]) == ("process 11 on h", 2, 1)
    assert (first["slotsNumber"], first["freeSlots"], first["dataPort"], first["jmxPort"]) == (1, 0, -1, -1)
    assert first["timeSinceLastHeartbeat"] == 10_000 and first["blocked"] is False
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert first["hardware"] == {
        "cpuCores": os.cpu_count(),
        "physicalMemory": memory,
        "freeMemory": memory - 100,
        "managedMemory": 0,
    }
    assert first["slot"]["pid"] == 7
    assert first["totalResource"]["cpuCores"] == 0.0


def test_a_slot_that_does_not_answer_is_shown_all_the_same():
    (first, _) = process_answers.slots(jobs(known((11,), slot_vitals=lost)))["taskmanagers"]
    assert first["path"] == "process 11 on a machine that does not answer"
    assert first["hardware"]["freeMemory"] == first["hardware"]["physicalMemory"]
    details = process_answers.slot_details(jobs(known(slot_vitals=lost)), SECOND)
    assert details["metrics"]["heapUsed"] == 0


def test_one_slot_is_told_with_what_is_assigned_to_it():
    found = process_answers.slot_details(jobs(known()), SECOND)
    (allocated,) = found["allocatedSlots"]
    assert (allocated["jobId"], allocated["assignedTasks"]) == (JOB, 1)
    assert found["metrics"]["heapUsed"] == 100 and found["metrics"]["heapMax"] == 0
    assert found["path"] == f"process {os.getpid()} on h", "of a slot without a process of its own"


def test_an_unknown_slot_is_named_and_cut():
    for answer in (process_answers.slot_details, process_answers.slot_metrics, process_answers.slot_threads):
        with pytest.raises(HttpError, match=f"there is no slot '{'x' * 80}'") as refused:
            answer(jobs(known()), "x" * 99)
        assert refused.value.status == 404


def test_the_figures_of_a_process_are_those_of_the_system():
    found = process_answers.driver_metrics()
    assert found["Status.JVM.Memory.Heap.Used"] > 1 << 20
    assert found["Status.JVM.Memory.Heap.Max"] == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert found["Status.JVM.Threads.Count"] >= 1
    times = os.times()
    assert 0 < found["Status.JVM.CPU.Time"] <= (times.user + times.system) * 1e9 + 1e9
    nobody = process_answers._process_metrics(process_answers._ELSEWHERE)
    assert (nobody["Status.JVM.Threads.Count"], nobody["Status.JVM.CPU.Time"]) == (0, 0)


def test_the_figures_of_slots_are_those_of_processes_on_this_machine(monkeypatch):
    monkeypatch.setattr(process_answers, "is_slot_here", lambda pid: pid == 11)
    of = known((11, 12))
    assert process_answers._process_here(of, 0) == 11
    assert process_answers._process_here(of, 1) == process_answers._ELSEWHERE
    assert process_answers._process_here(of, 2) == os.getpid()
    assert [name for name, _ in process_answers.metrics_of_slots(of)] == [FIRST]
    assert list(process_answers.metrics_of_slots(known())) == [], "the driver itself is no slot"


def test_figures_are_combined_over_the_slots_that_are_asked_for(monkeypatch):
    monkeypatch.setattr(process_answers, "_process_metrics", lambda pid: {"n": 1})
    query = {"get": "n", "agg": "sum"}
    assert process_answers.over_slots(jobs(known()), asked(**query)) == [{"id": "n", "sum": 2.0}]
    assert process_answers.over_slots(jobs(known()), asked(**query, taskmanagers=SECOND)) == [{"id": "n", "sum": 1.0}]


def test_the_threads_of_a_slot_are_told_or_that_it_is_gone():
    stacks = [ThreadStack("main", 5, "at f")]
    found = process_answers.slot_threads(jobs(known(thread_stacks=lambda slot: stacks)), FIRST)
    assert found == {"threadInfos": [{"threadName": "main", "stringifiedThreadInfo": '"main" Id=5\nat f\n'}]}
    with pytest.raises(HttpError, match="gone") as refused:
        process_answers.slot_threads(jobs(known(thread_stacks=lost)), FIRST)
    assert refused.value.status == 404


def test_the_log_and_the_output_of_a_slot_are_told_from_a_byte_on():
    of = jobs(known(slot_log=lambda slot: LOGS))
    assert process_answers.slot_logs(of, FIRST) == {
        "logs": [
            {"name": f"{FIRST}.log", "size": 4, "mtime": 5},
            {"name": f"{FIRST}.out", "size": 7, "mtime": 6},
        ]
    }
    silent = jobs(known(slot_log=lambda slot: SlotLogs(LOGS.log, SlotLog("", 0))))
    assert len(process_answers.slot_logs(silent, FIRST)["logs"]) == 1
    for name, offset, text in (
        (None, None, "l\u00f6g"),
        (f"{FIRST}.log", "3", "g"),
        (f"{FIRST}.log", "9", ""),
        (f"{FIRST}.out", None, "printed"),
    ):
        request = asked() if offset is None else asked(offset=offset)
        assert process_answers.slot_log(of, FIRST, name, request).content == text.encode()
    assert process_answers.slot_output(of, FIRST, asked(offset="4")).content == b"ted"
    with pytest.raises(HttpError, match=f"there is no log file '{'x' * 80}'"):
        process_answers.slot_log(of, FIRST, "x" * 99, asked())


def test_a_slot_in_the_driver_has_no_log_of_its_own_and_a_lost_one_none_at_all():
    inside = jobs(known(slot_log=lambda slot: None))
    assert process_answers.slot_logs(inside, FIRST) == {"logs": []}
    with pytest.raises(HttpError, match="has no log of its own: see the driver's log"):
        process_answers.slot_log(inside, FIRST, None, asked())
    with pytest.raises(HttpError, match="gone"):
        process_answers.slot_logs(jobs(known(slot_log=lost)), FIRST)


# ------------------------------------------------------------------------------------------------- logs of the driver


def test_the_logs_of_a_driver_are_those_of_its_loggers_and_its_engine(tmp_path):
    own, engine = tmp_path / "own.log", tmp_path / "engine.log"
    engine.write_text("engine")
    handler = logging.FileHandler(own)
    logger = logging.getLogger("ekorn")
    logger.addHandler(handler)
    try:
        with_facts = [SimpleNamespace(log_path=path) for path in (str(engine), str(tmp_path / "gone"), None)]
        of = [SimpleNamespace(statistics=SimpleNamespace(facts=facts)) for facts in (*with_facts, None)]
        found = process_answers.log_files(of)  # type: ignore[arg-type]
    finally:
        logger.removeHandler(handler)
        handler.close()
    assert [path for path in found if path.parent == tmp_path] == [own, engine]
    assert process_answers.log_files([]) == [path for path in found if path.parent != tmp_path]


def test_what_is_printed_is_a_log_if_it_goes_to_a_file(tmp_path):
    code = "from ekorn.rest.process_answers import log_files; import sys; print(log_files([]), file=sys.stderr)"
    with (tmp_path / "printed").open("w") as printed:
        found = subprocess.run(
            [sys.executable, "-c", code], stdout=printed, stderr=subprocess.PIPE, text=True, check=True
        )
    assert f"[PosixPath('{tmp_path}/printed')]" in found.stderr
    assert not process_answers._is_file(10_000), "a stream that is closed"


def test_logs_are_listed_with_their_size_and_sent_from_a_byte_on(tmp_path):
    first, second = tmp_path / "a.log", tmp_path / "b.log"
    first.write_text("12345")
    second.write_text("")
    os.utime(first, ns=(0, 7_999_999))
    assert process_answers.log_list([first])["logs"] == [{"name": "a.log", "size": 5, "mtime": 7}]
    for offset, start in ((None, 0), ("4", 4), ("5", 5), ("6", 5)):
        request = asked() if offset is None else asked(offset=offset)
        assert process_answers.log_file([first, second], None, request).content == FileAnswer(first, start)
    assert process_answers.log_file([first, second], "b.log", asked()).content == FileAnswer(second, 0)
    with pytest.raises(HttpError, match=f"there is no log file '{'x' * 80}'"):
        process_answers.log_file([first], "x" * 99, asked())
    with pytest.raises(HttpError, match=r"there is no log file$"):
        process_answers.log_file([], None, asked())
