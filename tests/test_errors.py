import pickle

import pytest

from ekorn import errors
from ekorn.codegen.blame import user_error
from ekorn.errors import (
    CheckpointFailed,
    ConfigurationError,
    CorruptFileError,
    DamagedBlob,
    DatabaseError,
    EkornError,
    HttpLookupError,
    InvalidKeyError,
    JobCancelledError,
    JobExecutionError,
    NoCurrentKey,
    RecordTypeError,
    RowFilesDamaged,
    RowFilesGone,
    SlotLostError,
    SlotMemoryError,
    SpoolError,
    StateMigrationError,
    StateMigrationException,
    StateNotKeyed,
    StreamingQueryFailed,
    UnsupportedOperationError,
    UserFunctionError,
    preview,
)
from ekorn.graph.job_graph import Operator, OperatorId
from ekorn.graph.specs import MapSpec

EXAMPLES = [
    InvalidKeyError("('a', [1])", "[1]", "lists are not hashable"),
    RecordTypeError("Integer", "'a'", "expected Integer, found 'a' (str)"),
    UserFunctionError("map", "u1", 0, "5", "Traceback ...", "ZeroDivisionError", "division by zero"),
    JobExecutionError("job", "boom", "map", "u1", 0, "5", "Traceback ...", "/logs/1", 3, "fixed delay"),
    JobCancelledError("job"),
    SpoolError(1 << 20, 64 << 20, "[Errno 28] No space left on device"),
    DamagedBlob("blob 4 from subtask 0 over exchange 1", "pickle data was truncated"),
    SlotLostError(1, "exit code 9"),
    SlotMemoryError(1, "it uses 3 GiB of the 2 GiB that it may use", "taskmanager.memory.process.size"),
    StateNotKeyed("count"),
    NoCurrentKey(),
    CheckpointFailed(4, "timed out"),
    CorruptFileError("chk-1/_metadata", "version 9", "version 1"),
    DatabaseError("jdbc:sqlite:/x", "write a batch of 2 rows", "INSERT INTO t VALUES (?)", "no such table: t"),
    HttpLookupError("GET", "http://prices/tea", 503, "busy"),
    RowFilesDamaged("/rows/part-0.parquet", "3 bytes", "5 bytes"),
    RowFilesGone("/rows/part-0.parquet"),
    StreamingQueryFailed("clicks", "no such topic"),
    ConfigurationError("cannot read"),
    UnsupportedOperationError("not here"),
    StateMigrationError("changed"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling_with_its_fields_and_words(error):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert type(again) is type(error)
        assert again.args == error.args
        assert str(again) == str(error)


def test_every_error_belongs_to_one_tree():
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    classes.remove(errors.ProgramWarning)  # it is not raised
    assert len(classes) > 15
    assert all(issubclass(each, EkornError) for each in classes)


def test_every_error_is_listed_and_shown_by_the_path_that_programs_import_it_from():
    classes = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
    assert classes.keys() <= set(errors.__all__)
    wrong = [name for name, value in classes.items() if value.__module__ != "ekorn.errors"]
    assert not wrong, wrong


def test_an_error_that_a_program_derives_keeps_its_own_path():
    class OutOfStock(EkornError): ...

    assert OutOfStock.__module__ == __name__


def test_errors_are_also_the_builtin_kind_python_programs_catch():
    assert issubclass(ConfigurationError, ValueError)
    assert issubclass(InvalidKeyError, TypeError)
    assert issubclass(UnsupportedOperationError, NotImplementedError)
    assert StateMigrationException is StateMigrationError
    assert issubclass(errors.RestoreError, RuntimeError)


def test_a_preview_is_short_and_never_raises():
    class Broken:
        def __repr__(self):
            raise RuntimeError("no")

    assert len(preview("x" * 1000)) == 200
    assert preview([1]) == "[1]"
    assert "Broken" in preview(Broken())


def test_a_failed_job_names_operator_and_record_then_shows_the_users_traceback_then_the_log():
    error = JobExecutionError(
        "orders", "division by zero", "count", "u1", 1, "('a', 0)", "Traceback:\n  boom\n", "/log"
    )
    assert str(error).splitlines() == [
        "job 'orders' failed in operator 'count' (uid 'u1', subtask 1) on record ('a', 0): division by zero",
        "Traceback:",
        "  boom",
        "log: /log",
    ]


def test_a_failed_job_says_how_many_restarts_were_made():
    error = JobExecutionError("orders", "slot lost", restarts=3, restart_description="fixed delay")
    assert str(error) == "job 'orders' failed: slot lost (given up after 3 restarts; fixed delay)"


def test_a_user_exception_that_does_not_pickle_is_wrapped_as_text():
    class Unpicklable(Exception):
        def __init__(self, a, b):
            super().__init__(f"{a}{b}")
            self.hook = lambda: None

    def fails():
        raise Unpicklable("a", "b")

    with pytest.raises(Unpicklable) as caught:
        fails()
    failed = Operator(OperatorId("a1"), "u1", "map", MapSpec(fails))
    wrapped = user_error(caught.value, failed, 2, preview(("k", 1)), caught.value.__traceback__)
    again = pickle.loads(pickle.dumps(wrapped))
    assert again.operator_name == "map"
    assert again.uid == "u1"
    assert again.subtask_index == 2
    assert again.record_preview == "('k', 1)"
    assert again.original_type.endswith("Unpicklable")
    assert "def fails" not in again.traceback_text
    assert "in fails" in again.traceback_text

    job_error = JobExecutionError.from_user_error("job", again)
    assert "operator 'map' (uid 'u1', subtask 2) on record ('k', 1)" in str(job_error)
    assert "in fails" in str(job_error)


def test_a_failed_job_keeps_its_cause_in_the_process_and_drops_it_when_pickled():
    failed = errors.JobExecutionError("job", "gone")
    failed.cause = ValueError(lambda: "cannot be pickled")
    again = pickle.loads(pickle.dumps(failed))
    assert (again.cause, again.args) == (None, failed.args)


def test_the_fields_of_an_error_are_its_arguments_by_position_or_name():
    by_name = CorruptFileError(path="chk-1/_metadata", expected="version 1", found="version 9")
    assert by_name.args == ("chk-1/_metadata", "version 9", "version 1")
    assert (by_name.path, by_name.found, by_name.expected) == by_name.args
    with pytest.raises(TypeError, match="expected"):
        CorruptFileError("chk-1/_metadata", "version 9")  # type: ignore[call-arg]
    assert JobExecutionError("job", "boom").restarts == 0, "a field may have a default"


def test_an_attribute_that_is_not_passed_is_set_later():
    error = RecordTypeError("Integer", "'a'", "found a str")
    assert error.emitted_by is None
    error.emitted_by = 2
    assert (error.emitted_by, len(error.args)) == (2, 4)
