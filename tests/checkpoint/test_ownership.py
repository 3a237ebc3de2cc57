"""Two drivers on one job: the second is refused or fences the first, and no interleaving splits the job's history."""

import errno
import json
import os
import pickle
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from ekorn.checkpoint.checkpoint_choice import choose_checkpoint
from ekorn.checkpoint.checkpoint_directory import CheckpointDirectory
from ekorn.checkpoint.driver_process import Driver
from ekorn.checkpoint.file_names import tombstone_path
from ekorn.checkpoint.history import History
from ekorn.checkpoint.metadata_file import encode_metadata
from ekorn.checkpoint.owner_files import Claim, encode_owner_file, read_claim
from ekorn.checkpoint.ownership import claim, living_owner
from ekorn.errors import CheckpointError, CorruptFileError, DirectoryInUse, Fenced, JobHasFinished, JobWasCancelled
from ekorn.storage.local import LocalFiles
from ekorn.storage.memory import MemoryFiles
from tests.checkpoint.checkpoint_values import JOB, driver, graph, metadata, opened, vertex
from tests.checkpoint.faulty_files import Fault, FaultyFiles

JOB_GRAPH = graph(vertex(0, "source", source=True))


def start(store, name, **kwargs):
    """Claim the directory and start from the newest checkpoint, as a driver does."""
    directory = opened(store, name=name, **kwargs)
    chosen = choose_checkpoint(directory)
    directory.start_from(None if chosen is None else chosen.restore_point.metadata.checkpoint_id)
    return directory, (None if chosen is None else chosen.restore_point.metadata.checkpoint_id)


def complete(directory, checkpoint_id):
    return directory.complete(metadata(JOB_GRAPH, directory.files, checkpoint_id, attempt=f"{directory.term}.0"))


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    return LocalFiles(tmp_path) if request.param == "local" else MemoryFiles()


# ------------------------------------------------------------------------------------------ the claim


def test_a_second_driver_is_refused_with_who_holds_the_directory(store):
    opened(store)
    with pytest.raises(DirectoryInUse, match=r"process id 42 on host 'there'.*another job id"):
        away = MemoryFiles()
        CheckpointDirectory(away, JOB).initialise(driver("one", host="there", pid=42), 0)
        CheckpointDirectory(away, JOB).initialise(driver("two", host="here"), 5_000)
    this = Driver.this_process()
    CheckpointDirectory(store, "other").initialise(this, 0)
    with pytest.raises(DirectoryInUse):
        CheckpointDirectory(store, "other").initialise(replace(this, token="second"), 10**9)


def test_an_owner_on_another_host_that_falls_silent_is_replaced(store):
    owner = claim(store, driver("one", host="there"), 0)
    owner.renew(20_000)
    with pytest.raises(DirectoryInUse):
        claim(store, driver("two"), 49_999)
    owner.check()
    successor = claim(store, driver("two"), 50_000)
    assert successor.term == owner.term + 1
    successor.check()
    with pytest.raises(Fenced, match="term 1"):
        owner.check()


@pytest.mark.parametrize("lease_ms", [5_000, 600_000])
def test_an_owner_lives_as_long_as_the_lease_that_it_claimed_with(store, lease_ms):
    owner = claim(store, driver("one", host="there"), 0, lease_ms=lease_ms)
    owner.renew(lease_ms)
    assert living_owner(store, 2 * lease_ms - 1) == driver("one", host="there")
    assert living_owner(store, 2 * lease_ms) is None


def test_an_owner_of_an_earlier_version_lives_as_long_as_the_default_lease(store):
    store.publish("owner/claim-000001", Claim(1, driver("one", host="there"), 0).encode())
    assert living_owner(store, 29_999) is not None and living_owner(store, 30_000) is None


def test_an_owner_that_released_the_directory_is_replaced_at_once(store):
    claim(store, driver("one", host="there"), 0).release()
    assert claim(store, driver("two"), 1).term == 2


def test_a_living_owner_is_replaced_when_asked_for(store):
    first = claim(store, driver("one", host="there"), 0)
    claim(store, driver("two"), 1, take_over=True)
    with pytest.raises(Fenced):
        first.check()


def test_an_owner_whose_process_ended_is_replaced_at_once(store):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    this = Driver.this_process()
    with open(f"/proc/{process.pid}/stat", "rb") as file:
        started = file.read().rpartition(b")")[2].split()[19].decode()
    dead = Driver(this.host, process.pid, started, "dead")
    claim(store, dead, 0)
    with pytest.raises(DirectoryInUse):
        claim(store, this, 10**9)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, but its parent has not noticed yet
    assert claim(store, this, 1).term == 2
    process.communicate()
    assert dead.is_gone(this)


def test_a_process_id_used_again_is_not_mistaken_for_the_owner():
    this = Driver.this_process()
    assert not this.is_gone(this)
    assert replace(this, process_start="1").is_gone(this)


def test_signs_of_life_are_rare(store):
    counted = FaultyFiles(store)
    owner = claim(counted, driver(), 0)
    counted.calls.clear()
    shown = []
    for now_ms in range(0, 20_000, 100):
        owner.renew(now_ms)
        if len(counted.calls) > len(shown):
            shown.append(now_ms)
    assert shown == [5_000, 10_000, 15_000], "six times in a lease of 30 seconds"


def test_a_clock_that_goes_back_does_not_stop_the_signs_of_life(store):
    owner = claim(store, driver(host="there"), 1_000_000)
    owner.renew(5)
    assert json.loads(store.read("owner/alive-000001"))["now_ms"] == 5


def test_a_driver_whose_clock_was_set_back_is_refused_and_one_whose_clock_was_set_forward_does_no_harm(store):
    hour_ms = 3_600_000
    owner = claim(store, driver("one", host="there"), hour_ms)
    with pytest.raises(DirectoryInUse):
        claim(store, driver("two"), 0)
    owner.check()
    claim(store, driver("three"), 2 * hour_ms).check()
    with pytest.raises(Fenced):
        owner.check()


def test_a_damaged_claim_still_takes_its_number(store):
    store.write("owner/claim-000001", b"\xff")
    assert claim(store, driver(), 100_000).term == 2


def test_a_removed_directory_fences_its_driver(store):
    directory = opened(store)
    directory.delete_everything()
    with pytest.raises(Fenced, match="removed"):
        complete(directory, 1)


# ------------------------------------------------------------------------------------------ what a replaced driver does


def test_a_replaced_driver_cannot_complete_or_delete_anything(store):
    first, _ = start(store, "one")
    complete(first, 1)
    second, restored = start(store, "two", take_over=True)
    assert restored == 1
    for action in (
        lambda: complete(first, 2),
        lambda: first.discard(1),
        lambda: first.delete_files(["shared/x"]),
        first.delete_everything,
        first.check_owner,
    ):
        with pytest.raises(Fenced):
            action()
    assert second.completed_ids() == [1]
    complete(second, 2)
    assert second.load(2).term == 2


class Interruption:
    """Lets another driver run at the moment this one is about to make its n-th call to the store."""

    def __init__(self):
        self.count = 0
        self._at, self._other = 0, lambda: None

    def plan(self, at, other):
        self.count, self._at, self._other = 0, at, other

    def __call__(self):
        self.count += 1
        if self.count == self._at:
            self._other()


def test_whenever_the_second_driver_takes_over_there_is_one_history():
    outcomes = set()
    for at in range(1, 40):
        store = MemoryFiles()
        interruption = Interruption()
        first, _ = start(FaultyFiles(store, on_call=interruption), "one")
        complete(first, 1)
        value = metadata(JOB_GRAPH, first.files, 2)
        result = {}

        def take_over(store=store, result=result):
            result["second"], result["restored"] = start(store, "two", take_over=True)

        interruption.plan(at, take_over)
        try:
            first.complete(value)
            acknowledged = True
        except Fenced:
            acknowledged = False
        if interruption.count < at:
            break
        # The invariant: what the first driver told its sinks to commit is what the second one starts from.
        if acknowledged:
            assert result["restored"] == 2
        outcomes.add((acknowledged, result["restored"]))
        # The second driver completes its own checkpoint, which always works, and a third driver starts from that.
        second = result["second"]
        assert result["restored"] == 2 or _is_refused(second, 2)
        complete(second, 3)
        assert start(store, "three", take_over=True)[1] == 3
    # All outcomes were met: silent and abandoned, silent but taken over, and told before the claim.
    assert outcomes == {(False, 1), (False, 2), (True, 2)}


def _is_refused(directory, checkpoint_id):
    try:
        directory.load(checkpoint_id)
    except CorruptFileError:
        return True
    return False


def test_what_a_replaced_driver_published_after_all_is_never_restored(store):
    first, _ = start(store, "one")
    complete(first, 1)
    second, restored = start(store, "two", take_over=True)
    assert restored == 1
    # The first driver passed its check before the claim, slept, and publishes now.
    late = replace(metadata(JOB_GRAPH, first.files, 5), term=1)
    first.files.publish("chk-5/_metadata", encode_metadata(late))
    with pytest.raises(CorruptFileError, match="had been replaced"):
        second.load(5)
    assert start(store, "three", take_over=True)[1] == 1


@pytest.mark.parametrize("foreign", [{"checkpoint_id": 3}, {"job_id": "another"}], ids=["number", "job"])
def test_metadata_of_something_else_is_damage_though_its_term_be_one_that_was_given_up(store, foreign, caplog):
    first, _ = start(store, "one")
    complete(first, 1)
    second, _ = start(store, "two", take_over=True)
    complete(second, 2)
    other = replace(metadata(JOB_GRAPH, first.files, 2), term=1, **foreign)
    second.files.replace("chk-2/_metadata", encode_metadata(other))
    with pytest.raises(CorruptFileError, match="expected checkpoint 2 of job"):
        second.load(2)
    assert start(store, "three", take_over=True)[1] == 1
    assert "restoring the older checkpoint 1 instead of 2" in caplog.text


def test_a_late_publication_does_not_block_the_number_for_the_owner(store):
    first, _ = start(store, "one")
    second, _ = start(store, "two", take_over=True)
    late = replace(metadata(JOB_GRAPH, first.files, 2), term=1)
    first.files.publish("chk-2/_metadata", encode_metadata(late))
    complete(second, 2)
    assert second.load(2).term == 2


def test_a_driver_replaced_before_it_started_says_so(store):
    first = opened(store, name="one")
    opened(store, name="two", take_over=True)
    with pytest.raises(Fenced):
        first.start_from(None)


def test_the_errors_are_checkpoint_errors_and_survive_pickling():
    for error in (Fenced("dir", 3), DirectoryInUse("dir", "host", 7)):
        assert isinstance(error, CheckpointError)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_job_that_has_finished_is_not_begun_again(store):
    faulty = FaultyFiles(store)
    directory, _ = start(faulty, "one")
    complete(directory, 1)
    faulty.add(Fault("delete_tree", "*", error=KeyboardInterrupt()))  # its driver dies here
    with pytest.raises(KeyboardInterrupt):
        directory.delete_everything(finished=True)
    with pytest.raises(JobHasFinished, match="has finished, and all its output is committed; to run it again"):
        start(store, "two", take_over=True)


def test_after_a_finished_job_is_gone_its_directory_is_free(store):
    directory, _ = start(store, "one")
    complete(directory, 1)
    directory.delete_everything(finished=True)
    assert start(store, "two")[1] is None


def test_a_cancelled_job_is_continued_only_from_what_the_user_names(store):
    directory, _ = start(store, "one")
    complete(directory, 1)
    directory.note_cancelled()
    with pytest.raises(DirectoryInUse):  # it is still ending
        CheckpointDirectory(store, JOB).initialise(replace(Driver.this_process(), host="elsewhere"), 1)
    directory.release()
    for take_over in (False, True):
        with pytest.raises(JobWasCancelled, match=rf"job {JOB} was cancelled.*{JOB}.*execution\.state-recovery\.path"):
            opened(store, name="two", take_over=take_over)
    second = CheckpointDirectory(store, JOB)
    second.initialise(driver("two"), 1, names_start=True)
    assert second.follows_cancellation
    second.release()
    with pytest.raises(JobWasCancelled):  # the second driver ended before it started
        opened(store, name="three")
    third = CheckpointDirectory(store, JOB)
    third.initialise(driver("three"), 1, names_start=True)
    third.start_from(1)
    third.release()
    fourth, restored = start(store, "four")
    assert (fourth.follows_cancellation, restored) == (False, 1)


def test_a_damaged_note_of_a_cancelled_job_counts(store):
    directory, _ = start(store, "one")
    directory.note_cancelled()
    directory.files.replace("owner/cancelled-000001", b"noise")
    directory.release()
    with pytest.raises(JobWasCancelled):
        opened(store, name="two")


def test_after_a_cancelled_job_is_gone_its_directory_is_free(store):
    directory, _ = start(store, "one")
    complete(directory, 1)
    directory.note_cancelled()
    directory.delete_everything()
    assert start(store, "two")[1] is None


# ------------------------------------------------------------------------------------------ damage to who owns what


def test_a_bit_flipped_in_any_file_of_the_owners_never_changes_history():
    chance = random.Random(5)
    outcomes = Counter()
    for _ in range(300):
        store = MemoryFiles()
        first, _ = start(store, "one")
        complete(first, 1)
        second, _ = start(store, "two", take_over=True)
        complete(second, 2)
        late = replace(metadata(JOB_GRAPH, first.files, 7), term=1)  # abandoned: must never be restored
        first.files.publish("chk-7/_metadata", encode_metadata(late))
        name = chance.choice(first.files.list("owner"))
        data = bytearray(first.files.read(f"owner/{name}"))
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        first.files.replace(f"owner/{name}", bytes(data))
        try:
            outcomes[start(store, "three", take_over=True)[1]] += 1
        except CorruptFileError as error:
            assert f"owner/{name}" in str(error)
            outcomes["refused"] += 1
    assert set(outcomes) == {2, "refused"}


def test_metadata_of_another_job_is_not_taken_for_this_one_s(store):
    other = CheckpointDirectory(store, "f" * 32)
    other.initialise(driver("other"), 0)
    value = metadata(JOB_GRAPH, other.files, 1)
    other.complete(replace(value, job_id="f" * 32))
    mine, _ = start(store, "one")
    mine.files.publish("chk-1/_metadata", other.files.read("chk-1/_metadata"))
    with pytest.raises(CorruptFileError, match=f"found checkpoint 1 of job {'f' * 32}, expected checkpoint 1 of job"):
        mine.load(1)


def test_a_start_that_arrives_late_does_not_take_back_what_a_newer_driver_started_from(store):
    first, _ = start(store, "one")
    complete(first, 1)
    second = opened(store, name="two", take_over=True)
    found = choose_checkpoint(second)
    assert found is not None and found.restore_point.metadata.checkpoint_id == 1
    # Both sleep before their next call, the first in `complete(2)`, the second in `start_from(1)`. The first wakes up.
    late = replace(metadata(JOB_GRAPH, first.files, 2), term=1)
    first.files.publish("chk-2/_metadata", encode_metadata(late))
    assert start(store, "three", take_over=True)[1] == 2  # nobody was told of it, but it is whole, so it counts
    # Then the second driver wakes up.
    body = {"term": 2, "checkpoint_id": 1, "checkpoint_term": 1, "first_id": 2, "token": "two"}
    second.files.publish("owner/start-000002", encode_owner_file(body))
    with pytest.raises(Fenced):
        second.check_owner()
    assert start(store, "four", take_over=True)[1] == 2


# ------------------------------------------------------------------------------------------ what a driver can tell


def test_where_nobody_tells_when_a_process_started_its_existence_decides():
    observer = driver("observer", host="here")
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert not driver("living", host="here", pid=process.pid).is_gone(observer)
    assert not driver("init, which only root may signal", host="here", pid=1).is_gone(observer)
    process.communicate(b"\n")
    assert driver("ended", host="here", pid=process.pid).is_gone(observer)
    assert not driver("ended", host="there", pid=process.pid).is_gone(observer)
    for no_process in (0, -1):
        assert driver("unknown", host="here", pid=no_process).is_gone(observer)


def test_a_driver_on_another_machine_of_the_same_host_name_is_not_taken_for_dead(store):
    """Nor is one in another container: it has process ids of its own."""
    here = Driver.this_process()
    assert here.boot is not None, "Linux tells when the machine started"
    there = replace(here, pid=2**22, process_start="1", token="there", boot="another start of a kernel")
    assert not there.is_gone(here) and replace(there, boot=here.boot).is_gone(here)
    assert replace(there, boot=None).is_gone(here), "a claim of an earlier version is judged by the host name"
    owner = claim(store, there, 0)
    with pytest.raises(DirectoryInUse):
        claim(store, here, 1_000)
    owner.check()
    claim(store, here, 60_000).check()  # its lease has lapsed


def test_a_process_of_another_user_exists(monkeypatch):
    def not_permitted(pid, number):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "kill", not_permitted)  # the user of the tests may signal every process
    assert not driver("another's", host="here", pid=77).is_gone(driver("observer", host="here"))


class StaleListing(MemoryFiles):
    """Lists the owners' files as they were at some moment, as an eventually consistent storage does."""

    seen: list[str] | None = None

    def list(self, path=""):
        return super().list(path) if self.seen is None or path != "owner" else self.seen


def test_claims_that_a_stale_listing_does_not_show_are_found():
    store = StaleListing()
    claim(store, driver("one"), 0)
    store.seen = store.list("owner")
    for term in (2, 3, 4):
        assert claim(store, driver(f"driver {term}"), 0, take_over=True).term == term


def test_an_own_start_whose_answer_was_lost_is_accepted_and_another_s_is_not(store):
    owner = claim(store, driver("one"), 0)
    owner.start_from(None, 1)
    owner.start_from(None, 1)
    with pytest.raises(FileExistsError):
        owner.start_from(None, 2)


def put_start(store, term, **body):
    store.publish(f"owner/start-{term:06d}", encode_owner_file({"term": term, **body}))


def test_a_start_that_names_no_term_is_followed_to_the_driver_before(store):
    for name in ("one", "two", "three"):
        claim(store, driver(name), 0, take_over=True)
    put_start(store, 1, checkpoint_id=None)
    put_start(store, 3, checkpoint_id=4)
    history = History(store)
    assert history.holds(4, term=1)
    assert not history.holds(5, term=1)
    assert not history.holds(4, term=2)  # it claimed the directory and never started
    assert history.holds(9, term=3)


def test_before_the_oldest_known_start_a_checkpoint_counts_up_to_where_the_history_goes_on(store):
    for name in ("one", "two", "three"):
        claim(store, driver(name), 0, take_over=True)
    put_start(store, 3, checkpoint_id=6, checkpoint_term=2)
    history = History(store)
    assert history.holds(6, term=1)
    assert not history.holds(7, term=1)


def test_without_a_start_nothing_contradicts_a_checkpoint(store):
    assert History(store).holds(9, term=0)
    claim(store, driver("one"), 0)
    assert History(store).holds(9, term=1)
    assert not History(store).is_discarded(9, term=1)
    put_start(store, 1, checkpoint_id=None)
    assert History(store).holds(9, term=2), "of a driver whose start is not known here"
    assert not History(store).holds(9, term=0), "the first driver started empty"
    assert History(store).highest_id() == 0


@pytest.mark.parametrize("first_id", [1, 5])
def test_numbers_go_on_where_the_last_driver_could_have_begun(store, first_id):
    assert History(store).highest_id() == 0
    owner = claim(store, driver("one"), 0)
    assert History(store).highest_id() == 0
    owner.start_from(None, first_id)
    assert History(store).highest_id() == first_id - 1
    owner.publishing(first_id)
    owner.published(first_id)
    assert History(store).highest_id() == first_id


# ----------------------------------------------------------------------------------- without exclusive creation


class LastWriteWins(MemoryFiles):
    """A storage on which two drivers can create one file: the last one stands."""

    @property
    def exclusive(self):
        return False

    def publish(self, path, data):
        self.replace(path, data)


def exists(store, path):
    return path in [f"owner/{name}" for name in store.list("owner")]


def test_before_it_starts_a_driver_leaves_a_mark_where_two_could_have_its_term():
    for store, leaves_marks in ((LastWriteWins(), True), (MemoryFiles(), False)):
        owner = claim(store, driver("one"), 0)
        assert not exists(store, "owner/entry-000001")
        owner.start_from(None, 1)
        assert exists(store, "owner/entry-000001") is leaves_marks
        owner.publishing(5)
        assert exists(store, "owner/progress-000001") is leaves_marks
        assert History(store).publishing_id() == (5 if leaves_marks else None)
        assert History(store).newest_id() is None
        owner.published(5)
        assert History(store).newest_id() == 5


@pytest.mark.parametrize("kind", [LastWriteWins, MemoryFiles])
def test_a_driver_whose_claim_is_another_s_now_is_not_the_owner(kind):
    store = kind()
    owner = claim(store, driver("one"), 0)
    store.replace("owner/claim-000001", Claim(1, driver("two"), 0).encode())
    for action in (owner.check, lambda: owner.start_from(None, 1), lambda: owner.publishing(1)):
        with pytest.raises(Fenced):
            action()
    assert not exists(store, "owner/start-000001")


def test_a_damaged_claim_is_still_its_driver_s_where_nobody_else_can_write_it():
    store = MemoryFiles()
    owner = claim(store, driver("one"), 0)
    store.replace("owner/claim-000001", b"damaged")
    owner.check()
    store = LastWriteWins()
    owner = claim(store, driver("one"), 0)
    store.replace("owner/claim-000001", b"damaged")
    with pytest.raises(Fenced):
        owner.check()


def test_a_driver_that_finds_another_s_mark_in_its_term_takes_the_next():
    store = LastWriteWins()
    claim(store, driver("one"), 0).start_from(None, 1)
    store.delete("owner/claim-000001")  # and the second driver's claim takes its place
    assert claim(store, driver("two"), 0).term == 2


def test_a_claim_whose_answer_was_lost_is_taken_up_again():
    for store in (LastWriteWins(), MemoryFiles()):
        first = claim(store, driver("one", host="there"), 0)
        assert claim(store, driver("one", host="there"), 0).term == first.term == 1


def test_a_tombstone_counts_until_a_later_driver_has_started_from_the_checkpoint(store):
    for name in ("one", "two", "three"):
        claim(store, driver(name), 0, take_over=True)
    put_start(store, 1, checkpoint_id=None)
    assert not History(store).is_discarded(4, term=1)
    store.replace(tombstone_path(4, 1), encode_owner_file({"term": 1}))
    assert History(store).is_discarded(4, term=1)
    assert not History(store).is_discarded(5, term=1)
    put_start(store, 2, checkpoint_id=5, checkpoint_term=1)
    assert History(store).is_discarded(4, term=1), "the second driver started from another"
    put_start(store, 3, checkpoint_id=4, checkpoint_term=1)
    assert not History(store).is_discarded(4, term=1), "the third started from it, whatever the first was about to do"
    store.replace(tombstone_path(4, 3), encode_owner_file({"term": 3}))
    assert History(store).is_discarded(4, term=1)


def test_a_damaged_claim_still_takes_its_term_and_names_nobody():
    store = MemoryFiles()
    store.publish("owner/claim-000003", b"damaged")
    assert read_claim(store, 3) == Claim(3, Driver("unknown", 0, None, ""), 0)
    assert read_claim(store, 4) is None
