"""Part files on S3 by multipart upload: a part is uploaded piece by piece and appears when its upload is completed.

The checkpoint keeps the id of the upload and the tags of its pieces, so any process can complete it. Until then there
is no object, hidden or visible, and nothing is copied. An upload that no checkpoint refers to is aborted, or stays
after a crash until a lifecycle rule of the bucket removes it. Needs boto3, because pyarrow completes an upload when its
stream is closed; without boto3 `remote_parts.py` writes hidden objects and copies them.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import IO, Any, TypedDict, TypeVar
from urllib.parse import unquote, urlsplit

from ekorn.connectors.files.part_files import BufferedPart
from ekorn.errors import CheckpointError, PendingFileLost, SinkFilesMissing, UnsupportedOperationError
from ekorn.faults import point
from ekorn.storage.locations import masked, options_of, scheme_of, secrets_of, shown
from ekorn.storage.retry import Patience

__all__ = ["MultipartParts", "MultipartPending", "can_upload_in_parts"]

_PIECE_BYTES = 8 << 20  # S3 takes pieces of 5 MiB and more
_OPTIONS = frozenset({"endpoint_override", "scheme", "region"})
_FINAL_CODES = frozenset({"NoSuchBucket", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"})
T = TypeVar("T")


class MultipartPending(TypedDict):
    """An upload that waits for its checkpoint. Paths are below the base, which is kept without credentials."""

    base: str
    upload: str
    visible: str
    tags: list[str]
    bytes: int


def can_upload_in_parts(address: str) -> bool:
    """Return whether an address is on S3, boto3 is installed, and no option is one that only pyarrow knows."""
    if scheme_of(address) not in ("s3", "s3a", "s3n") or not options_of(address).keys() <= _OPTIONS:
        return False
    try:
        import boto3  # noqa: F401
    except ImportError:
        return False
    return True


class MultipartParts:
    """Parts below a URL of S3."""

    ends_at_checkpoints = True

    def __init__(self, address: str, patience: Patience | None = None) -> None:
        parts = urlsplit(address)
        self.url = shown(address)
        self.bucket = parts.netloc.rpartition("@")[2]
        self._root = unquote(parts.path).strip("/")
        self._secrets = secrets_of(address)
        self._patience = patience or Patience()
        self.client = _client(address)

    def key(self, path: str) -> str:
        """Return the name of an object below the base."""
        return f"{self._root}/{path}" if self._root else path

    def call(self, verb: str, path: str, action: Callable[[], T]) -> T:
        """Call S3, and repeat the call after temporary errors. Errors name the object and no credentials."""
        try:
            return self._patience.call(action, lambda error: _code(error) is not None and _is_final(error))
        except Exception as error:  # botocore raises errors of many classes
            if _code(error) in ("NoSuchUpload", "404", "NoSuchKey"):
                raise FileNotFoundError(errno.ENOENT, _code(error), f"{self.url}/{path}") from None
            text = masked(str(error) or type(error).__name__, self._secrets)
            raise OSError(errno.EIO, f"cannot {verb} {self.url}/{path}: {text}") from None

    def begin(self, bucket_id: str, name: str, hidden_name: str, now_ms: int) -> MultipartPart:
        return MultipartPart(self, bucket_id, f"{bucket_id}/{name}" if bucket_id else name, now_ms)

    def publish(self, files: Iterable[MultipartPending]) -> None:
        for file in files:
            self._publish_one(file)

    def _publish_one(self, file: MultipartPending) -> None:
        if "upload" not in file or file["base"] != self.url:
            raise CheckpointError(
                f"cannot commit {file['visible']!r}: it was written below {file['base']} in a different way from how "
                f"the sink at {self.url} writes now; start the job once with the former base path and packages"
            )
        visible = file["visible"]
        pieces = [{"ETag": tag, "PartNumber": number} for number, tag in enumerate(file["tags"], 1)]
        point("sink-file")
        try:
            self.call(
                "commit",
                visible,
                lambda: self.client.complete_multipart_upload(
                    Bucket=self.bucket,
                    Key=self.key(visible),
                    UploadId=file["upload"],
                    MultipartUpload={"Parts": pieces},
                ),
            )
        except FileNotFoundError:
            # The upload was completed before, and a restore commits it again. Otherwise a lifecycle rule has removed
            # it.
            if self._size(visible) != file["bytes"]:
                upload = f"the upload {file['upload']!r}"
                raise PendingFileLost(f"{self.url}/{visible}", upload, file["bytes"], None, is_upload=True) from None
        point("sink-file-copied")

    def is_visible(self, file: MultipartPending) -> bool:
        return self._size(file["visible"]) is not None

    def check_restored(self, file: MultipartPending) -> None:
        # Parts end at checkpoints, so no state of a writer refers to one.
        raise SinkFilesMissing(f"cannot restore the file sink: {file['visible']!r} was not written by uploads in parts")

    def bytes_of(self, file: MultipartPending) -> int | None:
        raise UnsupportedOperationError("an upload that is not complete cannot be read")

    def open_pending(self, file: MultipartPending) -> IO[bytes]:
        raise UnsupportedOperationError("an upload that is not complete cannot be read")

    def address_of(self, file: MultipartPending) -> str:
        raise UnsupportedOperationError("an upload that is not complete cannot be read")

    def bucket_of(self, file: MultipartPending) -> str:
        return file["visible"].rpartition("/")[0]

    def remove_hidden(self, file: MultipartPending) -> None:
        """Do nothing: there are no hidden objects."""

    def _size(self, path: str) -> int | None:
        try:
            found = self.call("look for", path, lambda: self.client.head_object(Bucket=self.bucket, Key=self.key(path)))
        except FileNotFoundError:
            return None
        return int(found["ContentLength"])


class MultipartPart(BufferedPart):
    """The part being uploaded in one bucket of the sink."""

    def __init__(self, parts: MultipartParts, bucket_id: str, visible: str, now_ms: int) -> None:
        super().__init__(bucket_id, now_ms, _PIECE_BYTES)
        self._parts = parts
        self._visible = visible
        self._upload: str | None = None
        self._tags: list[str] = []

    def flush(self) -> None:
        """Keep the buffered bytes: only the last piece may be small."""

    def make_durable(self) -> None:
        if not self.saved and (self._buffer or not self._tags):
            self._write_out()
        self.saved = True

    def _write_out(self) -> None:
        parts, key = self._parts, self._parts.key(self._visible)
        if self._upload is None:
            begun = parts.call(
                "write", self._visible, lambda: parts.client.create_multipart_upload(Bucket=parts.bucket, Key=key)
            )
            self._upload = begun["UploadId"]
        data, self._buffer = bytes(self._buffer), bytearray()
        answer = parts.call(
            "write",
            self._visible,
            lambda: parts.client.upload_part(
                Bucket=parts.bucket, Key=key, UploadId=self._upload, PartNumber=len(self._tags) + 1, Body=data
            ),
        )
        self._tags.append(answer["ETag"])

    def pending(self) -> MultipartPending:
        assert self._upload is not None, "make_durable() comes first"
        return {
            "base": self._parts.url,
            "upload": self._upload,
            "visible": self._visible,
            "tags": self._tags,
            "bytes": self._size,
        }

    def delete(self) -> None:
        assert not self.saved
        if self._upload is not None:
            parts, key = self._parts, self._parts.key(self._visible)
            with contextlib.suppress(OSError):  # an upload that remains is invisible
                parts.call(
                    "abort",
                    self._visible,
                    lambda: parts.client.abort_multipart_upload(Bucket=parts.bucket, Key=key, UploadId=self._upload),
                )


@lru_cache(maxsize=8)
def _client(address: str) -> Any:
    """Return a cached client: creating one takes half a second, and a slot has several writers and committers."""
    import boto3

    parts, options = urlsplit(address), options_of(address)
    user, _, _ = parts.netloc.rpartition("@")
    key, _, secret = user.partition(":")
    endpoint = options.get("endpoint_override")
    return boto3.client(
        "s3",
        endpoint_url=f"{options.get('scheme', 'https')}://{endpoint}" if endpoint else None,
        region_name=options.get("region"),
        aws_access_key_id=unquote(key) or None,
        aws_secret_access_key=unquote(secret) or None,
    )


def _code(error: Exception) -> str | None:
    """Return the code of an error that S3 returned, or None for an error of the connection."""
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code")) if isinstance(response, dict) else None


def _is_final(error: Exception) -> bool:
    response: dict[str, Any] = getattr(error, "response", {})
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
    return _code(error) in _FINAL_CODES or 400 <= int(status) < 500
