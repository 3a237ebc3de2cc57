"""The adapter to `pyarrow.fs`: S3, Google Cloud Storage, Azure and HDFS. The package is optional."""

from __future__ import annotations

import errno
import os
import shutil
from typing import Any, BinaryIO, cast
from urllib.parse import quote, unquote

from ekorn.extras import load
from ekorn.storage import retry, steady_object
from ekorn.storage.access import FileEntry, OpenedDirectory
from ekorn.storage.locations import options_of, scheme_of, shown

__all__ = ["ArrowAccess", "open_arrow"]

# pyarrow's names of the schemes that it opens.
_RENAMED = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_TREES = frozenset({"hdfs", "viewfs"})

# pyarrow raises a plain `OSError` without errno for every error of the AWS SDK: the code of the error exists only in
# the text ("AWS Error ACCESS_DENIED during PutObject operation: ...", arrow/filesystem/s3_internal.h, ErrorToStatus).
# "allow_bucket_creation" is the option that pyarrow's error about a missing bucket names.
_FINAL_WORDS = ("allow_bucket_creation", "ACCESS_DENIED", "NO_SUCH_BUCKET", "INVALID_ACCESS_KEY", "SIGNATURE_DOES_NOT")

_COPY_BYTES = 8 << 20
_READS = 20  # of an object that is replaced while it is read


def open_arrow(address: str) -> OpenedDirectory | None:
    """Open a directory, or return None if this build of pyarrow lacks the file system of the scheme.

    Raises:
        ConfigurationError: pyarrow is not installed.
    """
    scheme = scheme_of(address)
    load("pyarrow", f"the scheme {scheme!r} of {shown(address)!r}")
    import pyarrow
    import pyarrow.fs

    known_as = _RENAMED.get(scheme, scheme)
    uri = f"{known_as}{address[len(scheme) :]}"
    if known_as == "s3" and "allow_delayed_open" not in options_of(address):
        # A small object then takes one put instead of three requests.
        uri += ("&" if options_of(address) else "?") + "allow_delayed_open=true"
    try:
        file_system, path = pyarrow.fs.FileSystem.from_uri(uri)
    except pyarrow.ArrowNotImplementedError:
        return None
    return OpenedDirectory(ArrowAccess(file_system, whole_puts=scheme not in _TREES), path)


class ArrowAccess:
    """Access to a storage through `pyarrow.fs`."""

    def __init__(self, file_system: Any, *, whole_puts: bool) -> None:
        import pyarrow.fs

        self._arrow = pyarrow.fs
        self._fs = file_system
        self.whole_puts = whole_puts

    def get(self, path: str) -> bytes:
        file = self._fs.open_input_file(path)
        if not self.whole_puts:  # an open file of a file system stays the same file when its name is replaced
            with file:
                return bytes(file.read())
        # pyarrow asks for the size when it opens an object, and then reads as many bytes of the object that has the
        # name by now. If a put came between, the bytes are cut off or padded with zeros. pyarrow makes no conditional
        # request and hides the headers of the response, so a second look at the size and the ETag has to tell. It
        # misses only an object that is replaced and put back with the same content during one read.
        for _ in range(_READS):
            with file:
                data, read = bytes(file.read()), (file.size(), file.metadata())
            file = self._fs.open_input_file(path)
            if (file.size(), file.metadata()) == read:
                file.close()
                return data
        file.close()
        raise OSError(errno.EAGAIN, f"the object was replaced during each of {_READS} reads")

    def open(self, path: str) -> BinaryIO:
        if not self.whole_puts:
            return cast(BinaryIO, self._fs.open_input_file(path))
        return steady_object.opened(lambda: self._fs.open_input_file(path), path)

    def put(self, path: str, data: bytes) -> None:
        if not self.whole_puts:
            self._fs.create_dir(path.rpartition("/")[0], recursive=True)
        # One write and one close: an upload that fails half-way is never completed, so a torn object never appears.
        with self._fs.open_output_stream(path) as file:
            file.write(data)

    def open_output(self, path: str) -> BinaryIO:
        if not self.whole_puts:
            self._fs.create_dir(path.rpartition("/")[0], recursive=True)
        return cast(BinaryIO, self._fs.open_output_stream(path))

    def copy(self, source: str, target: str) -> None:
        self._fs.copy_file(source, target)

    def move(self, source: str, target: str) -> None:
        try:
            self._fs.move(source, target)
        except OSError:
            # HDFS refuses to rename over a file. Between the delete and the second rename there is no file, which
            # readers take for an older state. Files that must never be missing are published once and not replaced.
            if not self.exists(target):
                raise
            self._fs.delete_file(target)
            self._fs.move(source, target)

    def size(self, path: str) -> int | None:
        found = self._fs.get_file_info(path)
        return int(found.size) if found.type == self._arrow.FileType.File else None

    def exists(self, path: str) -> bool:
        return bool(self._fs.get_file_info(path).type != self._arrow.FileType.NotFound)

    def names(self, path: str) -> list[str]:
        return [info.base_name for info in self._fs.get_file_info(self._arrow.FileSelector(path, allow_not_found=True))]

    def files_below(self, path: str, *, recursive: bool) -> list[FileEntry]:
        found = self._fs.get_file_info(self._arrow.FileSelector(path, allow_not_found=True, recursive=recursive))
        start = len(path.rstrip("/")) + 1
        return [
            FileEntry(info.path[start:], int(info.size)) for info in found if info.type == self._arrow.FileType.File
        ]

    def download(self, path: str, target: str) -> None:
        is_directory = self._fs.get_file_info(path).type == self._arrow.FileType.Directory
        if is_directory:
            os.makedirs(target)
        for name in [each.path for each in self.files_below(path, recursive=True)] if is_directory else [""]:
            copy = os.path.join(target, name) if name else target
            os.makedirs(os.path.dirname(copy) or ".", exist_ok=True)
            with self.open(f"{path.rstrip('/')}/{name}" if name else path) as file, open(copy, "wb") as local:
                shutil.copyfileobj(file, local, _COPY_BYTES)

    def remove(self, path: str) -> None:
        self._fs.delete_file(path)

    def remove_tree(self, path: str) -> None:
        self._fs.delete_dir(path)

    def make_dirs(self, path: str) -> None:
        self._fs.create_dir(path, recursive=True)

    def is_final(self, error: Exception) -> bool:
        if retry.is_final(error):
            return True
        text = str(error)
        return any(words in text for words in _FINAL_WORDS)

    def to_url(self, path: str) -> str:
        return quote(path)

    def from_url(self, url_path: str) -> str:
        return unquote(url_path)
