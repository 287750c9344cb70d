"""Becomes the given command, and dies with the process that asked for it, even if that one is killed with -9.

    python -I -S tied_exec.py <pid of the starter> <command> [argument ...]

Run as a script, never imported: the request to the kernel has to be made in the new process, and making it
between fork and exec of a threaded Python is not safe. Linux only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # The starter may have died before the request was made: then nothing will be sent.
    if os.getppid() == int(sys.argv[1]):
        os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell is the point
