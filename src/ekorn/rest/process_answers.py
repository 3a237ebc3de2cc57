"""Answers about processes: the driver is Flink's job manager, and each slot is a task manager with one slot."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ekorn.errors import SlotLostError
from ekorn.metrics.process_memory import is_slot_here, resident_bytes
from ekorn.metrics.thread_stacks import ThreadStack
from ekorn.rest.known_jobs import KnownJob, KnownJobs
from ekorn.rest.metric_answers import aggregated
from ekorn.rest.slot_fields import own_fields, vitals_of
from ekorn.rest.slot_memory import NO_RESOURCE, memory_metrics, memory_of, resource_of
from ekorn.slot_protocol.diagnostics import SlotLogs, SlotVitals
from ekorn.web.http_messages import FileAnswer, Request, Response, not_found

_ELSEWHERE = 0  # stands for a process on another machine; no process has this number
_TEXT = "text/plain; charset=UTF-8"
_NO_METRICS = dict.fromkeys(
    (
        "heapUsed", "heapCommitted", "heapMax", "nonHeapUsed", "nonHeapCommitted", "nonHeapMax", "directCount",
        "directUsed", "directMax", "mappedCount", "mappedUsed", "mappedMax", "memorySegmentsAvailable",
        "memorySegmentsTotal", "nettyShuffleMemorySegmentsAvailable", "nettyShuffleMemorySegmentsUsed",
        "nettyShuffleMemorySegmentsTotal", "nettyShuffleMemoryAvailable", "nettyShuffleMemoryUsed",
        "nettyShuffleMemoryTotal",
    ),
    0,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------- the slots


def slots(jobs: KnownJobs) -> dict[str, Any]:
    """Answer `/taskmanagers`: the slots of all running jobs."""
    found = [(job, slot) for job in jobs.running() for slot in range(_count(job))]
    return {"taskmanagers": [_slot(*each, vitals) for each, vitals in zip(found, vitals_of(found), strict=True)]}


def slot_details(jobs: KnownJobs, slot_id: str) -> dict[str, Any]:
    """Answer `/taskmanagers/:taskmanagerid`."""
    job, slot = find_slot(jobs, slot_id)
    (vitals,) = vitals_of([(job, slot)])
    allocated = {"jobId": job.job_id, "resource": resource_of(job, slot), "assignedTasks": _assigned(job, slot)}
    used = 0 if vitals is None else vitals.resident_bytes
    return _slot(job, slot, vitals) | {
        "allocatedSlots": [allocated],
        "metrics": {**_NO_METRICS, "heapUsed": used, "garbageCollectors": []},
    }


def find_slot(jobs: KnownJobs, slot_id: str) -> tuple[KnownJob, int]:
    """Return the job and the number of a slot.

    Raises:
        HttpError: There is no such slot.
    """
    for job in jobs.running():
        for slot in range(_count(job)):
            if job.slot_id(slot) == slot_id:
                return job, slot
    not_found(f"there is no slot {slot_id[:80]!r}")


def slot_metrics(jobs: KnownJobs, slot_id: str) -> dict[str, Any]:
    """Return the metrics of a slot's process, under Flink's names."""
    return _metrics_of_slots([find_slot(jobs, slot_id)])[0]


def metrics_of_slots(job: KnownJob) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the metrics of each slot that is a process of its own on this machine, by the name of the slot."""
    here = [(job, slot) for slot in range(_count(job)) if _process_here(job, slot) not in (_ELSEWHERE, os.getpid())]
    for (_, slot), metrics in zip(here, _metrics_of_slots(here), strict=True):
        yield job.slot_id(slot), metrics


def over_slots(jobs: KnownJobs, request: Request) -> list[dict[str, Any]]:
    """Answer `/taskmanagers/metrics`: metrics combined over slots."""
    wanted = request.many("taskmanagers")
    found = [(job, slot) for job in jobs.running() for slot in range(_count(job))]
    chosen = [each for each in found if wanted is None or each[0].slot_id(each[1]) in wanted]
    return aggregated(_metrics_of_slots(chosen), request)


def _metrics_of_slots(slots: Sequence[tuple[KnownJob, int]]) -> list[dict[str, Any]]:
    return [
        _process_metrics(_process_here(*each)) | memory_metrics(*each, vitals)
        for each, vitals in zip(slots, vitals_of(slots), strict=True)
    ]


def _slot(job: KnownJob, slot: int, vitals: SlotVitals | None) -> dict[str, Any]:
    memory = _memory_bytes()
    resident = 0 if vitals is None else vitals.resident_bytes
    host = "a machine that does not answer" if vitals is None else vitals.host
    return {
        "id": job.slot_id(slot),
        "path": f"process {_pid(job, slot)} on {host}",
        "dataPort": -1,
        "jmxPort": -1,
        "timeSinceLastHeartbeat": job.statistics.clock.now_ms(),
        "slotsNumber": 1,
        "freeSlots": 0,
        "totalResource": resource_of(job, slot),
        "freeResource": NO_RESOURCE,
        "hardware": {
            "cpuCores": os.cpu_count() or 1,
            "physicalMemory": memory,
            "freeMemory": max(memory - resident, 0),
            "managedMemory": job.statistics.graph.memory_of(slot).managed_bytes or 0,
        },
        "memoryConfiguration": memory_of(job, slot),
        "assignedTasks": _assigned(job, slot),
        "blocked": False,
        "slot": own_fields(job, slot, _pid(job, slot), vitals),
    }


def _count(job: KnownJob) -> int:
    return job.statistics.graph.slot_count


def _pid(job: KnownJob, slot: int) -> int:
    """Return the process of a slot; the driver's own if its subtasks run there."""
    pids = job.view.progress().slot_pids
    return pids[slot] if slot < len(pids) else os.getpid()


def _process_here(job: KnownJob, slot: int) -> int:
    """Return the process of a slot on this machine; `_ELSEWHERE` if the slot has ended, or runs on another machine.

    A process id of another machine may belong to an unrelated process of this one.
    """
    pid = _pid(job, slot)
    return pid if pid == os.getpid() or is_slot_here(pid) else _ELSEWHERE


def _assigned(job: KnownJob, slot: int) -> int:
    return sum(life.slot == slot for life in job.statistics.lives.all().values())


# ------------------------------------------------------------------------------------------------------ the driver


def driver_metrics() -> dict[str, Any]:
    """Return the metrics of the driver's process, under Flink's names."""
    return _process_metrics(os.getpid())


def _process_metrics(pid: int) -> dict[str, Any]:
    return {
        "Status.JVM.Memory.Heap.Used": resident_bytes(pid),
        "Status.JVM.Memory.Heap.Max": _memory_bytes(),
        "Status.JVM.Threads.Count": _thread_count(pid),
        "Status.JVM.CPU.Time": _cpu_ns(pid),
    }


def threads(stacks: list[ThreadStack]) -> dict[str, Any]:
    """Answer `.../thread-dump`: the stacks of a process's threads."""
    return {
        "threadInfos": [
            {"threadName": each.name, "stringifiedThreadInfo": f'"{each.name}" Id={each.ident}\n{each.stack}\n'}
            for each in stacks
        ]
    }


def slot_threads(jobs: KnownJobs, slot_id: str) -> dict[str, Any]:
    """Answer `/taskmanagers/:taskmanagerid/thread-dump`.

    Raises:
        HttpError: There is no such slot, or it does not answer.
    """
    job, slot = find_slot(jobs, slot_id)
    try:
        return threads(job.view.thread_stacks(slot))
    except SlotLostError as error:
        not_found(str(error))


def slot_logs(jobs: KnownJobs, slot_id: str) -> dict[str, Any]:
    """Answer `/taskmanagers/:taskmanagerid/logs`: the log of a slot, if it has one of its own.

    Raises:
        HttpError: There is no such slot, or it does not answer.
    """
    found = _slot_logs(jobs, slot_id)
    if found is None:
        return {"logs": []}
    named = {_log_name(slot_id): found.log} | ({_output_name(slot_id): found.output} if found.output.text else {})
    return {
        "logs": [{"name": name, "size": len(each.text.encode()), "mtime": each.last_ms} for name, each in named.items()]
    }


def slot_log(jobs: KnownJobs, slot_id: str, name: str | None, request: Request) -> Response:
    """Answer `/taskmanagers/:taskmanagerid/log`: the last lines of a slot's log, from the byte `offset` on.

    Raises:
        HttpError: There is no such slot or log, or the slot does not answer.
    """
    found = _slot_logs(jobs, slot_id)
    if found is None:
        not_found(f"slot {slot_id[:80]!r} has no log of its own: see the driver's log")
    if name not in (None, _log_name(slot_id), _output_name(slot_id)):
        not_found(f"there is no log file {str(name)[:80]!r}")
    chosen = found.output if name == _output_name(slot_id) else found.log
    return Response(chosen.text.encode()[request.number("offset") or 0 :], content_type=_TEXT)


def slot_output(jobs: KnownJobs, slot_id: str, request: Request) -> Response:
    """Answer `/taskmanagers/:taskmanagerid/stdout`: what a slot has printed last, from the byte `offset` on.

    Raises:
        HttpError: There is no such slot, it is no process of its own, or it does not answer.
    """
    return slot_log(jobs, slot_id, _output_name(slot_id), request)


def _slot_logs(jobs: KnownJobs, slot_id: str) -> SlotLogs | None:
    job, slot = find_slot(jobs, slot_id)
    try:
        return job.view.slot_log(slot)
    except SlotLostError as error:
        not_found(str(error))


def _log_name(slot_id: str) -> str:
    return f"{slot_id}.log"


def _output_name(slot_id: str) -> str:
    return f"{slot_id}.out"


def log_files(jobs: Iterable[KnownJob]) -> list[Path]:
    """Return the logs of the driver: those of Python's logging, standard output if it is a file, and the engine's."""
    found = [
        Path(handler.baseFilename)
        for logger in (logging.getLogger(), logging.getLogger("ekorn"))
        for handler in logger.handlers
        if isinstance(handler, logging.FileHandler)
    ]
    for number in (1, 2):
        if _is_file(number):
            found.append(Path(os.readlink(f"/proc/self/fd/{number}")))
    found += [
        Path(job.statistics.facts.log_path)
        for job in jobs
        if job.statistics.facts is not None and job.statistics.facts.log_path is not None
    ]
    return [path for path in dict.fromkeys(found) if path.is_file()]


def log_list(files: list[Path]) -> dict[str, Any]:
    """Answer `/jobmanager/logs`."""
    found = []
    for path in files:
        status = path.stat()
        found.append({"name": path.name, "size": status.st_size, "mtime": status.st_mtime_ns // 1_000_000})
    return {"logs": found}


def log_file(files: list[Path], name: str | None, request: Request) -> Response:
    """Answer with a log. The query parameter `offset` leaves out its first bytes, for readers that follow it.

    Raises:
        HttpError: There is no such log.
    """
    found = next((path for path in files if name is None or path.name == name), None)
    if found is None:
        not_found("there is no log file" if name is None else f"there is no log file {name[:80]!r}")
    first = min(request.number("offset") or 0, found.stat().st_size)
    return Response(FileAnswer(found, first), content_type=_TEXT)


def _is_file(number: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(number).st_mode)
    except OSError:
        return False  # the stream is closed


# ------------------------------------------------------------------------------------------- what the system knows


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _thread_count(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def _cpu_ns(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
