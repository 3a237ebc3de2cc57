from tests.s3_server import s3_endpoint, s3_url  # noqa: F401
