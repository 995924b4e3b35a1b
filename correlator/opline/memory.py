# SPDX-License-Identifier: MIT
"""A limit of a process's addresses (``ulimit -v``; setrlimit(2), RLIMIT_AS), and what is said when memory runs out.

Libraries reserve addresses ahead of use: under a limit they are told to reserve less. Each has an error of its own for
memory that it does not get, and below ``LEAST_BYTES`` some end the process: so less is refused.
"""

from __future__ import annotations

import errno
import os
import resource

from opline.errors import OplineError

LEAST_BYTES = 1 << 30
_ERRORS = ("OutOfMemoryException", "ArrowMemoryError")  # DuckDB's and Arrow's, which are not imported for that
_WORDS = (
    "Out of Memory", "bad allocation", "bad_alloc", "malloc of size", "failed to map segment", "annot allocate memory",
    "launch worker thread", "start new thread",
)  # fmt: skip
_M_ARENA_MAX = -8  # malloc.h
_ARENAS = 2


def limit_bytes() -> int | None:
    """The limit; None: there is none."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def spare() -> None:
    """Where there is a limit: one thread of OpenBLAS (64 MiB each), and few arenas of malloc(3) (64 MiB each). Before
    these libraries are imported. Raises OplineError for a limit that is too low.
    """
    limit = limit_bytes()
    if limit is None:
        return
    if limit < LEAST_BYTES:
        raise OplineError(
            f"`ulimit -v {limit >> 10}` allows too little: allow at least 1 GiB (`ulimit -v {LEAST_BYTES >> 10}`)."
        )
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    keep_little()


def keep_little() -> None:
    """Memory that is given back goes to the system soon: no pool in Arrow, few arenas of malloc(3). Before Arrow is
    imported.
    """
    import ctypes

    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """What malloc(3) holds for later goes to the system: before a step that needs other memory than the one before."""
    import ctypes

    ctypes.CDLL(None).malloc_trim(0)


def ran_out(error: BaseException | None) -> bool:
    """Whether it is about memory: an error of Python, of the system, or of a library, or one that was made of it."""
    while error is not None:
        if isinstance(error, MemoryError) or type(error).__name__ in _ERRORS:
            return True
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            return True
        if not isinstance(error, OplineError) and any(words in str(error) for words in _WORDS):
            return True
        error = error.__cause__
    return False
