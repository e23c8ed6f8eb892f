"""The master URL: where Spark runs. A wrong one is refused at once, where Spark itself would wait a minute."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from windrow.errors import SetupError

CONNECT_SECONDS = 3.0
"""A master that does not answer within this time is taken as unreachable."""

_LOCAL = re.compile(r"local(?:\[(?P<threads>[1-9]\d*|\*)(?:,\s*[1-9]\d*)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_HOST_AND_PORT = re.compile(r"(?P<host>\[[0-9A-Fa-f:]+\]|[^\s:,/]+):(?P<port>\d{1,5})")


@dataclass(frozen=True)
class Master:
    """A master URL that Spark understands, and what follows from it."""

    url: str
    threads: int | None
    """Worker threads of a Spark inside this process; None if executors are processes of their own."""
    hosts: tuple[tuple[str, int], ...] = ()
    """Where the masters of a standalone cluster listen."""

    @property
    def local(self) -> bool:
        """Whether tasks run inside the driver."""
        return self.threads is not None

    @property
    def on_this_machine(self) -> bool:
        """Whether driver and executors can talk over the loopback interface."""
        return (
            self.local
            or self.url.startswith("local-cluster[")
            or (bool(self.hosts) and all(map(_is_loopback, self.hosts)))
        )

    def require_reachable(self) -> None:
        """Refuse a standalone cluster none of whose masters accepts a connection."""
        if not self.hosts:
            return
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            refusals = list(pool.map(_refusal, self.hosts))
        if all(refusals):
            raise SetupError(
                f"no Spark master answers at {self.url}: {'; '.join(filter(None, refusals))}. "
                "Check that the master runs and that host and port are those on its web page"
            )


def parse_master(url: str) -> Master:
    """The master that a URL names, or a SetupError with the forms that are known."""
    if found := _LOCAL.fullmatch(url):
        threads = found["threads"]
        return Master(url, (os.cpu_count() or 1) if threads == "*" else int(threads or 1))
    if url.startswith("spark://"):
        matches = [_HOST_AND_PORT.fullmatch(place) for place in url.removeprefix("spark://").split(",")]
        hosts = tuple((found["host"].strip("[]"), int(found["port"])) for found in matches if found)
        if len(hosts) == len(matches) and all(0 < port < 65536 for _, port in hosts):
            return Master(url, None, hosts)
    elif _LOCAL_CLUSTER.fullmatch(url) or url == "yarn" or re.fullmatch(r"k8s://\S+", url):
        return Master(url, None)
    raise SetupError(
        f"expected a Spark master such as local[*], local[4], spark://host:7077, spark://host1:7077,host2:7077, "
        f"yarn or k8s://https://host:443, found {url!r}"
    )


def _is_loopback(place: tuple[str, int]) -> bool:
    host, _ = place
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _refusal(place: tuple[str, int]) -> str | None:
    """Why this place accepts no connection; None if it does."""
    host, port = place
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        return f"{host} port {port} ({error})"
    return None
