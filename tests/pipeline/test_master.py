"""A master URL is understood or refused at once."""

from __future__ import annotations

import os
import socket
import time

import pytest

from windrow.errors import SetupError
from windrow.pipeline.master import parse_master


def test_local_masters() -> None:
    assert parse_master("local").threads == 1
    assert parse_master("local[3]").threads == 3
    assert parse_master("local[*]").threads == os.cpu_count()
    assert parse_master("local[2,4]").threads == 2
    assert parse_master("local[2]").local
    assert parse_master("local[2]").on_this_machine


def test_cluster_masters() -> None:
    assert parse_master("spark://a:7077,b:7078").hosts == (("a", 7077), ("b", 7078))
    for url in ("spark://a:7077", "yarn", "k8s://https://host:443"):
        assert not parse_master(url).local
        assert not parse_master(url).on_this_machine
    for url in ("spark://127.0.0.1:7077", "spark://localhost:7077", "spark://[::1]:7077", "local-cluster[2,1,1024]"):
        assert not parse_master(url).local
        assert parse_master(url).on_this_machine
    assert not parse_master("spark://127.0.0.1:7077,other:7077").on_this_machine


@pytest.mark.parametrize(
    "url",
    [
        "foo",
        "",
        "local[0]",
        "local[]",
        "local[2",
        "spark://",
        "spark://a",
        "spark://a:99999",
        "spark://a:1,b",
        "sc://a",
    ],
)
def test_a_wrong_master_is_refused(url: str) -> None:
    with pytest.raises(SetupError, match="expected a Spark master such as") as raised:
        parse_master(url)
    assert repr(url) in str(raised.value)


def test_a_master_that_does_not_listen_is_refused_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = time.monotonic()
    with pytest.raises(SetupError, match=rf"127.0.0.1 port {port}"):
        parse_master(f"spark://127.0.0.1:{port}").require_reachable()
    assert time.monotonic() - start < 5


def test_one_of_several_masters_is_enough() -> None:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        one.listen()
        ports = one.getsockname()[1], other.getsockname()[1]
        parse_master(f"spark://127.0.0.1:{ports[1]},127.0.0.1:{ports[0]}").require_reachable()
