"""What can go wrong in the lab, each a kind of `ClusterTrouble` (exit code 3).

ClusterTrouble
└── LabTrouble           something on this machine is missing or in the way
    ├── JarsRefused         what was fetched, or lies on the disk, is not what the lock file says
    ├── BrokerDied          a broker ended while it was waited for, or could not be started
    └── StateUnreadable     a file of the lab's own is damaged
"""

from __future__ import annotations

from causeway.core.kernel.errors import ClusterTrouble


class LabTrouble(ClusterTrouble):
    """Java is missing, a folder can't be used, or a process doesn't end."""


class JarsRefused(LabTrouble):
    """A jar is missing, is one too many, or has another checksum than the lock file says."""


class BrokerDied(LabTrouble):
    """A broker ended; the remedy has the last lines of its log."""


class StateUnreadable(LabTrouble):
    """A state file isn't what the lab writes: delete it."""
