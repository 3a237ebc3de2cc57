"""List state and map state."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, MapFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor
from tests.recorded.family import recorded


@recorded()
def state_list(env):
    """List state: absent, added to, replaced, replaced by nothing, cleared."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_list_state(ListStateDescriptor("state", Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            step, argument = value
            if step == "add":
                self.state.add(argument)
            elif step == "add_all":
                self.state.add_all(argument)
            elif step == "update":
                self.state.update(argument)
            elif step == "clear":
                self.state.clear()
            yield step, argument, list(self.state.get())

    steps = [("get", 0), ("add", 1), ("add", 2), ("add_all", [3, 4]), ("add_all", []), ("update", [9]), ("add", 8),
             ("update", []), ("get", 0), ("add", 7), ("clear", 0), ("get", 0), ("add_all", [5]), ("get", 0)]
    return env.from_collection(steps).key_by(lambda x: 0).process(Steps())


@recorded(quirk="The iterable shows the later addition; a copy should be read.")
def state_list_get_before_add(env):
    """What a list state's get returned before an add, read after it."""

    class Tell(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_list_state(ListStateDescriptor("state", Types.STRING()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            found = self.state.get()
            self.state.add(value)
            yield list(found)

    return env.from_collection(["x", "y", "z"]).key_by(lambda x: 0).process(Tell())


@recorded()
def state_list_none(env):
    """None added to a list state."""

    class Store(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_list_state(ListStateDescriptor("state", Types.STRING()))

        def map(self, value):
            self.state.add(value)
            return list(self.state.get())

    return env.from_collection(["x", None, "y"]).key_by(lambda x: 0).map(Store())


@recorded()
def state_list_none_pickled(env):
    """None added to a pickled list state."""

    class Store(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_list_state(ListStateDescriptor("state", Types.PICKLED_BYTE_ARRAY()))

        def map(self, value):
            self.state.add(value)
            return list(self.state.get())

    return env.from_collection(["x", None, "y"]).key_by(lambda x: 0).map(Store())


@recorded()
def state_list_per_key(env):
    """List states of different keys are apart."""

    class Store(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_list_state(ListStateDescriptor("state", Types.INT()))

        def map(self, value):
            self.state.add(value[1])
            return value[0], list(self.state.get())

    values = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5), ("a", 6)]
    return env.from_collection(values).key_by(lambda x: x[0]).map(Store())


@recorded(quirk="What get returns is true also when it is empty.")
def state_list_truth(env):
    """The truth of what a list state's get returns, and whether it can be read twice."""

    class Tell(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_list_state(ListStateDescriptor("state", Types.STRING()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            found = self.state.get()
            yield bool(found), list(found), list(found)
            self.state.add(value)

    return env.from_collection(["x", "y", "z"]).key_by(lambda x: 0).process(Tell())


@recorded()
def state_map_changed_while_iterating(env):
    """Removing an entry of a map state while iterating over it."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.state.put("a", 1)
            self.state.put("b", 2)
            for key in self.state:
                self.state.remove(key)
            yield self.state.is_empty()

    return env.from_collection([0]).key_by(lambda x: 0).process(Steps())


@recorded()
def state_map_dict_syntax(env):
    """A map state is not a dict, but for a few operators."""

    class Store(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.state["a"] = value
            self.state["b"] = value + 1
            found = [self.state["a"], "a" in self.state, "c" in self.state, sorted(self.state)]
            del self.state["a"]
            yield [*found, "a" in self.state]

    return env.from_collection([1]).key_by(lambda x: 0).process(Store())


@recorded()
def state_map_is_empty(env):
    """Whether a map state is empty after its last entry was removed, after nothing was put, and after it was cleared."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            yield "before", self.state.is_empty(), list(self.state.items())
            step, *arguments = value
            getattr(self.state, step)(*arguments)
            yield step, self.state.is_empty(), list(self.state.items())

    steps = [("remove", "a"), ("put", "a", 1), ("remove", "a"), ("put", "b", 2), ("clear",), ("put", "c", 3)]
    return env.from_collection(steps).key_by(lambda x: 0).process(Steps())


@recorded(quirk="An absent entry that was asked for makes the state say that it is not empty.")
def state_map_is_empty_after_reads(env):
    """is_empty of a map state after its last entry was removed and absent entries were asked for."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            step, *arguments = value
            getattr(self.state, step)(*arguments)
            yield (step, self.state.is_empty(), sorted(self.state.keys()), sorted(self.state.values()),
                   sorted(self.state.items()), self.state.get("a"), self.state.contains("a"))

    steps = [("is_empty",), ("put", "a", 1), ("put", "b", 2), ("put", "a", 3), ("remove", "b"), ("remove", "b"),
             ("remove", "a"), ("put_all", [("c", 4), ("a", 5)]), ("put_all", []), ("clear",), ("remove", "a"),
             ("put", "d", 0)]
    return env.from_collection(steps).key_by(lambda x: 0).process(Steps())


@recorded()
def state_map_iteration(env):
    """Removing entries of a map state while iterating over a copy of its keys."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.state.put("a", 1)
            self.state.put("b", 2)
            yield sorted(self.state)
            for key in list(self.state.keys()):
                self.state.remove(key)
            yield self.state.is_empty()

    return env.from_collection([0]).key_by(lambda x: 0).process(Steps())


@recorded(quirk="contains says no while items shows the entry.")
def state_map_none(env):
    """None as a value of a map state."""

    class Store(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.state.put("k", value)
            yield self.state.contains("k"), self.state.get("k"), list(self.state.items()), self.state.is_empty()

    return env.from_collection([1, None, 2]).key_by(lambda x: 0).process(Store())


@recorded()
def state_map_none_key(env):
    """None as a key of a map state."""

    class Store(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.state.put(None, value)
            yield self.state.contains(None), self.state.get(None)

    return env.from_collection([1, 2]).key_by(lambda x: 0).process(Store())


@recorded()
def state_map_order(env):
    """The order in which a map state is iterated."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.state.put(value, len(value))
            yield list(self.state.keys()), list(self.state.values()), list(self.state.items())

    return env.from_collection(["zz", "b", "a", "zz", "ccc"]).key_by(lambda x: 0).process(Steps())


@recorded(quirk="Only an iterable of pairs works, the dict of the signature does not.")
def state_map_put_all_dict(env):
    """put_all with a dict, as its signature says."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.state.put_all({"a": 1, "b": 2})
            yield sorted(self.state.items())

    return env.from_collection([0]).key_by(lambda x: 0).process(Steps())


@recorded(quirk="The state then says that it is not empty.")
def state_map_put_all_nothing(env):
    """put_all of no entries into an absent map state."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.state.put_all([])
            yield self.state.is_empty(), list(self.state.items())

    return env.from_collection([0]).key_by(lambda x: 0).process(Steps())


@recorded(quirk="It raises a KeyError, whereas removing an absent entry otherwise does nothing.")
def state_map_remove_after_clear(env):
    """Removing an absent entry after a clear and a put."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.state.clear()
            self.state.put("b", 1)
            self.state.remove("a")
            yield list(self.state.items())

    return env.from_collection([0]).key_by(lambda x: 0).process(Steps())
