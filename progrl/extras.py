"""Optional packages of progrl's own: the line that installs them here."""

import shlex
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
PINS = "constraints.txt"


def install_line(*extras: str) -> str:
    """The shell line that adds extras to the Python that runs: in a checkout with its pins, else to
    progrl as it is installed."""
    python, names = Path(sys.executable), ",".join(extras)
    if not ((CHECKOUT / "pyproject.toml").is_file() and (CHECKOUT / PINS).is_file()):
        return f"{shlex.quote(str(python))} -m pip install 'progrl[{names}]'"
    place, pins = CHECKOUT, CHECKOUT / PINS
    if Path.cwd() == CHECKOUT.resolve():
        place, pins = Path(), Path(PINS)
        if python.is_relative_to(CHECKOUT):
            python = python.relative_to(CHECKOUT)
    words = (str(python), "-m", "pip", "install", "-c", str(pins), "-e", f"{place}[{names}]")
    return shlex.join(words)
