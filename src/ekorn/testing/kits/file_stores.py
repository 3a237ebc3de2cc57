"""The promises of a `FileStore`: files are whole, names are used once, and no path leaves the root.

A test of a store is a subclass of a kit with a fixture `store`, which returns an empty store:

    class TestShelf(FileStoreKit, TakesNamesOnce):
        @pytest.fixture
        def store(self):
            return Shelf()
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ekorn.errors import ConfigurationError
from ekorn.storage.file_store import FileStore
from ekorn.testing.kits.kit import Kit, for_each, promise, raised

__all__ = ["FileStoreKit", "TakesNamesOnce"]

_SIZE = 200_000
_PUBLISHERS = 8
_LEAVING = (
    "",
    "/etc/passwd",
    "..",
    "../x",
    "a/../../x",
    "a//b",
    "a/",
    "./a",
    "a/./b",
    "C:/x",
    "a\\..\\b",
    "a\0b",
    "file:///x",
)


class FileStoreKit(Kit):
    """The promises of every store."""

    def test_what_was_written_is_read_back(self, store: FileStore) -> None:
        """Write a file and look at it in every way."""
        store.write("chk-1/a", b"state")
        _equal("read", store.read("chk-1/a"), b"state")
        _equal("size", store.size("chk-1/a"), 5)
        promise(store.exists("chk-1/a"), "a file that was written does not exist")
        promise(store.exists("chk-1"), "the directory of a file does not exist")
        _equal("list('chk-1')", store.list("chk-1"), ["a"])
        _equal("list()", store.list(), ["chk-1"])

    def test_an_empty_file_is_a_file(self, store: FileStore) -> None:
        """Write no bytes."""
        store.write("a", b"")
        promise(store.exists("a"), "an empty file does not exist")
        _equal("read", store.read("a"), b"")

    def test_a_published_name_is_used_once(self, store: FileStore) -> None:
        """Publish a name twice."""
        store.publish("a", b"first")
        raised(FileExistsError, "", lambda: store.publish("a", b"second"))
        _equal("read", store.read("a"), b"first")
        _equal("list()", store.list(), ["a"])

    def test_replacing_leaves_one_file(self, store: FileStore) -> None:
        """Replace a file."""
        store.replace("alive", b"1")
        store.replace("alive", b"2")
        _equal("read", store.read("alive"), b"2")
        _equal("list()", store.list(), ["alive"])

    def test_a_reader_sees_a_replaced_file_whole(self, store: FileStore) -> None:
        """Read a file all the time while it is replaced."""
        contents = [bytes([letter]) * (_SIZE + letter) for letter in b"abcdefghij"]
        store.replace("alive", contents[0])

        def replace() -> None:
            for content in contents:
                store.replace("alive", content)

        for seen in _read_during(replace, lambda: store.read("alive")):
            promise(seen in contents, f"a reader saw {_shown(seen)}, neither the old file nor the new one")

    def test_a_reader_sees_a_published_file_whole_or_not_at_all(self, store: FileStore) -> None:
        """Read names all the time while they are published."""
        content = b"x" * _SIZE
        names = [f"claim-{number}" for number in range(10)]

        def publish() -> None:
            for name in names:
                store.publish(name, content)

        def look() -> list[bytes]:
            return [store.read(name) for name in names if store.exists(name)]

        for files in _read_during(publish, look):
            for seen in files:
                promise(seen == content, f"a reader saw {_shown(seen)}, a part of the published file")

    def test_a_missing_file_is_reported_when_read_and_fine_when_deleted(self, store: FileStore) -> None:
        """Read, measure, delete and list what does not exist."""
        promise(not store.exists("a"), "a file exists that was never written")
        raised(FileNotFoundError, "", lambda: store.read("a"))
        raised(FileNotFoundError, "", lambda: store.size("a"))
        store.delete("a")
        store.delete("no/such/a")
        store.delete_tree("no/such")
        _equal("list('no/such')", store.list("no/such"), [])
        _equal("list()", store.list(), [])

    def test_a_tree_goes_with_all_it_holds_and_nothing_else(self, store: FileStore) -> None:
        """Delete a directory beside one whose name begins alike."""
        for path in ("chk-1/a", "chk-1/deep/b", "chk-10/c"):
            store.write(path, b"x")
        store.delete_tree("chk-1")
        _equal("list()", store.list(), ["chk-10"])

    def test_made_directories_exist_and_may_be_made_again(self, store: FileStore) -> None:
        """Make a directory twice."""
        store.make_dirs("shared/deep")
        store.make_dirs("shared/deep")
        promise(store.exists("shared"), "the parent of a directory that was made does not exist")
        promise(store.exists("shared/deep"), "a directory that was made does not exist")
        _equal("list()", store.list(), ["shared"])

    def test_a_store_below_sees_the_same_files(self, store: FileStore) -> None:
        """Write below, read above, delete above."""
        below = store.below("job/chk-1")
        below.write("a", b"x")
        _equal("read", store.read("job/chk-1/a"), b"x")
        _equal("list() below", below.list(), ["a"])
        store.delete_tree("job")
        promise(not below.exists("a"), "below() still shows a file that was deleted with the directory above it")

    @for_each(path=_LEAVING)
    def test_a_path_that_could_leave_the_root_is_refused(self, store: FileStore, path: str) -> None:
        """Call every method with the path."""
        for call in (store.read, store.exists, store.delete, store.delete_tree, store.size, store.make_dirs):
            _refused(call, path)
        _refused(store.below, path)
        for write in (store.write, store.publish, store.replace):
            _refused(write, path, b"x")


class TakesNamesOnce(Kit):
    """The promises of a store whose `exclusive` is true: one of several writers wins, and the others learn it."""

    def test_a_name_is_used_once_where_the_store_looks(self, store: FileStore) -> None:
        """Write a name twice."""
        promise(store.exclusive, "exclusive is false")
        store.write("a", b"first")
        raised(FileExistsError, "", lambda: store.write("a", b"second"))
        _equal("read", store.read("a"), b"first")
        _equal("list()", store.list(), ["a"])

    def test_of_many_publishers_one_wins(self, store: FileStore) -> None:
        """Publish one name from several threads."""
        promise(store.exclusive, "exclusive is false")
        outcomes: list[int] = []

        def publish(number: int) -> None:
            try:
                store.publish("claim", b"%d" % number)
                outcomes.append(number)
            except FileExistsError:
                pass

        threads = [threading.Thread(target=publish, args=(number,), daemon=True) for number in range(_PUBLISHERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        promise(len(outcomes) == 1, f"{len(outcomes)} of {_PUBLISHERS} publishers were told that they won")
        _equal("read", store.read("claim"), b"%d" % outcomes[0])
        _equal("list()", store.list(), ["claim"])


def _read_during(write: Callable[[], None], read: Callable[[], Any]) -> list[Any]:
    """Return what a second thread reads while this one writes. What either of them raises is raised."""
    seen: list[Any] = []
    failed: list[BaseException] = []
    over = threading.Event()

    def look() -> None:
        try:
            while not over.is_set():
                seen.append(read())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        write()
    finally:
        over.set()
        thread.join()
    if failed:
        raise AssertionError(f"a reader failed while a file was written: {failed[0]!r}") from failed[0]
    return seen


def _refused(call: Callable[..., Any], *arguments: Any) -> None:
    what = f"{call.__name__}({arguments[0]!r})"
    try:
        call(*arguments)
    except ConfigurationError:
        return
    except Exception as error:
        raise AssertionError(f"{what} raises {error!r}, not ConfigurationError") from error
    raise AssertionError(f"{what} is not refused with ConfigurationError")


def _equal(what: str, found: object, wanted: object) -> None:
    promise(found == wanted, f"{what} returned {found!r}, not {wanted!r}")


def _shown(content: bytes) -> str:
    return f"{len(content)} bytes ({content[:5]!r}...)"
