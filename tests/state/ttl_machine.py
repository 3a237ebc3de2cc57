"""Expiring states against dictionaries of stamped values: every kind of state, under every configuration.

The machine draws operations, clocks that run forward and back, snapshots, and restores at another parallelism and with
another configuration.
"""

import itertools
import pickle
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ekorn.clock import ManualClock
from ekorn.common.time import Time
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.keygroups import key_group, key_group_range, subtask_of
from ekorn.state.snapshots import OperatorRestore
from ekorn.storage.memory import MemoryFiles
from tests.state.backends import heap
from tests.state.expiring import GROUPS, ONE_STAMP, TTL_MS, Target, handle_of

UPDATES = ("update_ttl_on_create_and_write", "update_ttl_on_read_and_write")
VISIBILITIES = ("never_return_expired", "return_expired_if_not_cleaned_up")
CLEANUPS = {
    "none": lambda b: b.disable_cleanup_in_background(),
    "default": lambda b: b,
    "incremental": lambda b: b.cleanup_incrementally(1, True),
    "snapshot": lambda b: b.disable_cleanup_in_background().cleanup_full_snapshot(),
    "both": lambda b: b.cleanup_incrementally(1, False).cleanup_full_snapshot(),
}
KEYS = ["a", 1, ("d", 2)]
WINDOW = (0, 10)

configs = st.fixed_dictionaries(
    {
        "ttl_ms": st.sampled_from([TTL_MS, TTL_MS, 3]),
        "update": st.sampled_from(UPDATES),
        "visibility": st.sampled_from(VISIBILITIES),
        "cleanup": st.sampled_from(list(CLEANUPS)),
    }
)
keys, entries = st.sampled_from(KEYS), st.sampled_from("pq")


class Stamped:
    """A value in the model. `maybe_gone` says that it had expired when a cleanup that may remove it could have run."""

    __slots__ = ("in_doubt", "maybe_gone", "stamp", "value")

    def __init__(self, stamp, value, *, maybe_gone=False):
        self.stamp, self.value, self.maybe_gone = stamp, value, maybe_gone
        self.in_doubt = False  # whether it is unknown if the files of a checkpoint hold it


class TtlMachine(RuleBasedStateMachine):
    """Subtasks of an operator with one state, per key or per key and window.

    The model holds for each key what is physically there, as pairs of an entry (of maps, otherwise None) and a stamped
    value: the elements of a list, the entries of a map, at most one pair for other kinds. The background cleanup may or
    may not have run since the moment it could have run; everything else is exact.
    """

    kind = ""
    backends: tuple[Any, ...] = (heap,)  # the factories of subtasks, used in turn

    def __init__(self):
        super().__init__()
        self.clock = ManualClock(1_000)
        self.store = MemoryFiles()
        self.ids = itertools.count(1)
        self.names = itertools.count()
        self.saved: Any = None  # checkpoint id, files, state infos, model
        self.model = {}
        self.subtasks = []

    @initialize(
        data=st.data(),
        config=configs,
        parallelism=st.integers(1, 3),
        windowed=st.booleans(),
        incremental=st.booleans(),
    )
    def start(self, data, config, parallelism, windowed, incremental):
        self.config, self.windowed, self.incremental = config, windowed, incremental
        self.begin(data, parallelism)

    def begin(self, data, parallelism, restored=None):
        self.teardown()
        self.parallelism = parallelism
        make = data.draw(st.sampled_from(self.backends), "backend") if len(self.backends) > 1 else self.backends[0]
        configured = CLEANUPS[self.config["cleanup"]](StateTtlConfig.new_builder(Time.milliseconds(self.ttl_ms)))
        getattr(configured, self.config["update"])()
        getattr(configured, self.config["visibility"])()
        self.subtasks = []
        for index in range(parallelism):
            groups = key_group_range(GROUPS, parallelism, index)
            backend = make(groups, self.clock, incremental=self.incremental)
            if restored is not None:
                backend.restore(restored, self.store, groups)
            states = backend.in_windows("w/") if self.windowed else backend
            self.subtasks.append((backend, groups, handle_of(states, self.kind, configured.build())))
        self.note_what_has_expired()

    def teardown(self):
        for backend, _, _ in self.subtasks:
            backend.close()

    # ------------------------------------------------------------------------------------------------- the model

    @property
    def now(self):
        return self.clock.now_ms()

    @property
    def ttl_ms(self):
        return self.config["ttl_ms"]

    @property
    def shows_expired(self):
        return self.config["visibility"] == "return_expired_if_not_cleaned_up"

    @property
    def restamps(self):
        return self.config["update"] == "update_ttl_on_read_and_write"

    def expired(self, stamped):
        return stamped.stamp + self.ttl_ms <= self.now

    def note_what_has_expired(self):
        if self.config["cleanup"] in ("default", "incremental", "both"):
            for parts in self.model.values():
                for _, stamped in parts:
                    stamped.maybe_gone |= self.expired(stamped)

    def at(self, key):
        """Return the handle after making this key the current one, as a record would."""
        backend, _, handle = self.subtask_of(key)
        backend.cell[0] = key
        backend.window_cell[0] = (key, WINDOW)
        for clean_up in backend.every_record:
            clean_up()
        return handle

    def subtask_of(self, key):
        return self.subtasks[subtask_of(key_group(key, GROUPS), GROUPS, self.parallelism)]

    def parts(self, key):
        return self.model.get(key, [])

    def stamped(self, *values):
        return [(None, Stamped(self.now, value)) for value in values]

    def fresh(self):
        return f"v{next(self.names)}"

    # ------------------------------------------------------------------------------------------------------ time

    @rule(millis=st.sampled_from([1, 3, 5, 9, 10, 15]))
    def time_passes(self, millis):
        self.clock.advance(millis)
        self.note_what_has_expired()

    @rule()
    def an_epoch_ends(self):
        for backend, _, _ in self.subtasks:
            backend.end_epoch()

    @rule(millis=st.sampled_from([1, 5, 12]))
    def the_clock_is_set_back(self, millis):
        self.clock.set_ms(self.now - millis)

    # ---------------------------------------------------------------------------------------------------- writes

    @rule(key=keys)
    def clear(self, key):
        self.at(key).clear()
        self.model[key] = []

    @rule(data=st.data(), key=keys)
    def write(self, data, key):
        handle, before = self.at(key), self.parts(key)
        if self.kind == "value":
            value = self.fresh()
            handle.update(value)
            self.model[key] = self.stamped(value)
        elif self.kind == "list":
            call = data.draw(st.sampled_from(["add", "add_all", "update"]))
            values = [self.fresh() for _ in range(1 if call == "add" else data.draw(st.integers(0, 2)))]
            getattr(handle, call)(values[0] if call == "add" else values)
            self.model[key] = ([] if call == "update" else before) + self.stamped(*values)
        elif self.kind == "map":
            self.write_map(data, key, handle)
        else:
            self.grow(key, handle, before)

    def write_map(self, data, key, handle):
        parts = dict(self.parts(key))
        match data.draw(st.sampled_from(["put", "put_all", "remove"])):
            case "put":
                entry, value = data.draw(entries), self.fresh()
                handle.put(entry, value)
                parts[entry] = Stamped(self.now, value)
            case "put_all":
                values = {entry: self.fresh() for entry in sorted(data.draw(st.sets(entries)))}
                handle.put_all(values)
                parts |= {entry: Stamped(self.now, value) for entry, value in values.items()}
            case "remove":
                entry = data.draw(entries)
                handle.remove(entry)
                parts.pop(entry, None)
        self.model[key] = list(parts.items())

    def grow(self, key, handle, before):
        value = self.fresh()
        handle.add(value)
        whole = [value]
        for _, stamped in before:
            if self.shows_expired or not self.expired(stamped):
                whole = [f"{stamped.value}+{value}", *([value] if stamped.maybe_gone else [])]
        ((_, stamp, found),) = self.physical(key)
        assert stamp == self.now
        assert found in whole
        self.model[key] = self.stamped(found)

    # ----------------------------------------------------------------------------------------------------- reads

    @rule(data=st.data(), key=keys)
    def read(self, data, key):
        handle = self.at(key)
        if self.kind == "map":
            self.read_map(data, key, handle)
        elif self.kind == "list":
            self.saw(key, [(None, value) for value in handle.get()])
        else:
            found = handle.value() if self.kind == "value" else handle.get()
            self.saw(key, [] if found is None else [(None, found)])

    def read_map(self, data, key, handle):
        values = {entry: stamped.value for entry, stamped in self.parts(key)}
        match data.draw(st.sampled_from(["items", "keys", "values", "get", "contains", "is_empty"])):
            case "items":
                self.saw(key, list(handle.items()))
            case "keys":
                self.saw(key, [(entry, values[entry]) for entry in list(handle.keys())])
            case "values":
                of = {value: entry for entry, value in values.items()}
                self.saw(key, [(of[value], value) for value in handle.values()])
            case "get":
                entry = data.draw(entries)
                found = handle.get(entry)
                self.saw(key, [] if found is None else [(entry, found)], entry)
            case "contains":
                entry = data.draw(entries)
                self.saw(key, [(entry, values[entry])] if handle.contains(entry) else [], entry)
            case "is_empty":
                parts = [stamped for _, stamped in self.parts(key)]
                if handle.is_empty():
                    assert all(stamped.maybe_gone for stamped in parts)
                    self.model[key] = []
                else:
                    assert parts

    def saw(self, key, found, only=None):
        """Compare what a read of all parts, or of one entry, returned with the model, and update the model."""
        read = [(e, s) for e, s in self.parts(key) if only in (None, e)]
        showable = [(e, s) for e, s in read if self.shows_expired or not self.expired(s)]
        assert self.ordered([(e, s.value) for e, s in showable if (e, s.value) in found]) == self.ordered(found)
        assert all((e, s.value) in found for e, s in showable if not s.maybe_gone), (key, found)
        alive = [s for e, s in read if (e, s.value) in found and not self.expired(s)]
        for stamped in alive:
            stamped.maybe_gone = False  # the read has just returned it
            if self.restamps:
                stamped.stamp = self.now
        # A list drops its expired elements if none is alive or when it is rewritten. Until then they stay.
        stays = [s for _, s in read if self.expired(s)] if self.kind == "list" and alive and not self.restamps else []
        untouched = [s for e, s in self.parts(key) if only not in (None, e)]
        self.model[key] = [(e, s) for e, s in self.parts(key) if s in alive or s in stays or s in untouched]
        self.note_what_has_expired()

    # ------------------------------------------------------------------------------------- snapshots and restores

    @rule(completes=st.sampled_from([True, True, False]))
    def snapshot(self, completes):
        checkpoint_id = next(self.ids)
        files = []
        for backend, groups, _ in self.subtasks:
            captured = backend.snapshot(checkpoint_id)
            captured.key_groups = groups
            files.append(captured.write(Target(self.store)))
        if not completes:
            return
        for backend, _, _ in self.subtasks:
            backend.snapshot_completed(checkpoint_id)
        leaves_out = self.config["cleanup"] in ("snapshot", "both")
        model = {}
        for key, parts in self.model.items():
            for _, stamped in parts:
                # Expired entries are in no file written from now on, but perhaps in an earlier file of the chain.
                stamped.in_doubt = stamped.in_doubt or (leaves_out and self.expired(stamped))
            model[key] = [(e, s.stamp, s.value, s.maybe_gone or s.in_doubt) for e, s in parts]
            if leaves_out and not self.incremental:
                model[key] = [p for p, (_, s) in zip(model[key], parts, strict=True) if not self.expired(s)]
        self.saved = (checkpoint_id, tuple(files), self.subtasks[0][0].infos(), model)

    @precondition(lambda self: self.saved is not None)
    @rule(
        data=st.data(),
        parallelism=st.integers(1, 3),
        changed=st.one_of(st.none(), configs),
        down_ms=st.sampled_from([0, 0, 9]),
    )
    def restore(self, data, parallelism, changed, down_ms):
        """Restore after a while, at another parallelism and perhaps with another configuration."""
        self.clock.advance(down_ms)
        self.config = changed or self.config
        checkpoint_id, files, infos, model = self.saved
        self.model = {
            key: [(entry, Stamped(stamp, value, maybe_gone=doubt)) for entry, stamp, value, doubt in parts]
            for key, parts in model.items()
        }
        self.begin(data, parallelism, OperatorRestore("operator", files, (), infos, checkpoint_id, GROUPS))

    # ------------------------------------------------------------------------------------------------- comparing

    @invariant()
    def the_tables_hold_what_the_model_holds(self):
        for key in KEYS if self.subtasks else ():
            found = self.physical(key)
            known = [(entry, s.stamp, s.value) for entry, s in self.parts(key)]
            sure = [(entry, s.stamp, s.value) for entry, s in self.parts(key) if not s.maybe_gone]
            assert self.ordered([part for part in known if part in found]) == self.ordered(found), (key, known)
            assert all(part in found for part in sure), (key, found, sure)

    def ordered(self, parts):
        """Ignore the order of a map's entries, which is not specified and changes when an entry comes back."""
        return sorted(parts) if self.kind == "map" else parts

    def physical(self, key):
        """Return what the table holds for a key, without reading the state: (entry, stamp, value) of each part."""
        entries = dict(self.subtask_of(key)[0].entries(f"w/{self.kind}" if self.windowed else self.kind))
        kept = entries.get((key, WINDOW) if self.windowed else key, {})
        if self.kind == "map":
            return [(entry, stamp, value) for entry, (stamp, value) in kept.items()]
        if self.kind in ONE_STAMP:
            kept = [kept] if kept else []
        if self.kind == "aggregating":
            kept = [(stamp, "+".join(pickle.loads(value))) for stamp, value in kept]
        return [(None, stamp, value) for stamp, value in kept]
