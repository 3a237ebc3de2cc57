"""Buckets by date and time, in the form of Java's DateTimeFormatter."""

from datetime import UTC, datetime

import pytest

from ekorn.datastream.connectors.bucket_assigners import BucketAssigner, BucketContext

MOMENT_MS = int(datetime(2024, 3, 5, 22, 7, 9, 45_000, tzinfo=UTC).timestamp() * 1000)


def bucket(pattern="yyyy-MM-dd--HH", zone="UTC", at_ms=MOMENT_MS):
    return BucketAssigner.date_time_bucket_assigner(pattern, zone).get_bucket_id(None, BucketContext(at_ms))


# Recorded from java.time.format.DateTimeFormatter in an English locale.
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd--HH", "2024-03-05--22"),
        ("'dt='yyyyMMdd/'hour='HH", "dt=20240305/hour=22"),
        ("yy/M/d H:m:s", "24/3/5 22:7:9"),
        ("uuuu.MMM.MMMM EEE EEEE", "2024.Mar.March Tue Tuesday"),
        ("hh a KK kk", "10 PM 10 22"),
        ("DDD D", "065 65"),
        ("HH:mm:ss.SSS", "22:07:09.045"),
        ("SSSSSS", "045000"),
        ("Z", "+0000"),
        ("yyyy'T'''", "2024T'"),
        ("''yyyy''", "'2024'"),
    ],
)
def test_patterns(pattern, expected):
    assert bucket(pattern) == expected


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Europe/Berlin", "2024-03-05--23 +0100"),
        ("GMT-08:00", "2024-03-05--14 -0800"),
        ("UTC+2", "2024-03-06--00 +0200"),
        ("+05:30", "2024-03-06--03 +0530"),
        ("Z", "2024-03-05--22 +0000"),
    ],
)
def test_time_zones(zone, expected):
    assert bucket("yyyy-MM-dd--HH Z", zone) == expected


def test_without_a_zone_the_machine_s_is_taken():
    assert bucket(zone=None) == datetime.fromtimestamp(MOMENT_MS / 1000).strftime("%Y-%m-%d--%H")


def test_buckets_follow_the_clock():
    assigner = BucketAssigner.date_time_bucket_assigner("HH:mm:ss", "UTC")
    times = [0, 999, 1000, 59_999, 60_000, 3_600_000, 0]
    texts = [assigner.get_bucket_id(None, BucketContext(at_ms)) for at_ms in times]
    assert texts == ["00:00:00", "00:00:00", "00:00:01", "00:00:59", "00:01:00", "01:00:00", "00:00:00"]


@pytest.mark.parametrize("pattern", ["yyyy-ww", "VV", "yyyy'open", "[HH]", "HHH", "", None, "MMMMM"])
def test_patterns_that_are_not_known_are_refused(pattern):
    with pytest.raises(ValueError, match="pattern"):
        BucketAssigner.date_time_bucket_assigner(pattern)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "GMT+99", "", 5])
def test_zones_that_are_not_known_are_refused(zone):
    with pytest.raises(ValueError, match="no time zone"):
        BucketAssigner.date_time_bucket_assigner("yyyy", zone)


def test_the_base_path_itself():
    assert BucketAssigner.base_path_bucket_assigner().get_bucket_id("x", BucketContext()) == ""
