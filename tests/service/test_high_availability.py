"""Services that stand by for each other: one leads, another takes its place, jobs go on, nothing is lost or twice."""

import re
import signal

import pytest

from ekorn.cli.main import main
from ekorn.common import JobStatus
from tests.live_jobs import is_running, until
from tests.service.cluster import bring_disk_back, cluster_in, committed, lose_disk, misses, submit_counted
from tests.service.conftest import TWO_JOBS

pytestmark = pytest.mark.long

RECORDS, PER_SECOND = 4000, 400


@pytest.fixture
def cluster(tmp_path, runtime_dir):
    with cluster_in(tmp_path) as found:
        yield found


def finishes(cluster, job):
    until(lambda: cluster.client().job(job).get_job_status().result() is JobStatus.FINISHED, 120)


def test_a_standby_takes_the_place_of_a_killed_leader_and_its_jobs_go_on(cluster, tmp_path):
    leader = cluster.leader()
    assert "/service/cluster" in leader.web().get("/openapi.json")["paths"]
    (standby,) = (node for node in cluster.nodes if node is not leader)
    job, out = submit_counted(cluster, tmp_path, "job", records=RECORDS, per_second=PER_SECOND)
    until(lambda: committed(out) > 100)
    driver = cluster.client().jobs()[0]["pid"]
    leader.signal(signal.SIGKILL)
    assert cluster.leader() is standby
    until(lambda: not is_running(driver))  # of the killed leader: it ends by itself
    finishes(cluster, job)
    assert misses(out, RECORDS) == ""
    restored = cluster.client().web.get(f"/jobs/{job}/checkpoints")["latest"]["restored"]
    assert restored is not None and "chk-" in restored["external_path"]


def test_a_leader_that_was_stopped_ends_its_drivers_and_names_the_next_one(cluster, tmp_path):
    leader = cluster.leader()
    (standby,) = (node for node in cluster.nodes if node is not leader)
    job, out = submit_counted(cluster, tmp_path, "job", records=RECORDS, per_second=PER_SECOND)
    until(lambda: committed(out) > 100)
    leader.signal(signal.SIGSTOP)
    assert cluster.leader() is standby
    until(lambda: cluster.client().job(job).get_job_status().result() is JobStatus.RUNNING)
    leader.signal(signal.SIGCONT)
    status, reason = leader.unfollowed("/jobs/overview")
    assert status in (307, 503) and "this service is not the leader" in reason
    until(lambda: leader.unfollowed("/jobs/overview")[0] == 307)
    assert leader.unfollowed("/jobs") == (307, f"this service is not the leader; the leader is at {standby.address}")
    assert leader.web(patience_s=30).get("/jobs/overview")["jobs"][0]["jid"] == job
    finishes(cluster, job)
    assert misses(out, RECORDS) == ""


@pytest.mark.soak  # CI has half an hour for everything
def test_nobody_leads_while_the_storage_is_away_and_jobs_go_on_when_it_is_back(cluster, tmp_path):
    leader = cluster.leader()
    job, out = submit_counted(cluster, tmp_path, "job", records=RECORDS, per_second=PER_SECOND)
    until(lambda: committed(out) > 100)
    driver = cluster.client().jobs()[0]["pid"]
    away = lose_disk(cluster)
    until(lambda: not leader.own_view()["self"]["leads"])
    until(lambda: not is_running(driver))
    until(lambda: all(node.own_view()["storage-error"] for node in cluster.nodes))
    assert not any(node.own_view()["self"]["leads"] for node in cluster.nodes)
    answer = cluster.nodes[0].web().ask("GET", "/jobs/overview")
    assert answer.status == 503 and b"no leader is known" in answer.body
    bring_disk_back(cluster, away)
    cluster.leader()
    finishes(cluster, job)
    assert misses(out, RECORDS) == ""


@pytest.mark.soak  # CI has half an hour for everything
def test_a_leader_that_is_asked_to_end_hands_its_jobs_over(cluster, tmp_path):
    leader = cluster.leader()
    job, out = submit_counted(cluster, tmp_path, "job", records=RECORDS, per_second=PER_SECOND)
    until(lambda: committed(out) > 100)
    leader.signal(signal.SIGTERM)
    assert cluster.leader() is not leader
    finishes(cluster, job)
    assert misses(out, RECORDS) == ""


def test_a_program_with_two_jobs_is_refused_as_it_could_not_be_started_again(cluster, tmp_path):
    (tmp_path / "two.py").write_text(TWO_JOBS)
    client = cluster.client()
    job = str(client.submit(tmp_path / "two.py").get_job_id())
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    assert b"execute() a second time" in client.web.ask("GET", f"/jobs/{job}/log").body


def test_the_status_shows_the_leader_and_the_standbys(cluster, tmp_path, monkeypatch, capsys):
    leader = cluster.leader()
    (standby,) = (node for node in cluster.nodes if node is not leader)
    conf = tmp_path / "conf"
    conf.mkdir()
    settings = {**standby.settings, "ekorn.service.dir": str(standby.folder)}
    (conf / "config.yaml").write_text("\n".join(f"{key}: {value}" for key, value in settings.items()))
    monkeypatch.setenv("EKORN_CONF_DIR", str(conf))
    until(lambda: standby.own_view()["leader"] is not None)
    assert main(["service", "status"]) == 0
    printed = capsys.readouterr().out
    assert f"leader: {leader.address}, process {leader.process.pid} on " in printed
    assert re.search(f"standby: {standby.address}, .*this service", printed)
    assert "4 of 4 slots free" in printed  # as the leader says
    assert main(["list"]) == 1  # the command follows the standby to the leader
    assert "no matching jobs" in capsys.readouterr().err
