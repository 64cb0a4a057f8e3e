"""The guard of conftest.py: tests reach this machine and nothing else."""

import socket
import subprocess
import sys
from threading import Thread

import pytest


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1"])
@pytest.mark.parametrize("method", ["connect", "connect_ex"])
def test_connecting_elsewhere_is_refused(address: str, method: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with (
        socket.socket(family, socket.SOCK_STREAM) as client,
        pytest.raises(RuntimeError, match="network"),
    ):
        getattr(client, method)((address, 80))


def test_datagrams_elsewhere_are_refused() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        pytest.raises(RuntimeError, match="network"),
    ):
        client.sendto(b"x", ("192.0.2.1", 53))


def test_looking_up_a_name_is_refused() -> None:
    with pytest.raises(RuntimeError, match="look up"):
        socket.create_connection(("example.org", 80), timeout=1)


def test_loopback_works() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        thread = Thread(target=lambda: server.accept()[0].sendall(b"hello"))
        thread.start()
        with socket.create_connection(("localhost", port), timeout=5) as client:
            assert client.recv(5) == b"hello"
        thread.join()


def test_unix_sockets_work() -> None:
    left, right = socket.socketpair()
    with left, right:
        left.sendall(b"hello")
        assert right.recv(5) == b"hello"


def test_processes_that_tests_start_are_guarded_too() -> None:
    code = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "tests need no network" in done.stderr
