"""A fake object store with the weakest guarantees: no conditional puts, stale listings, slow calls.

`RemoteFiles` uses `FakeObjects` as its access. Every call runs a hook first, in which a test can end the caller, let it
sleep while others work, or make the call fail.
"""

import contextlib
import random
import threading

from ekorn.storage.remote import RemoteFiles
from ekorn.storage.retry import Patience, is_final


class FakeObjects:
    """Objects by name. Instances with the same dictionary share their objects."""

    whole_puts = True
    is_final = staticmethod(is_final)

    def __init__(self, objects=None, *, hook=lambda: None, stale=None):
        self.objects = {} if objects is None else objects
        self._hook = hook
        self._stale = stale  # a Random: listings leave out some of the names
        self.listings = 0

    def get(self, path):
        self._hook()
        if path not in self.objects:
            raise FileNotFoundError(path)
        return self.objects[path]

    def put(self, path, data):
        self._hook()
        self.objects[path] = bytes(data)

    def move(self, source, target):
        raise AssertionError("no rename on an object store")

    def size(self, path):
        self._hook()
        return len(self.objects[path]) if path in self.objects else None

    def exists(self, path):
        self._hook()
        return path in self.objects or any(name.startswith(path + "/") for name in self.objects)

    def names(self, path):
        self._hook()
        self.listings += 1
        found = {name[len(path) + 1 :].split("/")[0] for name in self.objects if name.startswith(path + "/")}
        if self._stale is not None:
            found = {name for name in sorted(found) if self._stale.random() < 0.6}
        return sorted(found)

    def remove(self, path):
        self._hook()
        if path not in self.objects:
            raise FileNotFoundError(path)
        del self.objects[path]

    def remove_tree(self, path):
        self._hook()
        for name in [n for n in self.objects if n.startswith(path + "/")]:
            del self.objects[name]

    def make_dirs(self, path):
        self._hook()


def object_store(access):
    """Return a store on fake objects that does not retry."""
    return RemoteFiles(access, "bucket/dir", "fake://bucket/dir", patience=Patience(tries=1))


class Gone(BaseException):
    """Ends an actor at its next step, as the end of its process would."""


class Stage:
    """Runs several actors, one call at a time. A seed decides which actor is next, and which one dies when."""

    def __init__(self, chance: random.Random, deaths: float = 0.0):
        self._chance = chance
        self._deaths = deaths
        self._actors = {}
        self._waiting = {}  # by name: the event that an actor waits for before its next step
        self._back = threading.Semaphore(0)
        self._doomed = set()
        self._lock = threading.Lock()

    def hook(self, name):
        """Return a function that an actor calls before each of its steps."""

        def wait_for_turn():
            go = threading.Event()
            with self._lock:
                self._waiting[name] = go
            self._back.release()
            go.wait()
            if name in self._doomed:
                raise Gone

        return wait_for_turn

    def add(self, name, action):
        """Add an actor. An exception ends it; `play` returns the exception unless it is `Gone`."""

        def run():
            with contextlib.suppress(Gone):
                try:
                    self.hook(name)()
                    action()
                except Exception as error:
                    self._actors[name] = error
            with self._lock:
                self._waiting[name] = None
            self._back.release()

        thread = threading.Thread(target=run, daemon=True)
        self._actors[name] = None
        thread.start()
        self._back.acquire()

    def play(self):
        """Run the actors until all have ended; return their errors by name."""
        stays = self._chance.choice([0.0, 0.8, 0.95, 0.99])  # how likely the last actor goes on while the others sleep
        name = ""
        while running := sorted(name for name, go in self._waiting.items() if go is not None):
            if name not in running or self._chance.random() >= stays:
                name = self._chance.choice(running)
            if self._chance.random() < self._deaths:
                self._doomed.add(name)
            go = self._waiting[name]
            go.set()
            self._back.acquire()
        return {name: error for name, error in self._actors.items() if error is not None}
