"""Bucket assigners: choose the folder below the base path of a file sink that a record goes to."""

from ekorn.connectors.files.bucket_assigners import BucketAssigner, BucketContext

__all__ = ["BucketAssigner", "BucketContext"]
