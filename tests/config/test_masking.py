"""What people may see of settings: secrets are hidden by name and by value."""

import time

import pytest

from ekorn.config.configuration import Configuration
from ekorn.config.masking import masked, masked_settings, masked_text


@pytest.mark.parametrize(
    "key",
    ["db.passwd", "PWD", "dbPwd", "db_pass", "s3.secret-key", "my.API_KEY", "privateKey", "Authorization", "ssl.key"],
)
def test_a_value_is_hidden_by_the_name_of_its_key(key):
    assert masked(key, "hush") == "******"


@pytest.mark.parametrize("key", ["parallelism.default", "bypass", "keyed", "key.deserializer", "stop.wd", "passage"])
def test_other_names_are_shown(key):
    assert masked(key, "shown") == "shown"


@pytest.mark.parametrize(
    "text",
    [
        "s3://HUSH:HUSH@bucket/dir",
        "S3A://HUSH@bucket",
        "s3://KEY:a/HUSH@bucket",
        "s3://HUSH:HUSH@a/b,s3://HUSH:HUSH@c",
        "sftp://me:HUSH@host/dir",
        "jdbc:postgresql://host/db?user=me&password=HUSH",
        "https://host/x?X-Amz-Signature=HUSH&a=1",
        '{"a": {"password": "HUSH HUSH"}}',
        "{'pwd': 'HUSH'}",
        "shop:north,db.passwd:two HUSH,more:1",
        "db.password:'HUSH,HUSH',more:1",
        "-Djavax.net.ssl.keyStorePassword=HUSH -Dmore=1",
        "--password HUSH --more 1",
        'required username="u" password="HUSH \\" HUSH";',
        "jdbc:oracle:thin:scott/HUSH@//host:1521/x",
        "a key: -----BEGIN RSA PRIVATE KEY-----\nHUSH\nHUSH\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nHUSH that was cut off",
    ],
)
def test_a_secret_within_a_value_is_hidden(text):
    assert "HUSH" not in masked_text(text)
    assert "******" in masked_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "/data/a",
        "s3://bucket/a@b",
        "hdfs://me@host/dir",
        "http://host:80/a:b/c@d",
        "a token of thanks",
        "4 mb",
        "jdbc:oracle:thin:@//host/x",
    ],
)
def test_a_text_without_secrets_stays(text):
    assert masked_text(text) == text


def test_a_secret_is_hidden_where_another_key_repeats_it():
    given = {"db.password": "hush-hush", "arguments": ["connect", "hush-hush"], "nested": {"text": "hush-hush!"}}
    assert masked_settings(given) == {
        "db.password": "******",
        "arguments": ["connect", "******"],
        "nested": {"text": "******!"},
    }


def test_the_text_of_a_configuration_hides_secrets_in_values():
    configuration = Configuration()
    configuration.set_string("state.checkpoints.dir", "s3://KEY:HUSH@bucket/dir")
    assert "HUSH" not in str(configuration) + repr(configuration)
    assert configuration.get_string("state.checkpoints.dir", "") == "s3://KEY:HUSH@bucket/dir"


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "a:",
        "://",
        "s3://a:",
        "password=",
        "a ",
        'a="',
        "a'",
        "password: '",
        "jdbc:oracle:x:",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_a_long_text_is_searched_in_linear_time(piece):
    started_s = time.process_time()
    masked_text(piece * (200_000 // len(piece)))
    assert time.process_time() - started_s < 5.0
