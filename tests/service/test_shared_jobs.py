"""The files of jobs on a storage that services share: what each term writes, reads and leaves out."""

from __future__ import annotations

import hashlib
import json
import os

import pytest

from ekorn.checkpoint.driver_process import Driver
from ekorn.clock import ManualClock
from ekorn.config import options
from ekorn.service.cluster.leadership import Leadership, NotLeader, look, try_to_lead
from ekorn.service.cluster.shared_jobs import SharedJobStore, outcome_path
from ekorn.service.jobs.job_record import JobRecord, NotedOutcome, encode_record
from ekorn.storage.memory import MemoryFiles


class Cluster:
    """A storage, and the stores of leaders that follow each other."""

    def __init__(self, folder):
        self.files, self.folder = MemoryFiles(), folder
        self.led: Leadership | None = None

    def leader(self, name, *, loads=True) -> SharedJobStore:
        me = Driver(f"host-{name}", 1, "1", f"token-{name}")
        self.led = try_to_lead(self.files, me, look(self.files), "c1", now_ms=0, lease_s=600.0)
        assert self.led is not None
        store = SharedJobStore(str(self.folder / name), self.files, me.token, self.led, ManualClock(5_000))
        if loads:
            store.load()
        return store


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path)


def record(number=1, **more):
    return JobRecord(f"{number:032x}", "job", "a" * 64 + "_job.py.zip", "job.py", **more)


def uploaded(store, folder, text="program"):
    (folder / "file").write_text(text)
    return store.add_program(folder / "file", hashlib.sha256(text.encode()).hexdigest(), "job.py")


def test_a_forgotten_job_leaves_its_own_files_no_longer_and_those_of_others(cluster):
    store = cluster.leader("a")
    for number in (1, 2):
        store.save(record(number))
        for run in ("1-1", "1-2"):
            cluster.files.replace(outcome_path(record(number).job_id, run), b"{}")
        cluster.files.replace(f"answers/{record(number).job_id}", b"{}")
    store.forget(record(1).job_id)
    assert cluster.files.list("outcomes") == [f"{record(2).job_id}-1-1", f"{record(2).job_id}-1-2"]
    assert cluster.files.list("answers") == cluster.files.list("term-000001/jobs") == [record(2).job_id]


def test_drafts_and_records_that_vanish_are_no_jobs(cluster):
    first = cluster.leader("a")
    first.save(record(1))
    cluster.files.replace(f"term-000001/jobs/{record(2).job_id}.draft-7", encode_record(record(2)))
    vanished = f"term-000001/jobs/{record(3).job_id}"
    cluster.files.replace(vanished, encode_record(record(3)))
    read = cluster.files.read

    def reading(path):
        if path == vanished:
            raise FileNotFoundError(path)
        return read(path)

    cluster.files.read = reading
    assert [each.job_id for each in cluster.leader("b", loads=False).load()] == [record(1).job_id]


def test_jobs_are_taken_over_in_their_order_and_earlier_terms_are_dropped(cluster):
    first = cluster.leader("a")
    for number, at in ((3, 5), (1, 5), (2, 4)):
        first.save(record(number, submitted_ms=at))
    second = cluster.leader("b", loads=False)
    assert [int(each.job_id, 16) for each in second.load()] == [2, 1, 3]
    assert [name for name in cluster.files.list() if name.startswith("term-")] == ["term-000002"]
    assert cluster.files.exists("term-000002/ready")


def test_files_of_a_term_have_its_number(cluster):
    store = cluster.leader("a")
    folder = store.job_folder(record().job_id)
    assert store.submission(record().job_id) == folder / "submission-1.json"
    assert store.archive(record().job_id) == folder / "answers-1.json"
    assert store.program_folder(record().job_id) == folder / "program-1"
    assert (store.new_run(), store.new_run()) == ("1-1", "1-2")
    assert store.is_shared and store.host
    assert store.settings_of_drivers == {options.LEADER.key: "c1:1", options.EXECUTIONS.key: "one"}
    assert store.watched_leader("1-2") == {
        "storage": cluster.files.address,
        "cluster": "c1",
        "term": 1,
        "token": "token-a",
        "lease_s": 600.0,
        "run": "1-2",
    }
    assert cluster.leader("b").new_run() == "2-1"


def test_an_outcome_is_that_of_its_run(cluster):
    store = cluster.leader("a")
    started = record(phase="STARTED", run="1-1")
    assert store.outcome(started) is None and store.outcome(record()) is None
    body = {"status": "FINISHED", "savepoint": "/s"}
    cluster.files.replace(outcome_path(started.job_id, "1-1"), json.dumps(body).encode())
    assert store.outcome(started) == NotedOutcome("FINISHED", "/s")
    assert store.outcome(record(phase="STARTED", run="1-2")) is None


def test_answers_are_those_of_this_machine_or_of_the_storage(cluster):
    store = cluster.leader("a")
    job_id = record().job_id
    store.save(record())
    store.keep_answers(job_id)  # the driver was killed before it wrote any
    assert store.answers(job_id) == {}
    store.archive(job_id).write_text('{"here": 1}')
    store.keep_answers(job_id)
    other = cluster.leader("b")
    assert other.answers(job_id) == {"here": 1}
    other.save(record())
    other.archive(job_id).write_text('{"newer": 1}')
    assert other.answers(job_id) == {"newer": 1}
    other.drop_answers(job_id)
    assert other.answers(job_id) == {}
    for odd in (b"[]", b"no json"):
        cluster.files.replace(f"answers/{job_id}", odd)
        assert other.answers(job_id) == {}


def test_a_program_is_brought_from_the_storage_where_it_is_needed(cluster, tmp_path):
    program = uploaded(cluster.leader("a"), tmp_path)
    other = cluster.leader("b")
    assert [each.id for each in other.programs()] == [program]
    assert other.programs()[0].uploaded_ms == 0, "it is not here yet"
    found = other.program(program)
    assert found is not None and found.read_text() == "program"
    assert other.programs()[0].uploaded_ms > 0
    assert other.program("c" * 64 + "_job.py.zip") is None and other.program("../x") is None
    other.delete_program(program)
    assert other.program(program) is None and cluster.files.list("programs") == []


def test_programs_are_listed_the_newest_first(cluster, tmp_path):
    store = cluster.leader("a")
    one, two = uploaded(store, tmp_path, "1"), uploaded(store, tmp_path, "2")
    os.utime(store.program(one), (300, 300))
    os.utime(store.program(two), (200, 200))
    assert [each.id for each in store.programs()] == [one, two]


def test_a_service_that_no_longer_leads_writes_nothing(cluster, tmp_path):
    store = cluster.leader("a")
    program, job = uploaded(store, tmp_path), record()
    store.save(job)
    store.archive(job.job_id).write_text("{}")
    before = {path: cluster.files.read(path) for path in (f"programs/{program}", f"term-000001/jobs/{job.job_id}")}
    cluster.led.step_down("on purpose")
    for write in (
        lambda: store.save(record(2)),
        lambda: store.forget(job.job_id),
        lambda: store.delete_program(program),
        lambda: store.keep_answers(job.job_id),
        lambda: store.drop_answers(job.job_id),
        lambda: uploaded(store, tmp_path, "another"),
    ):
        with pytest.raises(NotLeader, match="on purpose"):
            write()
    assert {path: cluster.files.read(path) for path in before} == before
    assert cluster.files.list("answers") == []
    assert len(list((store.folder / "programs").iterdir())) == 1, "a program that is not on the storage is not here"
