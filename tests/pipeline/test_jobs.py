"""What workers are told: the same job as long as it holds, and none that has forgotten a query."""

from __future__ import annotations

import gc

import windrow
from windrow.pipeline.jobs import Jobs


def database() -> windrow.Database:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, p STRING, v INT) TIME t")
    for name, where in (("tcp", "p = 'tcp'"), ("udp", "p = 'udp'"), ("both", "p IN ('tcp', 'udp')")):
        db.query(f"SELECT SUM(v) AS v FROM s [RANGE 20 SLIDE 10] WHERE {where}", name=name)
    return db


def test_a_job_holds_until_a_query_comes_or_goes() -> None:
    db = database()
    jobs = Jobs(db._engine)
    job = jobs.of("s", [2])
    assert jobs.of("s", [2]) is job and jobs.holds("s", job)
    db.query("SELECT MAX(v) AS v FROM s [RANGE 20 SLIDE 10]", name="more")
    assert not jobs.holds("s", job)
    assert jobs.of("s", [2]) is not job


def test_the_derived_slice_goes_while_workers_slice() -> None:
    """Its number is that of no slice any more."""
    db = database()
    jobs = Jobs(db._engine)
    job = jobs.of("s", [2])
    db.drop("both")
    assert not jobs.holds("s", job)
    assert jobs.of("s", jobs.derived("s")) is not job


def test_a_slice_that_took_the_place_of_another_is_another() -> None:
    """Also when it has the address of the one that is gone."""
    db = database()
    jobs = Jobs(db._engine)
    for _ in range(50):
        job = jobs.of("s", [])
        db.drop("both")
        gc.collect()
        db.query("SELECT SUM(v) AS v FROM s [RANGE 20 SLIDE 10] WHERE p IN ('tcp', 'icmp')", name="both")
        assert not jobs.holds("s", job)
