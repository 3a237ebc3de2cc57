"""A machine that holds keyed state backends against plain dictionaries.

It draws operations, snapshots, aborts, restores and rescalings. `test_keyed_backends.py` runs it on the heap,
`test_backends_machine.py` on RocksDB and with a change of the backend.
"""

import copy
import itertools
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ekorn.functions.record_functions import AggregateFunction
from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from ekorn.keygroups import key_group, key_group_range, state_key, subtask_of, user_key
from ekorn.state.canonical_format import PAYLOAD_BYTES
from ekorn.state.snapshots import OperatorRestore
from ekorn.state.state_files import write_state
from ekorn.storage.memory import MemoryFiles
from tests.state.backends import GROUPS

KEYS = ["a", 1, 1.0, ((1, 2.0), "n")]

plain = st.one_of(st.integers(-5, 5), st.text("ab", max_size=2), st.floats(allow_nan=False, width=16), st.booleans())
changeable = st.one_of(st.lists(plain, max_size=3), st.dictionaries(st.sampled_from("xyz"), plain, max_size=2))
values = st.one_of(plain, changeable, st.tuples(plain, changeable))


def spoil(value):
    """Change an object in every possible way; the state must not change with it."""
    if isinstance(value, list):
        value.append("spoiled")
    elif isinstance(value, dict):
        value["spoiled"] = True
    elif isinstance(value, tuple):
        for each in value:
            spoil(each)


class Collect(AggregateFunction):
    """An aggregate whose accumulator is changed in place."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(copy.deepcopy(value))
        return accumulator

    def get_result(self, accumulator):
        return tuple(map(repr, accumulator))

    def merge(self, a, b):
        return a + b


DESCRIPTORS = {
    "value": ValueStateDescriptor("value"),
    "default": ValueStateDescriptor("default", None, ["none yet"]),
    "list": ListStateDescriptor("list"),
    "map": MapStateDescriptor("map"),
    "reducing": ReducingStateDescriptor("reducing", lambda a, b: [*a, *b]),
    "aggregating": AggregatingStateDescriptor("aggregating", Collect(), None),
    "folding": FoldingStateDescriptor("folding", {"seen": []}, lambda acc, v: {"seen": [*acc["seen"], repr(v)]}),
}
TIMERS = "timers"
"""The timers in the model: {(key, window or None, time)}."""

timer_keys = st.one_of(st.sampled_from(KEYS), st.integers(0, 20), st.text("xyz", max_size=2))
windows = st.sampled_from([None, None, (0, 10), ("left", -3)])
times = st.integers(0, 12)


def empty_model():
    return {name: {} for name in DESCRIPTORS} | {TIMERS: set()}


class Target:
    """The target of one subtask's snapshot."""

    names = itertools.count()
    payload_bytes = PAYLOAD_BYTES

    def __init__(self, store):
        self.store, self.bytes_written, self.created = store, 0, []

    def shared(self, label):
        return f"shared/{label}-{next(self.names)}"

    exclusive = shared

    def write(self, path, payload):
        self.bytes_written += len(payload)
        self.created.append(path)
        return write_state(self.store, path, payload, 0)


class Subtask:
    """A backend and its handles, created as an operator creates them in `open`."""

    def __init__(self, make, groups, restored=None, store=None):
        self.groups = groups
        self.backend = make(groups)
        if restored is not None:
            self.backend.restore(restored, store, groups)
        self.handles = {
            "value": self.backend.state(DESCRIPTORS["value"]),
            "default": self.backend.state(DESCRIPTORS["default"]),
            "list": self.backend.state(DESCRIPTORS["list"]),
            "map": self.backend.state(DESCRIPTORS["map"]),
            "reducing": self.backend.state(DESCRIPTORS["reducing"]),
            "aggregating": self.backend.state(DESCRIPTORS["aggregating"]),
            "folding": self.backend.state(DESCRIPTORS["folding"]),
        }
        self.of_keys = self.backend.timers("_timers/event", windowed=False)
        self.of_windows = self.backend.timers("_window/timers/event", windowed=True)

    def capture(self, checkpoint_id):
        captured = self.backend.snapshot(checkpoint_id)
        captured.key_groups = self.groups
        return captured

    def capture_full(self, checkpoint_id, *, native):
        take = self.backend.native_snapshot if native else self.backend.full_snapshot
        captured = take(checkpoint_id)
        captured.key_groups = self.groups
        return captured


OPERATIONS: list[str] = []


def operation(**strategies):
    """Mark an operation of a function on its state, with drawn arguments."""

    def enter(method):
        OPERATIONS.append(method.__name__)
        method.strategies = strategies
        return method

    return enter


class KeyedBackendMachine(RuleBasedStateMachine):
    """An operator with some subtasks. The model holds for each state what a dictionary would."""

    backends: tuple[Any, ...] = ()  # the factories of subtasks, used in turn

    def __init__(self):
        super().__init__()
        self.store = MemoryFiles()
        self.ids = itertools.count(1)
        self.pending = []  # [checkpoint id, captured parts, model at the capture, files or None, created paths]
        self.completed: Any = None  # (checkpoint id, parts, model)
        self.infos = ()
        self.model = empty_model()

    @initialize(data=st.data(), parallelism=st.integers(1, 4))
    def start(self, data, parallelism):
        self.begin(data, parallelism)

    def begin(self, data, parallelism, restored=None, store=None):
        self.parallelism = parallelism
        make = data.draw(st.sampled_from(self.backends), "backend") if len(self.backends) > 1 else self.backends[0]
        ranges = [key_group_range(GROUPS, parallelism, index) for index in range(parallelism)]
        self.subtasks = [Subtask(make, groups, restored, store or self.store) for groups in ranges]

    def close(self):
        for subtask in getattr(self, "subtasks", ()):
            subtask.backend.close()

    def teardown(self):
        self.close()

    def at(self, key, state):
        """Return the handle of a state after making this key the current one."""
        subtask = self.subtasks[subtask_of(key_group(key, GROUPS), GROUPS, self.parallelism)]
        subtask.backend.cell[0] = state_key(key)
        return subtask.handles[state]

    def put(self, state, key, value):
        self.model[state][repr(key)] = copy.deepcopy(value)

    # ------------------------------------------------------------------------------------------------ operations

    @rule(data=st.data(), names=st.lists(st.sampled_from(OPERATIONS), min_size=3, max_size=12))
    def operate(self, data, names):
        """Apply many operations to few keys in one rule, so that a snapshot finds changed, removed and unchanged keys.

        With a rule for each operation, a backend that dropped the changes of an aborted snapshot passed the test.
        """
        for name in names:
            method = getattr(self, name)
            method(**{argument: data.draw(strategy, argument) for argument, strategy in method.strategies.items()})

    @operation(state=st.sampled_from(["value", "default"]), key=st.sampled_from(KEYS), value=values)
    def update(self, state, key, value):
        self.put(state, key, value)
        self.at(key, state).update(value)
        spoil(value)

    @operation(state=st.sampled_from(["value", "default"]), key=st.sampled_from(KEYS))
    def update_with_none(self, state, key):
        self.at(key, state).update(None)
        self.model[state].pop(repr(key), None)

    @operation(state=st.sampled_from(list(DESCRIPTORS)), key=st.sampled_from(KEYS))
    def clear(self, state, key):
        self.at(key, state).clear()
        self.model[state].pop(repr(key), None)

    @operation(key=st.sampled_from(KEYS), value=values)
    def list_add(self, key, value):
        self.put("list", key, [*self.model["list"].get(repr(key), []), value])
        self.at(key, "list").add(value)
        spoil(value)

    @operation(key=st.sampled_from(KEYS), added=st.lists(values, max_size=3))
    def list_add_all(self, key, added):
        together = [*self.model["list"].get(repr(key), []), *added]
        if together:
            self.put("list", key, together)
        self.at(key, "list").add_all(added)
        spoil(added)

    @operation(key=st.sampled_from(KEYS), new=st.lists(values, max_size=3))
    def list_update(self, key, new):
        self.model["list"].pop(repr(key), None)
        if new:
            self.put("list", key, new)
        self.at(key, "list").update(new)
        spoil(new)

    @operation(key=st.sampled_from(KEYS), entry=st.sampled_from("pqr"), value=st.one_of(st.none(), values))
    def map_put(self, key, entry, value):
        self.put("map", key, self.model["map"].get(repr(key), {}) | {entry: value})
        self.at(key, "map").put(entry, value)
        spoil(value)

    @operation(key=st.sampled_from(KEYS), entries=st.dictionaries(st.sampled_from("pqr"), values, max_size=3))
    def map_put_all(self, key, entries):
        together = self.model["map"].get(repr(key), {}) | entries
        if together:
            self.put("map", key, together)
        self.at(key, "map").put_all(entries)
        spoil(entries)

    @operation(key=st.sampled_from(KEYS), entry=st.sampled_from("pqr"))
    def map_remove(self, key, entry):
        self.at(key, "map").remove(entry)
        entries = self.model["map"].get(repr(key), {})
        entries.pop(entry, None)
        if not entries:
            self.model["map"].pop(repr(key), None)

    @operation(key=st.sampled_from(KEYS), value=st.lists(plain, max_size=2))
    def reducing_add(self, key, value):
        self.put("reducing", key, [*self.model["reducing"].get(repr(key), []), *value])
        self.at(key, "reducing").add(value)
        spoil(value)

    @operation(state=st.sampled_from(["aggregating", "folding"]), key=st.sampled_from(KEYS), value=values)
    def collect(self, state, key, value):
        self.put(state, key, [*self.model[state].get(repr(key), []), repr(value)])
        self.at(key, state).add(value)
        spoil(value)

    # ---------------------------------------------------------------------------------------------------- timers

    def timers_of(self, key, window):
        """Return the timers that a timer of a key belongs to, and its entry."""
        subtask = self.subtasks[subtask_of(key_group(key, GROUPS), GROUPS, self.parallelism)]
        if window is None:
            return subtask.of_keys, state_key(key)
        return subtask.of_windows, (state_key(key), window)

    def add_timer(self, key, window, time):
        timers, entry = self.timers_of(key, window)
        timers.add(entry, time)
        self.model[TIMERS].add((repr(key), window, time))

    def remove_timer(self, key, window, time):
        timers, entry = self.timers_of(key, window)
        timers.remove(entry, time)
        self.model[TIMERS].discard((repr(key), window, time))

    @operation(some=st.lists(st.tuples(timer_keys, windows, times), max_size=8))
    def add_timers(self, some):
        for timer in some:
            self.add_timer(*timer)

    @operation(some=st.lists(st.tuples(timer_keys, windows, times), max_size=8))
    def remove_timers(self, some):
        for timer in some:
            self.remove_timer(*timer)

    @operation(count=st.integers(20, 60), window=windows, first=times, step=st.sampled_from([0, 1, 5]))
    def add_many_timers(self, count, window, first, step):
        for number in range(count):
            self.add_timer(number, window, (first + number * step) % 13)

    @operation(count=st.integers(20, 60), window=windows, first=times, step=st.sampled_from([0, 1, 5]))
    def remove_many_timers(self, count, window, first, step):
        for number in range(count):
            self.remove_timer(number, window, (first + number * step) % 13)

    @operation(limit=times)
    def fire_timers(self, limit):
        """Fire timers up to a time. Some register another one, some delete another one."""
        found = []
        for subtask in self.subtasks:
            for timers, windowed in ((subtask.of_keys, False), (subtask.of_windows, True)):
                fired = []

                def call(entry, time, timers=timers, fired=fired, windowed=windowed):
                    key, window = entry if windowed else (entry, None)
                    fired.append((repr(user_key(key)), window, time))
                    if time % 4 == 0:
                        timers.add(entry, time + 3)
                    if time % 3 == 0:
                        timers.remove(entry, time + 1)

                timers.fire(limit, call, relief=itertools.repeat(True))
                assert [time for *_, time in fired] == sorted(time for *_, time in fired)
                found += fired
        expected = []
        while due := sorted((t for t in self.model[TIMERS] if t[2] <= limit), key=lambda t: t[2])[:1]:
            ((key, window, time),) = due
            expected += due
            self.model[TIMERS].discard(due[0])
            if time % 4 == 0:
                self.model[TIMERS].add((key, window, time + 3))
            if time % 3 == 0:
                self.model[TIMERS].discard((key, window, time + 1))
        assert sorted(map(repr, found)) == sorted(map(repr, expected))

    # ------------------------------------------------------------------------------------- snapshots and restores

    @rule()
    def checkpoint(self):
        self.snapshot()
        self.finish(len(self.pending) - 1)

    @rule()
    def snapshot(self):
        checkpoint_id = next(self.ids)
        parts = [subtask.capture(checkpoint_id) for subtask in self.subtasks]
        self.infos = self.subtasks[0].backend.infos()
        self.pending.append([checkpoint_id, parts, copy.deepcopy(self.model), None, []])

    def write(self, pending):
        if pending[3] is None:
            targets = [Target(self.store) for _ in pending[1]]
            pending[3] = tuple(part.write(target) for part, target in zip(pending[1], targets, strict=True))
            pending[4] = [path for target in targets for path in target.created]

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def write_one(self, data):
        self.write(data.draw(st.sampled_from(self.pending)))

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def complete(self, data):
        self.finish(data.draw(st.integers(0, len(self.pending) - 1)))

    def finish(self, number):
        """Complete a snapshot, which subsumes older ones, and delete the files that no snapshot refers to."""
        done = self.pending[number]
        self.write(done)
        for subtask in self.subtasks:
            subtask.backend.snapshot_completed(done[0])
        subsumed, self.pending = self.pending[:number], self.pending[number + 1 :]
        self.completed = (done[0], done[3], done[2])
        for older in subsumed:
            self.discard(older)
        self.delete_unreferenced()

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def abort(self, data):
        given_up = data.draw(st.sampled_from(self.pending))
        self.pending.remove(given_up)
        self.discard(given_up)

    def discard(self, pending):
        keep = {file.path for part in (self.completed or (0, ()))[1] for file in part.files}
        for path in pending[4]:
            if path not in keep:
                self.store.delete(path)

    def delete_unreferenced(self):
        keep = {file.path for part in self.completed[1] for file in part.files}
        keep |= {path for pending in self.pending for path in pending[4]}
        # A pending snapshot may build on files of the checkpoint that was the newest when it was captured.
        keep |= {f.path for pending in self.pending for part in pending[3] or () for f in part.files}
        unwritten = [pending for pending in self.pending if pending[3] is None]
        if not unwritten:
            for name in self.store.list("shared"):
                if f"shared/{name}" not in keep:
                    self.store.delete(f"shared/{name}")

    @rule(data=st.data(), parallelism=st.integers(1, 4))
    def restore(self, data, parallelism):
        self.pending.clear()
        self.close()
        if self.completed is None:
            self.model = empty_model()
            self.begin(data, parallelism)
            return
        checkpoint_id, parts, model = self.completed
        self.model = copy.deepcopy(model)
        restored = OperatorRestore(
            "operator", keyed=parts, states=self.infos, restored_checkpoint_id=checkpoint_id, max_parallelism=GROUPS
        )
        self.begin(data, parallelism, restored)

    @rule(data=st.data(), parallelism=st.integers(1, 4), native=st.booleans())
    def savepoint(self, data, parallelism, native):
        """Check that a full snapshot refers to no other file, holds the state at its capture, and changes nothing."""
        checkpoint_id, store, model = next(self.ids), MemoryFiles(), copy.deepcopy(self.model)
        captured = [s.capture_full(checkpoint_id, native=native) for s in self.subtasks]
        infos = self.subtasks[0].backend.infos()
        self.operate(data, data.draw(st.lists(st.sampled_from(OPERATIONS), max_size=4)))
        parts = tuple(c.write(Target(store)) for c in captured)
        running = self.subtasks, self.parallelism, self.model
        self.model = model
        self.begin(data, parallelism, OperatorRestore("operator", parts, (), infos, checkpoint_id, GROUPS), store)
        self.every_state_of_every_key_is_as_in_the_model()
        self.exactly_the_keys_with_an_entry_are_listed()
        assert self.all_timers() == model[TIMERS]
        self.close()
        self.subtasks, self.parallelism, self.model = running

    # -------------------------------------------------------------------------------------------------- comparing

    @invariant()
    def every_state_of_every_key_is_as_in_the_model(self):
        if not hasattr(self, "subtasks"):
            return
        for key in KEYS:
            for state in DESCRIPTORS:
                model = self.model[state]
                found, expected = self.read(key, state), self.shown(state, model.get(repr(key)))
                if state == "map":  # the order of a map's entries is not specified
                    found, expected = sorted(found.items()), sorted(expected.items())
                assert repr(found) == repr(expected), (key, state)

    @invariant()
    def exactly_the_keys_with_an_entry_are_listed(self):
        for state in DESCRIPTORS if hasattr(self, "subtasks") else ():
            model = self.model[state]
            listed = [repr(key) for subtask in self.subtasks for key in subtask.backend.keys(state)]
            assert sorted(listed) == sorted(model)

    @invariant()
    def the_next_timer_is_as_in_the_model(self):
        if hasattr(self, "subtasks"):
            all_next = [timers.next_ms() for s in self.subtasks for timers in (s.of_keys, s.of_windows)]
            found = min((time for time in all_next if time is not None), default=None)
            assert found == min((time for *_, time in self.model[TIMERS]), default=None)

    def all_timers(self):
        """Return all timers in the form of the model. This writes them to RocksDB, so it is not an invariant."""
        found = [(repr(user_key(key)), None, time) for s in self.subtasks for key, time in s.of_keys.timers()]
        found += [
            (repr(user_key(key)), window, time) for s in self.subtasks for (key, window), time in s.of_windows.timers()
        ]
        assert len(found) == len(set(found))
        return set(found)

    @rule()
    def exactly_the_timers_of_the_model_are_there(self):
        assert self.all_timers() == self.model[TIMERS]

    def read(self, key, state):
        handle = self.at(key, state)
        if state in ("value", "default"):
            found = handle.value()
        elif state == "map":
            found = dict(handle.items())
            assert handle.is_empty() is (not found)
            assert list(handle.keys()) == list(found)
            assert [handle.get(entry) for entry in found] == list(found.values()) == list(handle.values())
            assert all(handle.contains(entry) is (entry in found) for entry in "pqr")
        elif state == "list":
            found = list(handle.get())
        else:
            found = handle.get()
        shown = copy.deepcopy(found)
        spoil(found)
        return shown

    @staticmethod
    def shown(state, expected):
        if expected is None:
            return {"default": ["none yet"], "list": [], "map": {}}.get(state)
        match state:
            case "aggregating":
                return tuple(expected)
            case "folding":
                return {"seen": expected}
            case _:
                return expected


TIMER_OPERATIONS = [name for name in OPERATIONS if name.endswith("timers")]


class TimerMachine(KeyedBackendMachine):
    """A machine with timers alone, and so with many more of them."""

    @rule(data=st.data(), names=st.lists(st.sampled_from(TIMER_OPERATIONS), min_size=5, max_size=20))
    def operate(self, data, names):
        for name in names:
            method = getattr(self, name)
            method(**{argument: data.draw(strategy, argument) for argument, strategy in method.strategies.items()})

    def every_state_of_every_key_is_as_in_the_model(self):
        """Do nothing: there is no other state."""

    def exactly_the_keys_with_an_entry_are_listed(self):
        """Do nothing: there is no other state."""
