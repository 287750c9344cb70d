"""Runs a command and tells what CPU it and its descendants used by the kernel's own sum, orphans too.

    python -I -S meter.py <answer file> <command> [argument ...]

Orphans become this process's children (it is their "subreaper"), so it counts however short they lived. What
escapes are children of a parent that ignores SIGCHLD, as PySpark's daemon does: `accounting.py` sees those.
SIGTERM goes on to the command; this process ends when the last descendant has.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def main(answer: Path, command: list[str]) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.execvp(command[0], command)
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(child, number))
    code = wait_for_all(child)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    draft = answer.with_name(f".{answer.name}")
    draft.write_text(json.dumps({"cpu_seconds": used.ru_utime + used.ru_stime, "ended_at": time.monotonic()}))
    draft.replace(answer)
    return code


def wait_for_all(child: int) -> int:
    """The command's exit code, once nobody is left."""
    code = 0
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return code
        if pid == child:
            code = os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]) & 0xFF)
