"""A Spark master that cannot be used is named before Spark starts."""

import socket

import pytest

from ekorn.engine.spark.driver_side.master_check import check_master
from ekorn.engine.spark.driver_side.session import spark_context
from ekorn.errors import DeploymentError


@pytest.fixture
def closed_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]  # bound and not listening: connections are refused


@pytest.mark.parametrize("form", ["spark://127.0.0.1:{0}", "k8s://https://127.0.0.1:{0}", "k8s://127.0.0.1:{0}"])
def test_a_master_that_refuses_connections_is_named_before_java_starts(closed_port, form):
    master = form.format(closed_port)
    with pytest.raises(DeploymentError, match=r"cannot be reached .*Connection refused") as raised:
        spark_context({"spark.master": master})
    assert repr(master) in str(raised.value)


def test_one_master_of_several_suffices(closed_port):
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_master(f"spark://127.0.0.1:{closed_port},127.0.0.1:{server.getsockname()[1]}")


def test_yarn_needs_its_configuration():
    with pytest.raises(DeploymentError, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"):
        check_master("yarn", {})
    check_master("yarn", {"HADOOP_CONF_DIR": "/etc/hadoop"})


@pytest.mark.parametrize("master", ["spark://nowhere", "spark://:7077", "spark://h:99999", "k8s://", "loca", "h:7077"])
def test_what_is_no_address_of_a_master_is_refused_with_the_forms(master):
    with pytest.raises(DeploymentError, match=r"is not the address of a Spark master: write local\[N\]"):
        check_master(master, {})


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,4]", "local-cluster[2,1,512]"])
def test_masters_on_this_machine_need_no_address(master):
    check_master(master, {})
