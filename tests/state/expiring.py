"""Helpers for the tests of expiring states: one descriptor of each kind, and a target of snapshots."""

import itertools

from ekorn.functions.record_functions import AggregateFunction
from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from ekorn.state.canonical_format import PAYLOAD_BYTES
from ekorn.state.state_files import write_state

TTL_MS = 10
GROUPS = 16


class Joined(AggregateFunction):
    """An aggregate whose accumulator is a list that is changed in place."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator):
        return "+".join(accumulator)

    def merge(self, a, b):
        return a + b


KINDS = ("value", "list", "map", "reducing", "aggregating", "folding")
ONE_STAMP = ("value", "reducing", "aggregating", "folding")
GROWING = ("reducing", "aggregating", "folding")


def descriptor_of(kind, config, name=None):
    name = name or kind
    descriptor = {
        "value": lambda: ValueStateDescriptor(name, None, "default"),
        "list": lambda: ListStateDescriptor(name),
        "map": lambda: MapStateDescriptor(name),
        "reducing": lambda: ReducingStateDescriptor(name, lambda a, b: f"{a}+{b}"),
        "aggregating": lambda: AggregatingStateDescriptor(name, Joined(), None),
        "folding": lambda: FoldingStateDescriptor(name, "", lambda so_far, v: f"{so_far}+{v}" if so_far else v),
    }[kind]()
    if config is not None:
        descriptor.enable_time_to_live(config)
    return descriptor


def handle_of(states, kind, config, name=None):
    return states.state(descriptor_of(kind, config, name))


class Target:
    names = itertools.count()
    payload_bytes = PAYLOAD_BYTES

    def __init__(self, store):
        self.store, self.bytes_written = store, 0

    def shared(self, label):
        return f"shared/{label}-{next(self.names)}"

    exclusive = shared

    def write(self, path, payload):
        return write_state(self.store, path, payload, 0)
