"""Queries at every point of a job that crashes, restarts and is rescaled are answered right or refused."""

import tempfile
import threading
from pathlib import Path
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Types
from ekorn.errors import StateNotServed, UnknownJob, UnknownQueryableState
from ekorn.testing.scripted import Crash, DriverDied, Point, Script, run_scripted
from tests.examples_by_profile import examples
from tests.queryable.programs import EveryKind, client_of, content, descriptors, environment, expected, numbers

KEYS, COUNT = 5, 40
REFUSALS = (StateNotServed, UnknownJob, UnknownQueryableState)  # the last: the functions are not open yet
ALL = {key: [n for n in range(COUNT) if n % KEYS == key] for key in range(KEYS)}


class Asking:
    """Asks for every state of every key at each point. The job stands still meanwhile, so there is one right answer."""

    def __init__(self):
        self.answers = self.refusals = 0
        self.wrong = []

    def __call__(self, point, handle):
        thread = threading.Thread(target=self._ask, args=(point, handle))
        thread.start()
        thread.join(60)

    def _ask(self, point, handle):
        if handle.queries_at is None:
            return
        try:
            with client_of(handle) as (client, job):
                found = {
                    name: client.get_kv_states(job, name, range(KEYS), Types.LONG(), descriptor)
                    for name, descriptor in descriptors().items()
                }
                stored = client.get_kv_states(
                    job, "list", range(KEYS), Types.LONG(), descriptors()["list"], consistency="checkpoint"
                )
                self._check(point, {name: future.result(30) for name, future in found.items()})
                self._check_stored(point, stored.result(30), found["list"].result(30))
        except REFUSALS:
            self.refusals += 1
        except Exception as error:
            self.wrong.append((point, error))

    def _check(self, point, found):
        self.answers += 1
        for key in range(KEYS):
            states = {name: of_keys[key] for name, of_keys in found.items()}
            if None in states.values():
                right = not any(states.values())
            else:
                seen = content(states["list"])
                right = seen == ALL[key][: len(seen)]
                right = right and {name: content(state) for name, state in states.items()} == expected(seen)
            if not right:
                self.wrong.append((point, key, states))

    def _check_stored(self, point, stored, live):
        for key in range(KEYS):
            old, new = ([] if each[key] is None else content(each[key]) for each in (stored, live))
            if old != new[: len(old)]:
                self.wrong.append((point, key, "the checkpoint is ahead", old, new))


crashes = st.builds(Crash, st.sampled_from(get_args(Point)), st.integers(1, 12))


@settings(max_examples=examples(2), deadline=None)
@given(
    parallelism=st.tuples(st.integers(1, 3), st.integers(1, 4)),
    backend=st.sampled_from(["hashmap", "rocksdb"]),
    turns=st.one_of(st.none(), st.integers(0, 99)),
    fails=st.lists(crashes, max_size=2, unique=True),
    dies=crashes,
)
def test_queries_at_any_point_of_crashes_and_rescaling_are_right_or_refused(parallelism, backend, turns, fails, dies):
    with tempfile.TemporaryDirectory() as folder:
        asking = Asking()

        def live(parallelism, script, path=None):
            env = environment(parallelism, folder, **{"ekorn__queryable-state__timeout": "20 ms"})
            numbers(env, COUNT).key_by(lambda n: n % KEYS, Types.LONG()).process(EveryKind()).uid("every")
            run_scripted(env, script, state_backend=backend, restore_path=path)

        first = Script(crashes=fails, turns=turns, passing=asking)
        live(parallelism[0], first)
        assert asking.answers, "an undisturbed moment of the job is answered"
        try:
            live(parallelism[0], Script(crashes=[dies], driver_dies=True, turns=turns, passing=asking))
        except DriverDied:
            left = sorted(Path(folder).glob("*/chk-*/_metadata"), key=lambda each: each.stat().st_mtime)
            path = str(left[-1].parent) if left else None
            live(parallelism[1], Script(turns=turns, passing=asking), path)
        assert not asking.wrong, asking.wrong[0]
