"""Keeps what must stay private out of everything that is recorded."""

import os
import re
from urllib.parse import urlsplit, urlunsplit

HIDDEN = "(hidden)"

_PRIVATE = re.compile(
    r"(^|[_.\-])(api_?key|access_?key|secret|token|password|passwd|pwd|credentials?|private_?key"
    r"|auth)($|[_.\-])",
    re.IGNORECASE,
)
SHORTEST = 6
"""Shorter values of the environment are too common as words to be looked for."""


def is_private(name: str) -> bool:
    """A key or variable of that name holds a secret (`max_tokens` does not)."""
    return bool(_PRIVATE.search(name))


def redacted(text: str) -> str:
    """`text` without the values of the environment's private variables."""
    for name, value in sorted(os.environ.items()):
        if is_private(name) and len(value) >= SHORTEST:
            text = text.replace(value, HIDDEN)
    return text


def without_login(uri: str) -> str:
    """An address without the user and password that may stand in it."""
    parts = urlsplit(uri)
    if "@" not in parts.netloc:
        return uri
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
