"""The lease of the leader, and what becomes of its jobs: rules, without processes."""

import hashlib
import itertools
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ekorn.checkpoint.driver_process import Driver
from ekorn.checkpoint.owner_files import LeaderTerm
from ekorn.checkpoint.ownership import claim
from ekorn.clock import ManualClock
from ekorn.common import Configuration
from ekorn.config import options
from ekorn.config.settings.service_settings import ClusterSettings, service_settings
from ekorn.driver.statistics.failure_history import FailureHistory
from ekorn.errors import CheckpointError, ConfigurationError, DirectoryInUse, Fenced, UnsafeFolderError
from ekorn.graph.job_graph import ExecutionSettings, JobGraph
from ekorn.service.cluster.cluster_files import ClusterFiles, Member
from ekorn.service.cluster.cluster_node import ClusterNode, Office
from ekorn.service.cluster.clustered_service import ClusteredService
from ekorn.service.cluster.leadership import Leadership, LeaseWatch, NotLeader, Sighting, elapsed_s, look, try_to_lead
from ekorn.service.cluster.shared_jobs import SharedJobStore
from ekorn.service.cluster.takeover import MOST_LOST, SHORT_LIFE_MS, after_lost_driver, taken_over, was_replaced
from ekorn.service.jobs.bundles import make_bundle
from ekorn.service.jobs.job_process import drivers_below, end_process, is_alive, start_driver
from ekorn.service.jobs.job_record import JobPlan, JobRecord, NotedOutcome, encode_record
from ekorn.service.jobs.job_service import JobService
from ekorn.service.jobs.job_store import JobStore, write_private
from ekorn.service.jobs.job_submission import Submission
from ekorn.storage.file_store import open_files
from ekorn.storage.memory import MemoryFiles
from tests.live_jobs import until

LEASE_S = 9.0
ids = itertools.count(1)


def service_named(name):
    return Driver(f"host-{name}", 1, "1", f"token-{name}")


def led_by(store, name, seen=None):
    return try_to_lead(store, service_named(name), seen or look(store), "cluster", now_ms=0, lease_s=LEASE_S)


def record(phase="STARTED", **more):
    return JobRecord(f"{next(ids):032x}", "job", "p" * 64 + "_job.py.zip", "job.py", phase=phase, run="1-1", **more)


# ------------------------------------------------------------------------------------------------------- the lease


def test_a_lease_lapses_when_no_new_sign_was_seen_for_two_thirds_of_it():
    store, watch = MemoryFiles(), LeaseWatch(LEASE_S)
    led = led_by(store, "a")
    seen = look(store)
    assert not watch.has_lapsed(seen, 100.0) and not watch.has_lapsed(seen, 105.9)
    assert watch.has_lapsed(seen, 106.0)
    led.renew()
    assert not watch.has_lapsed(look(store), 107.0)


def test_a_storage_without_a_leader_and_a_lease_that_was_released_lapse_at_once():
    store = MemoryFiles()
    assert LeaseWatch(LEASE_S).has_lapsed(look(store), 0.0)
    led = led_by(store, "a")
    assert not LeaseWatch(LEASE_S).has_lapsed(look(store), 0.0)
    led.release()
    assert LeaseWatch(LEASE_S).has_lapsed(look(store), 0.0)


class SlowFiles(MemoryFiles):
    """A storage that takes a while to replace a file."""

    pause_s = 0.0

    def replace(self, path: str, data: bytes) -> None:
        time.sleep(self.pause_s)
        super().replace(path, data)


def test_a_renewal_that_ends_after_the_lease_does_not_bring_it_back():
    """The renewal began in time, so a lease that counted from its beginning would still be valid."""
    store = SlowFiles()
    owned = claim(store, service_named("a"), now_ms=0, take_over=False)
    led = Leadership(owned, "cluster", lease_s=2.0, since_s=elapsed_s() - 0.7)  # leads for one second
    store.pause_s = 0.4
    began_s = elapsed_s()
    assert led.is_valid
    led.renew()
    assert began_s + 0.3 < elapsed_s() < began_s + 1.0, "it took too long for this test"
    assert not led.is_valid, "another service may lead already"
    store.pause_s = 0.0
    with pytest.raises(NotLeader, match="could not renew its lease in time"):
        led.renew()
    assert not led.is_valid


def test_of_two_standbys_that_see_the_same_lapse_one_leads():
    store = MemoryFiles()
    led_by(store, "a")
    seen = look(store)
    second = led_by(store, "b", seen)
    assert second is not None and second.term == LeaderTerm("cluster", 2)
    assert led_by(store, "c", seen) is None


def test_a_replaced_leader_learns_it_from_the_storage_and_never_leads_again():
    store = MemoryFiles()
    first = led_by(store, "a")
    first.confirm()
    led_by(store, "b")
    assert first.is_valid  # it has not asked yet
    with pytest.raises(NotLeader, match="another service leads"):
        first.confirm()
    assert not first.is_valid
    with pytest.raises(NotLeader):
        first.renew()


def test_a_storage_that_was_removed_ends_the_leadership():
    store = MemoryFiles()
    led = led_by(store, "a")
    store.delete_tree("owner")
    with pytest.raises(NotLeader, match="removed"):
        led.renew()


def test_a_storage_that_does_not_have_the_cluster_is_not_taken_for_it():
    files = ClusterFiles(MemoryFiles())
    files.check()
    files.store.delete("cluster")
    with pytest.raises(OSError, match="gone or replaced"):
        files.check()
    ClusterFiles(files.store)  # another cluster in its place
    with pytest.raises(OSError, match="gone or replaced"):
        files.check()


def test_members_are_known_by_their_files():
    files = ClusterFiles(MemoryFiles())
    shown = files.show(Member("t", "http://a:1", "a", 7))
    assert files.members() == [shown] == [files.member("t")] and shown.beat == 1
    files.forget("t")
    assert files.members() == [] and files.member("t") is None


def test_a_service_that_fails_to_step_down_stands_by_again():
    files, entered, left = ClusterFiles(MemoryFiles()), [], []

    def leave(led):
        left.append(led.term.term)
        if len(left) == 1:
            raise RuntimeError("of a defect")

    office = Office(lambda led: entered.append(led.term.term), leave)
    node = ClusterNode(files, service_named("a"), "http://a:1", lease_s=0.3, office=office, clock=ManualClock())
    node.start()
    until(lambda: node.leadership is not None)
    until(lambda: led_by(files.store, "b") is not None)  # which is never heard of again
    until(lambda: len(entered) > 1)
    node.close()
    assert left == entered


# ----------------------------------------------------------------------------------------------- drivers of leaders


def test_the_driver_of_a_later_leader_takes_over_from_a_living_one_and_never_the_reverse():
    store = MemoryFiles()
    old = claim(store, service_named("x"), 0, leader=LeaderTerm("c", 1))
    with pytest.raises(DirectoryInUse):
        claim(store, service_named("y"), 1, leader=LeaderTerm("c", 1))
    new = claim(store, service_named("z"), 1, leader=LeaderTerm("c", 2))
    with pytest.raises(Fenced):
        old.check()
    new.check()
    far_later = 10**9  # the owner is silent for long, and still a later leader's
    with pytest.raises(DirectoryInUse):
        claim(store, service_named("x"), far_later, leader=LeaderTerm("c", 1))
    assert claim(store, service_named("w"), far_later, leader=LeaderTerm("other", 1)).term == 3


# ------------------------------------------------------------------------------------------------------ the take-over


def test_a_job_that_ran_waits_for_a_new_driver():
    again = taken_over(record(pid=4, socket="s", host="h"), None, 5)
    assert (again.phase, again.pid, again.run, again.host) == ("WAITING", 0, "", "")


def test_a_job_whose_driver_noted_its_end_is_not_started_again():
    ended = taken_over(record(), NotedOutcome("FINISHED", None), 5)
    assert (ended.phase, ended.status, ended.ended_ms) == ("ENDED", "FINISHED", 5)


def test_a_job_that_was_to_be_cancelled_is_not_started_again():
    assert taken_over(record(cancelled=True), None, 5).status == "CANCELED"


def test_a_job_that_stopped_for_another_plan_continues_with_it():
    plan = JobPlan("q" * 64 + "_new.py.zip", "new.py", (), {}, 2)
    changed = taken_over(record(then=plan), NotedOutcome("FINISHED", "/saved"), 5)
    assert (changed.phase, changed.script, changed.slots) == ("WAITING", "new.py", 2)
    assert changed.settings[options.RESTORE_PATH.key] == "/saved"
    assert changed.fallback is not None and changed.fallback.script == "job.py" and changed.then is None
    kept = taken_over(record(then=plan), None, 5)
    assert kept.script == "job.py" and kept.then is None


def test_jobs_that_wait_or_have_ended_stay_as_they_are():
    for each in (record("WAITING"), record("ENDED", status="FAILED")):
        assert taken_over(each, None, 5) == each


def test_a_lost_driver_is_replaced_until_too_many_were_lost_in_a_row():
    job = record()
    for _ in range(MOST_LOST):
        again = after_lost_driver(job, "killed", 10, may_begin=True)
        assert again is not None
        job = replace(again, phase="STARTED", started_ms=10)
    assert after_lost_driver(job, "killed", 10, may_begin=True) is None
    later = after_lost_driver(job, "killed", 10 + SHORT_LIFE_MS, may_begin=True)
    assert later is not None and later.lost_drivers == 1


def test_a_driver_whose_job_another_driver_took_over_is_told_apart_from_one_that_failed():
    def answer(error):
        failures = FailureHistory(JobGraph("job", (), (), ExecutionSettings()))
        failures.add(error, frozenset(), None, 0)
        return {"exceptionHistory": {"entries": [{"exceptionName": each.name} for each in failures.failures]}}

    assert was_replaced(answer(Fenced("/checkpoints", 3)))
    assert not was_replaced(answer(CheckpointError("of another kind")))
    assert not was_replaced({}) and not was_replaced({"exceptionHistory": {"entries": []}})


def store_of(files, led, folder, name):
    return SharedJobStore(str(folder / name), files, f"token-{name}", led, ManualClock())


def test_the_next_leader_knows_what_the_one_before_has_confirmed(tmp_path):
    files = MemoryFiles()
    first = store_of(files, led_by(files, "a"), tmp_path, "a")
    assert first.load() == []
    job = record("WAITING")
    first.save(job)
    assert store_of(files, led_by(files, "b"), tmp_path, "b").load() == [job]


def test_a_replaced_leader_that_writes_does_not_say_so_and_is_not_read(tmp_path):
    files = MemoryFiles()
    led = led_by(files, "a")
    first = store_of(files, led, tmp_path, "a")
    first.load()
    second = store_of(files, led_by(files, "b"), tmp_path, "b")
    assert second.load() == []
    with pytest.raises(NotLeader):
        first.save(record("WAITING"))
    assert store_of(files, led_by(files, "c"), tmp_path, "c").load() == []


def test_a_leader_that_is_lost_before_it_has_all_jobs_leaves_them_to_the_next(tmp_path):
    files = MemoryFiles()
    first = store_of(files, led_by(files, "a"), tmp_path, "a")
    first.load()
    jobs = [record("WAITING"), record("WAITING")]
    for job in jobs:
        first.save(job)
    led_by(files, "b")  # and killed at once
    assert store_of(files, led_by(files, "c"), tmp_path, "c").load() == jobs


def test_a_record_that_a_leader_cannot_read_is_left_for_one_that_can(tmp_path):
    files = MemoryFiles()
    first = store_of(files, led_by(files, "a"), tmp_path, "a")
    first.load()
    job = record("WAITING")
    later = json.dumps({**json.loads(encode_record(job)), "version": 99}).encode()
    files.replace(f"term-000001/jobs/{job.job_id}", later)
    for name in "bc":
        assert store_of(files, led_by(files, name), tmp_path, name).load() == []
    assert files.read(f"term-000003/jobs/{job.job_id}") == later


def test_a_file_that_several_threads_write_at_once_is_whole(tmp_path):
    file, start = tmp_path / "program", threading.Barrier(4)

    def write(number):
        start.wait()
        for _ in range(50):
            write_private(file, b"%d" % number * 10_000)
            assert len(set(file.read_bytes())) == 1 and file.stat().st_size == 10_000

    with ThreadPoolExecutor(4) as several:
        list(several.map(write, range(4)))
    assert [each.name for each in tmp_path.iterdir()] == ["program"]


def cluster_keys(tmp_path, folder):
    return {
        "ekorn.service.dir": str(folder),
        "rest.port": "0",
        "high-availability.type": "storage",
        "high-availability.storageDir": str(tmp_path / "shared"),
        "high-availability.cluster-id": "ours",
    }


def test_a_storage_that_other_users_may_enter_is_refused(tmp_path):
    """It holds the token, and the programs and settings of jobs."""
    (tmp_path / "shared" / "ours").mkdir(parents=True)
    (tmp_path / "shared" / "ours").chmod(0o755)
    with pytest.raises(UnsafeFolderError, match=r"ours' must be a folder .* its mode is 755"):
        ClusteredService(
            service_settings(Configuration.from_dict(cluster_keys(tmp_path, tmp_path / "service")))
        ).close()


def test_a_folder_with_jobs_of_a_service_without_standbys_is_refused_and_they_run_on(tmp_path):
    folder = tmp_path / "service"
    store, job = JobStore(str(folder)), record()
    store.save(job)
    script = store.job_folder(job.job_id) / "job.py"
    script.write_text("import time\ntime.sleep(600)")
    driver = start_driver(store, job, script)
    keys = cluster_keys(tmp_path, folder)
    try:
        until(lambda: drivers_below(folder / "jobs"))  # the system shows a command a moment after its start
        with pytest.raises(ConfigurationError, match=f"job {job.job_id} runs in .* without standbys: stop such jobs"):
            ClusteredService(service_settings(Configuration.from_dict(keys))).close()
        assert is_alive(*driver)
    finally:
        end_process(*driver, at_once=True)


def test_a_leader_deletes_what_its_earlier_terms_left_behind_of_jobs_that_are_forgotten_and_programs(tmp_path):
    files = MemoryFiles()
    first = store_of(files, led_by(files, "a"), tmp_path, "a")
    first.load()
    kept, forgotten = record("WAITING"), record("WAITING")
    for job in (kept, forgotten):
        first.save(job)
        first.program_folder(job.job_id).mkdir()
        first.submission(job.job_id).write_text("{}")
        first.log(job.job_id).write_text("its log")
    (tmp_path / "bundle").write_bytes(b"a program")
    digest = hashlib.sha256(b"a program").hexdigest()
    programs = [first.add_program(tmp_path / "bundle", digest, name) for name in ("kept.py", "deleted.py")]
    alone = JobStore(str(first.folder))
    of_one_service = [record("ENDED") for _ in range(8)]  # jobs from before it had standbys
    for job in of_one_service:
        alone.save(job)
    second = store_of(files, led_by(files, "b"), tmp_path, "b")
    second.load()
    second.forget(forgotten.job_id)
    second.delete_program(programs[1])
    third = store_of(files, led_by(files, "a"), tmp_path, "a")
    assert third.load() == [kept]
    assert not third.job_folder(forgotten.job_id).exists()
    assert all(third.job_folder(job.job_id).exists() for job in of_one_service)
    assert [each.name for each in third.job_folder(kept.job_id).iterdir()] == [third.log(kept.job_id).name]
    assert third.program(programs[0]) is not None
    assert third.program(programs[1]) is None, "a job would start with it here, and nowhere else"


class Flaky:
    """A store of files that fails to read or write a program once."""

    def __init__(self, files):
        self._files = files
        self.fails = False

    def read(self, path):
        if self.fails and path.startswith("programs/"):
            self.fails = False
            raise OSError("the storage is away")
        return self._files.read(path)

    def publish(self, path, data):
        if self.fails and path.startswith("programs/"):
            self.fails = False
            raise OSError("the storage is away")
        self._files.publish(path, data)

    def __getattr__(self, name):
        return getattr(self._files, name)


def test_a_program_that_did_not_reach_the_storage_is_not_there(tmp_path):
    files = Flaky(MemoryFiles())
    store = store_of(files, led_by(files, "a"), tmp_path, "a")
    store.load()
    (tmp_path / "bundle").write_bytes(b"a program")
    digest = hashlib.sha256(b"a program").hexdigest()
    files.fails = True
    with pytest.raises(OSError, match="away"):
        store.add_program(tmp_path / "bundle", digest, "job.py")
    assert store.program(f"{digest}_job.py.zip") is None
    assert store.program(store.add_program(tmp_path / "bundle", digest, "job.py")) is not None


def test_a_storage_that_fails_for_a_moment_does_not_fail_the_job_that_starts(tmp_path, runtime_dir):
    files = Flaky(open_files(str(tmp_path / "shared")))
    led = try_to_lead(files, service_named("a"), look(files), "cluster", now_ms=0, lease_s=600.0)
    settings = service_settings(Configuration.from_dict({"ekorn.service.dir": str(tmp_path / "a")}))
    service = JobService(settings, store=store_of(files, led, tmp_path, "a"))
    (tmp_path / "job.py").write_text("print('ran')")
    bundle = make_bundle(str(tmp_path / "job.py"), ())
    (tmp_path / "bundle").write_bytes(bundle.data)
    program = service.add_program(tmp_path / "bundle", bundle.digest, bundle.script)
    job = service.submit(Submission(program)).job_id
    (tmp_path / "a" / "programs" / program).unlink()  # as on the next leader, which has it on the storage alone
    files.fails = True
    service.start()
    try:
        until(lambda: service.jobs()[0].phase == "ENDED")
        (ended,) = service.jobs()
        assert (ended.job_id, ended.status, files.fails) == (job, "FINISHED", False), ended.why
    finally:
        service.close()


def test_the_answers_of_a_run_before_are_not_taken_for_those_of_the_next(tmp_path):
    files = MemoryFiles()
    store = store_of(files, led_by(files, "a"), tmp_path, "a")
    store.load()
    job = record()
    store.save(job)
    store.archive(job.job_id).write_text('{"exit code": 0}')
    store.keep_answers(job.job_id)
    store.archive(job.job_id).unlink()
    assert store.answers(job.job_id) == {"exit code": 0}
    store.drop_answers(job.job_id)
    assert store.answers(job.job_id) == {}


# ------------------------------------------------------------------------------------------------------ the settings


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"high-availability.type": "zookeeper"}, "set it to 'storage', and high-availability.storageDir"),
        ({"high-availability": "KUBERNETES"}, "neither ZooKeeper nor Kubernetes"),
        ({"high-availability.type": "storage"}, "set high-availability.storageDir"),
        (
            {
                "high-availability.type": "storage",
                "high-availability.storageDir": "/s",
                "high-availability.cluster-id": "../x",
            },
            "high-availability.cluster-id is",
        ),
        ({"high-availability.lease": "1 ms", "high-availability.type": "storage"}, "storageDir|at least"),
    ],
)
def test_settings_that_name_no_shared_storage_are_refused(keys, reason):
    with pytest.raises(ConfigurationError, match=reason):
        service_settings(Configuration.from_dict(keys))


def test_flinks_keys_name_the_cluster():
    keys = {
        "high-availability.type": "Storage",
        "high-availability.storageDir": "s3://bucket/ha",
        "high-availability.cluster-id": "/blue",
        "high-availability.lease": "5 s",
    }
    cluster = service_settings(Configuration.from_dict(keys)).cluster
    assert cluster == ClusterSettings("s3://bucket/ha", "blue", 5000)
    assert service_settings(Configuration.from_dict({"high-availability": "NONE"})).cluster is None


def test_what_is_seen_of_a_leader_is_a_value():
    assert Sighting(None, {}).is_released and Sighting(None, {}).term == 0
