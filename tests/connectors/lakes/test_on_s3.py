"""Tables of Delta and Iceberg on an S3 server: partitioned, with the job killed, and without secrets in messages."""

import io

import pytest

from ekorn.connectors.lakes.data_folders import RemoteFolder
from ekorn.datastream.connectors.delta import DeltaSink, DeltaSource
from ekorn.datastream.connectors.iceberg import IcebergSink, IcebergSource
from ekorn.errors import ConfigurationError
from tests.connectors.lakes.visits import EXPECTED, KILLED, VISIT, read, write
from tests.s3_server import ACCESS_KEY, BUCKET, SECRET_KEY, s3_endpoint, s3_url

__all__ = ["s3_endpoint", "s3_url"]


def test_a_delta_table(s3_url):
    address = s3_url("t")
    sink = DeltaSink(address, VISIT, partition_by=["country"])
    write(sink, KILLED)
    source = DeltaSource(address)
    assert read(source) == EXPECTED
    assert SECRET_KEY not in repr((sink, source, source.discover_splits(1)))


def test_an_iceberg_table(s3_endpoint, s3_url, tmp_path):
    prefix = s3_url("lake").partition("?")[0].rpartition("@")[2]
    catalog = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"s3://{prefix}",
        "s3.endpoint": f"http://{s3_endpoint}",
        "s3.access-key-id": ACCESS_KEY,
        "s3.secret-access-key": SECRET_KEY,
        "s3.region": "us-east-1",
    }
    assert prefix.startswith(f"{BUCKET}/")
    write(IcebergSink("main", catalog, "shop.visits", VISIT, partition_by=["day(at)"]), KILLED)
    assert read(IcebergSource("main", catalog, "shop.visits")) == EXPECTED


def test_a_table_that_does_not_exist_is_named_without_secrets(s3_url):
    with pytest.raises(ConfigurationError, match=r"DeltaSource cannot read 's3://checkpoints/") as caught:
        DeltaSource(s3_url("nothing"))
    assert SECRET_KEY not in str(caught.value)


class UploadThatFails(io.BytesIO):
    """Fails when it is ended; like pyarrow's, it is closed then, and may be closed again."""

    failed = False

    def close(self):
        if not self.failed:
            self.failed = True
            raise OSError(f"upload of {SECRET_KEY} failed")
        super().close()


def test_an_upload_that_fails_at_its_end_is_not_taken_for_a_file(s3_url):
    upload = UploadThatFails(b"rows")
    with pytest.raises(OSError, match=r"cannot write to s3://checkpoints/.*/t: upload of \*+ failed"):
        RemoteFolder(s3_url("t")).complete(upload)
    upload.close()


def test_an_address_of_another_kind_is_refused():
    with pytest.raises(ConfigurationError, match=r"DeltaSink cannot use 'ftp://host/t': give a path, a file:// URL or"):
        DeltaSink("ftp://host/t", VISIT)
