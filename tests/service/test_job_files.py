"""The files of a service and what they say: records, programs, its own folder, and the budget of slots."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.settings.memory_settings import job_memory
from ekorn.errors import ConfigurationError
from ekorn.service import service_folder
from ekorn.service.jobs import bundles
from ekorn.service.jobs.bundles import make_bundle, unpack
from ekorn.service.jobs.job_changes import rescaled, upgraded
from ekorn.service.jobs.job_record import JobPlan, JobRecord, decode_record, encode_record
from ekorn.service.jobs.job_store import JobStore, write_private
from ekorn.service.jobs.job_table import JobTable
from ekorn.service.jobs.slot_budget import SlotBudget
from ekorn.service.service_folder import ServiceFolder, is_locked

PROGRAM = "a" * 64 + "_job.py.zip"
PLAN = JobPlan("b" * 64 + "_next.py.zip", "next.py", ("x", "y"), {"k": "v"}, 3)
BACK = JobPlan("c" * 64 + "_back.py.zip", "back.py", (), {}, 1)


def record(number=1, **more):
    return JobRecord(f"{number:032x}", "job", PROGRAM, "job.py", **more)


# ------------------------------------------------------------------------------------------------------- records


def test_a_record_is_read_as_it_was_written():
    whole = record(arguments=("a", "b"), settings={"k": "v"}, then=PLAN, fallback=BACK, slots=2, phase="STARTED")
    for each in (record(), whole):
        assert decode_record(encode_record(each), "here") == each


def test_a_field_of_a_later_version_is_left_out():
    written = json.loads(encode_record(record()))
    assert decode_record(json.dumps({**written, "mood": "good"}).encode(), "here") == record()


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"7", b"null", b"{}", b'{"version": 1}', b'{"version": 1, "arguments": []}', b"\xff"],
)
def test_what_is_no_record_is_named(data):
    with pytest.raises(ConfigurationError, match=r"^/here/job.json does not contain a job of a service: "):
        decode_record(data, "/here/job.json")


@pytest.mark.parametrize("broken", [{"arguments": 7}, {"then": {}}, {"fallback": {"arguments": []}}])
def test_a_record_with_a_broken_part_is_named(broken):
    written = json.loads(encode_record(record()))
    with pytest.raises(ConfigurationError, match="does not contain a job"):
        decode_record(json.dumps({**written, **broken}).encode(), "here")


def test_a_record_of_another_version_is_refused():
    with pytest.raises(ConfigurationError, match="here has version 2; this service reads version 1"):
        decode_record(encode_record(record()).replace(b'"version": 1', b'"version": 2'), "here")


def test_a_job_needs_the_programs_of_its_plans_until_it_has_ended():
    changing = record(then=PLAN, fallback=BACK)
    assert changing.needed_programs == changing.named_programs == {PROGRAM, PLAN.program, BACK.program}
    ended = replace(changing, phase="ENDED")
    assert ended.needed_programs == set() and ended.named_programs == changing.named_programs
    assert record().named_programs == {PROGRAM}


def test_a_job_is_changing_while_it_has_a_plan_to_go_to_or_to_go_back_to():
    assert [each.is_changing for each in (record(), record(then=PLAN), record(fallback=PLAN))] == [False, True, True]


def test_a_record_runs_a_plan_and_tells_which():
    assert record().running(PLAN).plan == PLAN
    assert record().running(PLAN).job_id == record().job_id


def test_a_plan_is_rescaled_with_as_many_slots():
    found = rescaled(PLAN, 7)
    assert found.slots == 7
    assert found.settings == {"k": "v", options.PARALLELISM.key: "7", options.MOST_SLOTS.key: "7"}
    assert (found.program, found.arguments) == (PLAN.program, PLAN.arguments)


def test_an_upgrade_keeps_what_it_does_not_name():
    assert upgraded(PLAN, PROGRAM, None, {}) == replace(PLAN, program=PROGRAM, script="job.py")
    found = upgraded(PLAN, PROGRAM, [], {"k": "w", "l": "x"})
    assert (found.arguments, found.settings) == ((), {"k": "w", "l": "x"})


@pytest.mark.parametrize("key", [options.PARALLELISM.key, options.MOST_SLOTS.key, options.JOB_ID.key])
def test_an_upgrade_cannot_set_what_the_service_sets(key):
    with pytest.raises(ConfigurationError, match=re.escape(f"an upgrade cannot set '{key}'")):
        upgraded(PLAN, PROGRAM, None, {"k": "v", key: "1"})


# --------------------------------------------------------------------------------------------------------- files


@pytest.fixture
def store(tmp_path):
    return JobStore(str(tmp_path / "service"))


def added(store, tmp_path, text, script="job.py", at_s=None):
    file = tmp_path / "file"
    file.write_text(text)
    program = store.add_program(file, hashlib.sha256(text.encode()).hexdigest().upper(), script)
    if at_s is not None:
        os.utime(store.program(program), (at_s, at_s))
    return program


def test_only_this_user_enters_the_folders_of_a_service(store):
    for folder in (store.folder, store.folder / "jobs", store.folder / "programs"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    store.save(record())
    assert stat.S_IMODE(store.job_folder(record().job_id).stat().st_mode) == 0o700
    assert stat.S_IMODE((store.job_folder(record().job_id) / "job.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("script", ["", "a/b.py", "a b.py", "\u00e9.py", "x" * 101, "a\n"])
def test_the_name_of_a_script_is_plain(store, tmp_path, script):
    with pytest.raises(ConfigurationError, match="is not the name of a script"):
        added(store, tmp_path, "x", script)
    assert added(store, tmp_path, "x", "x" * 100)


def test_a_long_name_of_a_script_is_cut_in_the_reason(store, tmp_path):
    with pytest.raises(ConfigurationError) as refused:
        added(store, tmp_path, "x", "#" * 500)
    assert str(refused.value).count("#") == 80


def test_a_program_that_cannot_be_kept_leaves_no_draft(store, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no space")

    monkeypatch.setattr("ekorn.service.jobs.job_store.os.replace", fail)
    with pytest.raises(OSError, match="no space"):
        added(store, tmp_path, "x")
    assert list((store.folder / "programs").iterdir()) == []
    with pytest.raises(OSError, match="no space"):
        write_private(tmp_path / "private", b"x")
    assert not [each for each in os.listdir(tmp_path) if each.startswith("private")]


def test_programs_are_listed_the_newest_first_and_the_oldest_unneeded_are_dropped(store, tmp_path):
    one, two, three = (added(store, tmp_path, text, at_s=at) for text, at in (("1", 100), ("2", 300), ("3", 200)))
    (store.folder / "programs" / "stray").write_text("")
    assert [(each.id, each.uploaded_ms) for each in store.programs()] == [
        (two, 300_000),
        (three, 200_000),
        (one, 100_000),
    ]
    store.drop_programs({one}, most=1)
    assert {each.id for each in store.programs()} == {one, two}
    store.drop_programs({one}, most=0)
    assert [each.id for each in store.programs()] == [one]
    store.delete_program(one)
    store.delete_program(one)
    assert store.programs() == []


@pytest.mark.parametrize("name", ["../x", "x.zip", PROGRAM])
def test_a_program_is_found_by_its_whole_name_alone(store, name):
    (store.folder / "programs" / "x.zip").write_text("")
    assert store.program(name) is None


def test_a_program_is_unpacked_anew_for_each_start(store, tmp_path):
    (tmp_path / "job.py").write_text("first")
    bundle = make_bundle(str(tmp_path / "job.py"))
    (tmp_path / "bundle").write_bytes(bundle.data)
    found = replace(record(), program=store.add_program(tmp_path / "bundle", bundle.digest, bundle.script))
    folder = store.program_folder(found.job_id)
    folder.mkdir(parents=True)
    (folder / "stale.py").write_text("of the program before")
    assert store.unpack_program(found, 1_000) == folder / "job.py"
    assert os.listdir(folder) == ["job.py"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    store.delete_program(found.program)
    with pytest.raises(ConfigurationError, match="no longer exists"):
        store.unpack_program(found, 1_000)


def test_jobs_are_loaded_in_the_order_of_their_submission_without_those_that_cannot_be_read(store, caplog):
    for each in (record(3, submitted_ms=5), record(1, submitted_ms=5), record(2, submitted_ms=4)):
        store.save(each)
    broken = store.job_folder("broken")
    broken.mkdir()
    (broken / "job.json").write_text("{}")
    assert [int(each.job_id, 16) for each in store.load()] == [2, 1, 3]
    assert caplog.text.count("a job of the service is left out") == 1
    store.forget(record(1).job_id)
    store.forget(record(1).job_id)
    assert len(store.load()) == 2


@pytest.mark.parametrize(("written", "answers"), [(None, {}), ("no json", {}), ("[]", {}), ('{"/a": 1}', {"/a": 1})])
def test_the_last_answers_of_a_driver_are_those_it_could_write(store, written, answers):
    store.save(record())
    if written is not None:
        store.archive(record().job_id).write_text(written)
    assert store.answers(record().job_id) == answers
    store.drop_answers(record().job_id)
    store.drop_answers(record().job_id)
    assert store.answers(record().job_id) == {}


def test_what_a_killed_service_left_unfinished_is_dropped_and_nothing_else(store):
    store.save(record())
    job = store.job_folder(record().job_id)
    unfinished = [job / "check-1", store.folder / "plan-2"]
    for each in (*unfinished, job / "program", job / "savepoints"):
        (each / "inside").mkdir(parents=True)
    assert set(store.drop_unfinished()) == set(unfinished)
    assert not any(each.exists() for each in unfinished)
    assert (job / "program").exists() and (job / "savepoints").exists()
    assert store.load() == [record()]


def test_a_service_without_standbys_shares_nothing(store):
    assert (store.is_shared, store.host, store.new_run(), store.outcome(record())) == (False, "", "", None)
    assert store.watched_leader("") is None
    assert store.settings_of_drivers == {options.EXECUTIONS.key: "many"}


def test_a_table_shows_jobs_in_their_order_and_writes_what_it_saves(store):
    for number in (1, 2):
        store.save(record(number, submitted_ms=number))
    table = JobTable(store)
    table.show(record(3))
    assert [int(each.job_id, 16) for each in table.all()] == [1, 2, 3]
    assert len(store.load()) == 2, "what is only shown is not on disk"
    table.put_last(record(1).job_id)
    assert [int(each.job_id, 16) for each in table.all()] == [2, 3, 1]
    table.save(replace(record(2), why="said"))
    assert table[record(2).job_id].why == "said" and JobTable(store)[record(2).job_id].why == "said"
    table.forget(record(2).job_id)
    assert table.find(record(2).job_id) is None and JobTable(store).find(record(2).job_id) is None


# ------------------------------------------------------------------------------------------------------ programs


def zipped(path, **entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in entries.items():
            archive.writestr(name.replace("__", "/"), text)
    return path


def test_a_program_may_be_as_large_as_it_is_allowed_to_be_and_no_larger(tmp_path):
    archive = zipped(tmp_path / "a.zip", one="x" * 60, two="y" * 40)
    unpack(archive, tmp_path / "fits", 100)
    with pytest.raises(ConfigurationError, match="larger than 99 bytes"):
        unpack(archive, tmp_path / "large", 99)
    assert not (tmp_path / "large").exists()


def test_a_program_has_a_bounded_number_of_files(tmp_path, monkeypatch):
    archive = zipped(tmp_path / "a.zip", one="x", two="y")
    monkeypatch.setattr(bundles, "_MOST_FILES", 2)
    unpack(archive, tmp_path / "fits", 100)
    monkeypatch.setattr(bundles, "_MOST_FILES", 1)
    with pytest.raises(ConfigurationError, match="larger than"):
        unpack(archive, tmp_path / "many", 100)


def test_a_file_that_is_larger_than_its_header_says_is_refused(tmp_path, monkeypatch):
    archive = zipped(tmp_path / "a.zip", one="x" * 1_000)
    listed = zipfile.ZipFile.infolist

    def smaller(self):
        found = listed(self)
        found[0].file_size = 999
        return found

    monkeypatch.setattr(zipfile.ZipFile, "infolist", smaller)
    with pytest.raises(ConfigurationError, match="not an archive that can be unpacked: Bad CRC"):
        unpack(archive, tmp_path / "unpacked", 10_000)
    assert (tmp_path / "unpacked" / "one").stat().st_size <= 999


def test_folders_in_a_program_are_made_with_what_they_hold(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.mkdir("empty/inner")
        archive.mkdir("empty")
        archive.writestr("deep/er/file", "x")
        archive.writestr("deep/other", "y")
    unpack(tmp_path / "a.zip", tmp_path / "unpacked", 100)
    assert (tmp_path / "unpacked" / "empty" / "inner").is_dir()
    assert (tmp_path / "unpacked" / "deep" / "er" / "file").read_text() == "x"


def test_a_file_that_is_packed_twice_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("one", "x")
        archive.writestr("one", "y")
    with pytest.raises(FileExistsError):
        unpack(tmp_path / "a.zip", tmp_path / "unpacked", 100)


@pytest.mark.parametrize("missing", ["job.py", "more"])
def test_a_file_that_is_not_there_is_named(tmp_path, missing):
    (tmp_path / "job.py").write_text("")
    script, more = (
        (tmp_path / "none.py", []) if missing == "job.py" else (tmp_path / "job.py", [str(tmp_path / "more")])
    )
    with pytest.raises(ConfigurationError, match=r"there is no (program|file) '.*(none.py|more)'"):
        make_bundle(str(script), more)


def test_a_program_is_packed_without_hidden_and_compiled_files_and_with_what_is_named(tmp_path):
    for name in ("job.py", "pack/a.py", "pack/.hidden", "pack/.git/x", "pack/__pycache__/a.pyc", "pack/in/b.txt"):
        (tmp_path / "here" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "here" / name).write_text("")
    (tmp_path / "here" / "job.py").write_text("from pack.a import x\nfrom . import y\nimport absent, os.path")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "data").write_text("")
    bundle = make_bundle(str(tmp_path / "here" / "job.py"), [str(tmp_path / "elsewhere")])
    assert bundle.names == ("elsewhere/data", "job.py", "pack/a.py", "pack/in/b.txt")
    (tmp_path / "here" / "pack" / "a.py").write_text("syntax error here")
    assert make_bundle(str(tmp_path / "here" / "job.py")).names == ("job.py", "pack/a.py", "pack/in/b.txt")


# --------------------------------------------------------------------------------------------------- its own folder


def test_a_folder_has_one_service(tmp_path, monkeypatch):
    monkeypatch.setattr(service_folder, "_TRY_AGAIN_S", 0.0)
    path = tmp_path / "service"
    with pytest.raises(FileNotFoundError):
        is_locked(path)
    first = ServiceFolder(str(path))
    assert is_locked(path)
    with pytest.raises(ConfigurationError, match=f"a service is already running in '{path}'"):
        ServiceFolder(str(path))
    assert stat.S_IMODE((path / "lock").stat().st_mode) == 0o600
    first.announce(SimpleNamespace(address="http://a:1", token_file="/t", local_address="http://l:1"), "/c.pem")  # type: ignore[arg-type]
    assert json.loads((path / "service.json").read_bytes()) == {
        "pid": os.getpid(),
        "address": "http://a:1",
        "token_file": "/t",
        "local_address": "http://l:1",
        "certificate_file": "/c.pem",
    }
    assert first.token_file == path / "token"
    first.close()
    assert not is_locked(path) and not (path / "service.json").exists()
    second = ServiceFolder(str(path))
    second.close()


def test_a_command_that_looks_for_a_service_does_not_keep_one_from_starting(tmp_path, monkeypatch):
    ServiceFolder(str(tmp_path / "service")).close()
    looking = open(tmp_path / "service" / "lock", "rb")  # noqa: SIM115
    fcntl.flock(looking, fcntl.LOCK_SH)
    assert not is_locked(tmp_path / "service"), "others may look at the same time"
    monkeypatch.setattr(service_folder, "time", SimpleNamespace(sleep=lambda seconds: looking.close()))
    ServiceFolder(str(tmp_path / "service")).close()


# ---------------------------------------------------------------------------------------------------------- slots


def job(slots, memory_bytes=0):
    return record(slots=slots, slot_memory_bytes=memory_bytes)


def test_a_job_that_never_fits_is_refused():
    budget = SlotBudget(4, 100)
    assert budget.refusal(job(4, 25)) is None
    assert budget.refusal(job(5)) == ("it needs 5 slots, but the service has only 4 (taskmanager.numberOfTaskSlots)")
    assert budget.refusal(job(4, 26)) == (
        "it claims 104 bytes of memory, but the service has only 100 (taskmanager.memory.process.size)"
    )
    assert SlotBudget(4).refusal(job(4, 1 << 60)) is None


def test_a_slot_that_claims_no_memory_may_use_an_equal_share():
    budget = SlotBudget(4, 4 << 30)
    share = job_memory(Configuration.from_dict(budget.settings_of_slots(job(2))), {}).other
    assert share.process_bytes is not None and round(share.process_bytes / (1 << 20)) == 1024
    assert budget.settings_of_slots(job(2, 500 << 20)) == {}, "it may use what it claims"
    assert SlotBudget(4).settings_of_slots(job(2)) == {}
    for own in ("taskmanager.memory.flink.size", "taskmanager.numberOfTaskSlots"):
        assert budget.settings_of_slots(replace(job(2), settings={own: "1"})) == {}


def test_a_job_waits_for_slots_and_memory_that_others_take():
    budget = SlotBudget(4, 100)
    assert budget.obstacle(job(2, 30), [job(1, 20), job(1, 20)]) is None
    assert budget.obstacle(job(3), [job(1), job(1)]) == "it needs 3 slots, but only 2 of 4 are free"
    assert budget.obstacle(job(1), [job(3), job(3)]) == "it needs 1 slot, but only 0 of 4 are free"
    assert budget.obstacle(job(2, 31), [job(2, 20)]) == "it claims 62 bytes of memory, but only 60 of 100 are free"
    assert budget.obstacle(job(1, 1), [job(2, 60)]) == "it claims 1 bytes of memory, but only 0 of 100 are free"
    assert SlotBudget(4).obstacle(job(2, 1 << 60), [job(2, 1 << 60)]) is None


def test_a_service_that_cannot_be_opened_says_why_and_ends_with_one(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "ekorn.service.service_process"],
        input=json.dumps({"ekorn.service.dir": str(tmp_path / "s"), "rest.port": "no port"}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("ConfigurationError: ") and "no port" in done.stderr
