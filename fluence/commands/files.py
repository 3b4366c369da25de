"""Files that a command is given, read as text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from groups.errors import FluenceError

_STDIN: Final = "-"


def read_text(name: str) -> tuple[str, str]:
    """A name for messages, and the content; "-" is standard input. FluenceError where there is no text."""
    if name == _STDIN:
        shown, read = "standard input", sys.stdin.buffer.read
    else:
        shown, read = name, Path(name).read_bytes
    try:
        return shown, read().decode("utf-8-sig")
    except OSError as error:
        raise FluenceError(f"{shown} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise FluenceError(f"{shown}, line {line}: this is not UTF-8 text") from error
