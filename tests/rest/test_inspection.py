"""What the slots of a job do: flame graphs of vertices, logs and threads of slots, and the driver of a job."""

from __future__ import annotations

import logging
import os
import socket
import time
from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.config.settings.memory_settings import SlotMemory
from ekorn.driver.job_requests import JobRequests
from ekorn.driver.job_results import JobResults
from ekorn.errors import SlotLostError
from ekorn.reporters.samples import samples_of
from ekorn.rest import process_answers
from ekorn.rest.known_jobs import KnownJob
from ekorn.testing.process_engine import on_process_engine
from tests import live_jobs
from tests.driver.submitted_jobs import noted_handles
from tests.live_jobs import until
from tests.rest.shapes import READING, misfits

FRAME = READING["/jobs/{jobid}/vertices/{vertexid}/flamegraph"]["properties"]["data"]
QUICKLY: dict[str, Any] = {"rest__flamegraph__num_samples": "20", "rest__flamegraph__delay_between_samples": "5 ms"}


def slowly(number):
    time.sleep(0.002)
    return number % 5


def names_in(node):
    return [node["name"], *(name for child in node["children"] for name in names_in(child))]


ANEW = {**QUICKLY, "rest__flamegraph__refresh_interval": "0 ms"}  # every request lets samples be taken anew


def until_seen(caller, job_id, vertex, function):
    """Ask until a function is in the graph of a vertex; return the graph."""
    found = {}

    def is_seen():
        found.update(caller.get(f"/jobs/{job_id}/vertices/{vertex}/flamegraph"))
        return "data" in found and any(function in name for name in names_in(found["data"]))

    until(is_seen)
    return found["data"]


def graph_of(caller, job_id, vertex, more=""):
    """Wait for the graph of a vertex."""
    path = f"/jobs/{job_id}/vertices/{vertex}/flamegraph{more}"
    until(lambda: caller.get(path)["endTimestamp"] > 0)
    return caller.get(path)["data"]


def test_a_flame_graph_shows_the_functions_of_a_vertex_in_flinks_form(caller, run):
    handle = run(function=slowly, **ANEW)
    first, second = [each["id"] for each in caller.get(f"/jobs/{handle.job_id}")["vertices"]]
    waiting = caller.get(f"/jobs/{handle.job_id}/vertices/{first}/flamegraph")
    assert waiting == {"endTimestamp": -3}, "Flink: the first request starts the samples"
    root = until_seen(caller, handle.job_id, first, "test_inspection.slowly:")
    assert not misfits(FRAME, root) and root["name"] == "root"
    assert root["value"] == 40, "twenty samples of each of two slots"
    other = until_seen(caller, handle.job_id, second, "(another subtask of the slot is running)")
    assert not any("slowly" in name for name in names_in(other)), "a function is shown at its own vertex"


def test_samples_are_chosen_by_their_type_and_their_subtask(caller, run):
    handle = run(function=slowly, **QUICKLY)
    vertex = caller.get(f"/jobs/{handle.job_id}")["vertices"][0]["id"]
    full = graph_of(caller, handle.job_id, vertex)
    parts = [graph_of(caller, handle.job_id, vertex, f"?type={kind}") for kind in ("ON_CPU", "OFF_CPU")]
    assert sum(part["value"] for part in parts) == full["value"]
    assert not any("waits for input" in name for name in names_in(parts[0]))
    assert graph_of(caller, handle.job_id, vertex, "?subtaskindex=1")["value"] == full["value"] // 2


@pytest.mark.parametrize(
    ("query", "status", "reason"),
    [
        ("?type=SOME", 400, "unknown type 'SOME': choose from FULL, ON_CPU, OFF_CPU"),
        ("?subtaskindex=7", 404, "has no subtask 7"),
        ("?subtaskindex=one", 400, "not a number"),
    ],
)
def test_a_wrong_request_for_a_graph_is_refused(caller, run, query, status, reason):
    handle = run()
    vertex = caller.get(f"/jobs/{handle.job_id}")["vertices"][0]["id"]
    found, answer = caller.ask("GET", f"/jobs/{handle.job_id}/vertices/{vertex}/flamegraph{query}")
    assert found == status and reason in answer["errors"][0]


def test_there_is_no_graph_when_it_is_switched_off_or_the_job_is_over(caller, run):
    handle = run(rest__flamegraph__enabled="false")
    vertex = caller.get(f"/jobs/{handle.job_id}")["vertices"][0]["id"]
    path = f"/jobs/{handle.job_id}/vertices/{vertex}/flamegraph"
    assert caller.get(path) == {"endTimestamp": -2}
    handle.cancel()
    handle.results.wait_for_end(30)
    assert caller.get(path) == {"endTimestamp": -1}


def test_the_driver_of_a_job_is_shown_with_its_settings_and_logs(caller, run, tmp_path):
    handle = run(tmp_path / "checkpoints", **{"spark__hadoop__fs__s3a__secret__key": "hush"})
    at = f"/jobs/{handle.job_id}/jobmanager"
    values = {each["key"]: each["value"] for each in caller.get(f"{at}/config")}
    assert values["spark.hadoop.fs.s3a.secret.key"] == "******"
    assert "Python" in caller.get(f"{at}/environment")["jvm"]["version"]
    written = logging.FileHandler(tmp_path / "driver-of-the-test.log")
    logging.getLogger("ekorn").addHandler(written)
    try:
        logging.getLogger("ekorn").warning("a line of the driver")
        assert "driver-of-the-test.log" in [each["name"] for each in caller.get(f"{at}/logs")["logs"]]
        assert b"a line of the driver" in caller.get(f"{at}/logs/driver-of-the-test.log")
    finally:
        logging.getLogger("ekorn").removeHandler(written)
        written.close()
    assert caller.ask("GET", "/jobs/nobody/jobmanager/config")[0] == 404
    assert caller.ask("GET", f"{at}/logs/nothing.log")[0] == 404


def logging_slowly(number):
    if number == 0:
        logging.getLogger("of.the.user").warning("order %d has no price", number)
    return slowly(number)


@pytest.mark.long
@pytest.mark.parametrize("continuous", [False, True])
def test_slots_that_are_processes_show_their_logs_and_their_stacks(caller, web, continuous):
    execution = "continuous" if continuous else "epochs"
    env = live_jobs.environment(parallelism=1, ekorn__execution=execution, **ANEW)
    live_jobs.generated(env, None, 1000).map(logging_slowly).name("slow")
    with on_process_engine(continuous=continuous), noted_handles() as handles:
        env.execute_async("in slots")
        (handle,) = handles
        web.jobs.add(handle)
        try:
            until(lambda: handle.progress().records_read > 0)
            vertex = caller.get(f"/jobs/{handle.job_id}")["vertices"][0]["id"]
            until_seen(caller, handle.job_id, vertex, "test_inspection.slowly:")
            (slot,) = caller.get("/taskmanagers")["taskmanagers"]
            own = slot["slot"]
            assert (own["jobId"], own["jobName"], own["number"]) == (str(handle.job_id), "in slots", 0)
            assert (own["host"], own["pid"]) == (socket.gethostname(), *handle.progress().slot_pids)
            assert own["residentMemory"] > 1 << 20 and own["threads"] > 0 and own["cpuTime"] > 0
            assert own["rocksDbCache"] is None, "the state is on the heap"
            (subtask,) = own["subtasks"]
            assert (subtask["vertexId"], subtask["subtask"], subtask["status"]) == (vertex, 0, "RUNNING")
            assert caller.get(f"/taskmanagers/{slot['id']}")["metrics"]["heapUsed"] > 1 << 20
            (log,) = caller.get(f"/taskmanagers/{slot['id']}/logs")["logs"]
            assert log["name"] == f"{slot['id']}.log" and log["size"] > 0 and log["mtime"] > 0
            text = caller.get(f"/taskmanagers/{slot['id']}/logs/{log['name']}")
            assert b"slot 0 WARNING order 0 has no price" in text
            assert caller.get(f"/taskmanagers/{slot['id']}/log?offset={log['size'] - 4}") == text[log["size"] - 4 :]
            assert caller.ask("GET", f"/taskmanagers/{slot['id']}/logs/other.log")[0] == 404
            assert caller.ask("GET", "/taskmanagers/nobody/log")[0] == 404
            stacks = caller.get(f"/taskmanagers/{slot['id']}/thread-dump")["threadInfos"]
            assert any("slot-connection" in each["threadName"] for each in stacks)
            named = {(each.scope, each.name): each for each in samples_of(web.jobs.running())}
            memory = named["taskmanager", "Status.JVM.Memory.Heap.Used"]
            assert memory.variables["tm_id"] == slot["id"] and memory.value > 1 << 20
        finally:
            handle.cancel()
            handle.results.wait_for_end(30)


def test_a_process_of_this_machine_is_not_taken_for_a_slot_of_another_one():
    progress = SimpleNamespace(slot_pids=(os.getppid(),))  # the number of a slot elsewhere, and of a process here
    view: Any = SimpleNamespace(job_id="job", progress=lambda: progress, slot_vitals=lambda slot: None)
    settings = SimpleNamespace(in_slots=True)
    graph = SimpleNamespace(slot_count=1, settings=settings, memory_of=lambda slot: SlotMemory())
    statistics: Any = SimpleNamespace(graph=graph)
    requests, results = JobRequests(), JobResults(view)
    job = KnownJob(view, requests, results, statistics)
    jobs: Any = SimpleNamespace(running=lambda: [job])
    assert list(process_answers.metrics_of_slots(job)) == []
    assert process_answers.slot_metrics(jobs, "job-slot-0")["Status.JVM.Memory.Heap.Used"] == 0


class SilentSlots:
    """Slots of which none answers."""

    def vitals(self, slot):
        raise SlotLostError(slot, "it did not answer")


def test_a_slot_that_does_not_answer_is_shown_without_what_only_its_process_knows(caller, run):
    handle = run()
    slots: Any = SilentSlots()
    handle.view.inspect(slots)
    _, silent = caller.get("/taskmanagers")["taskmanagers"]
    assert not misfits(READING["/taskmanagers/{taskmanagerid}"], caller.get(f"/taskmanagers/{silent['id']}"))
    unknown = {silent["slot"][name] for name in ("host", "residentMemory", "rocksDbCache", "threads", "cpuTime")}
    assert unknown == {None} and len(silent["slot"]["subtasks"]) == 2
    assert silent["path"].endswith("on a machine that does not answer")


def test_a_slot_shows_what_it_may_use_and_the_sizes_of_its_states(caller, run):
    run(taskmanager__memory__process__size="1 gb", taskmanager__numberOfTaskSlots="2")
    for each in caller.get("/taskmanagers")["taskmanagers"]:
        own = each["slot"]
        assert own["memoryLimit"] == pytest.approx(512 << 20, abs=8)
        assert own["managedMemory"] == each["memoryConfiguration"]["managedMemory"] == 241591914 // 2
        assert each["memoryConfiguration"]["totalProcessMemory"] == own["memoryLimit"]
        assert each["totalResource"]["taskHeapMemory"] == each["memoryConfiguration"]["taskHeap"] > 0
        assert each["hardware"]["managedMemory"] == own["managedMemory"]
        shown = {metric["id"] for metric in caller.get(f"/taskmanagers/{each['id']}/metrics")}
        assert {"Status.JVM.Memory.Heap.Max", "Status.Flink.Memory.Managed.Total"} <= shown
        wanted = "Status.JVM.Memory.Heap.Max,Status.Flink.Memory.Managed.Total"
        values = caller.get(f"/taskmanagers/{each['id']}/metrics?get={wanted}")
        assert [int(metric["value"]) for metric in values] == [own["memoryLimit"], own["managedMemory"]]
    states = [state for each in caller.get("/taskmanagers")["taskmanagers"] for state in each["slot"]["states"]]
    assert all(state["bytes"] > 0 and state["entries"] > 0 for state in states)


def test_a_slot_with_state_in_rocksdb_shows_the_memory_of_its_cache(caller, run):
    run(state__backend__type="rocksdb")
    assert all(each["slot"]["rocksDbCache"] >= 0 for each in caller.get("/taskmanagers")["taskmanagers"])


def test_the_log_of_the_driver_comes_before_that_of_the_engine(tmp_path):
    engine, printed = tmp_path / "engine.log", tmp_path / "printed.log"
    engine.touch()
    facts = SimpleNamespace(log_path=str(engine))
    job: Any = SimpleNamespace(statistics=SimpleNamespace(facts=facts))
    kept = os.dup(1)
    try:
        with printed.open("w") as file:
            os.dup2(file.fileno(), 1)
        found = process_answers.log_files([job])
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert [path for path in found if path.parent == tmp_path] == [printed, engine]


def printing(number):
    print("printed", number)
    return slowly(number)


def test_what_user_code_prints_in_a_slot_is_shown_beside_the_log(caller, web):
    env = live_jobs.environment(parallelism=1)
    live_jobs.generated(env, None, 1000).map(printing)
    with on_process_engine(), noted_handles() as handles:
        env.execute_async("printing")
        (handle,) = handles
        web.jobs.add(handle)
        try:
            until(lambda: handle.progress().records_read > 0)
            (slot,) = caller.get("/taskmanagers")["taskmanagers"]
            at = f"/taskmanagers/{slot['id']}"
            until(lambda: len(caller.get(f"{at}/logs")["logs"]) == 2)
            assert [each["name"] for each in caller.get(f"{at}/logs")["logs"]] == [
                f"{slot['id']}.log",
                f"{slot['id']}.out",
            ]
            for path in (f"{at}/stdout", f"{at}/logs/{slot['id']}.out"):
                assert caller.get(path).startswith(b"printed 0\nprinted 1\n")
            assert b"printed" not in caller.get(f"{at}/log")
        finally:
            handle.cancel()
            handle.results.wait_for_end(30)
