"""Why a file cannot be written, and what a person can do about it."""

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform != "win32":
    import resource

FULL = (errno.ENOSPC, errno.EDQUOT)
NO_ROOM = (*FULL, errno.EFBIG)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
IN_WORDS = re.compile(r"\b(?:os error|errno) (\d+)", re.IGNORECASE)


def number(error: BaseException) -> int | None:
    """The system's number of what went wrong, which libraries in Rust and C++ give in their words alone; None of others."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = IN_WORDS.search(str(error))
    return int(found[1]) if found else None


def reason(error: BaseException) -> str:
    """What went wrong, in the system's words where it is the system's."""
    found = number(error)
    return str(error) if found is None else os.strerror(found)


def way_out(error: BaseException) -> str:
    """What to do about it, as a command to a person."""
    found = number(error)
    if found == errno.EFBIG:  # there may be room enough
        return f"let files grow larger: `ulimit -f` allows {_largest_file()}"
    if found in FULL:
        return "make room there"
    return "give the right to write there" if found in FORBIDDEN else "mend that first"


def _largest_file() -> str:
    if sys.platform == "win32":
        return "no more"
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return "no more" if limit == resource.RLIM_INFINITY else f"{limit / 2**20:,.1f} MiB"


@contextmanager
def writing(failed: str) -> Iterator[None]:
    """What the system refuses in the block is a ValueError: that it `failed`, why, and what to do."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{failed} ({reason(error)}); {way_out(error)}") from error
