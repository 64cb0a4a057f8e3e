"""Python starts here in every process that a test starts: it reaches this machine alone.

`conftest.py` puts this folder on PYTHONPATH and imports the module for its own process.
"""

import socket
from ipaddress import ip_address
from typing import Any


def is_local(address: Any) -> bool:
    """A path of a Unix socket, or a host that is this machine."""
    if not isinstance(address, tuple):
        return True
    host = str(address[0]).partition("%")[0]
    try:
        return ip_address(host).is_loopback or ip_address(host).is_unspecified
    except ValueError:
        return host in {"localhost", ""}


def _guard(method: str) -> None:
    real = getattr(socket.socket, method)

    def guarded(self: socket.socket, *args: Any) -> Any:
        if not is_local(args[-1]):
            raise RuntimeError(f"A test tried to reach {args[-1]!r}: tests need no network.")
        return real(self, *args)

    setattr(socket.socket, method, guarded)


def _guard_names() -> None:
    real = socket.getaddrinfo

    def guarded(host: Any, *args: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in {None, socket.gethostname()} and not is_local((name,)):
            raise RuntimeError(f"A test tried to look up {name!r}: tests need no network.")
        return real(host, *args, **options)

    socket.getaddrinfo = guarded


for _method in ("connect", "connect_ex", "sendto"):
    _guard(_method)
_guard_names()
