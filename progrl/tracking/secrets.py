"""Keeps what must stay private out of everything that is recorded."""

import os
import re

HIDDEN = "(hidden)"

_PRIVATE = re.compile(
    r"(^|[_.\-])(api_?key|access_?key|secret|token|password|passwd|pwd|credentials?|private_?key"
    r"|auth)($|[_.\-])",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(\w://)[^/@\s'\"]+@")
SHORTEST = 6
"""Shorter values of the environment are too common as words to be looked for."""


def is_private(name: str) -> bool:
    """A key or variable of that name holds a secret (`max_tokens` does not)."""
    return bool(_PRIVATE.search(name))


def redacted(text: str) -> str:
    """`text` without the values of the environment's private variables, and without logins."""
    for name, value in sorted(os.environ.items()):
        if is_private(name) and len(value) >= SHORTEST:
            text = text.replace(value, HIDDEN)
    return _LOGIN.sub(r"\1", text)
