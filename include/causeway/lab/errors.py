"""What can go wrong in the lab, each a kind of `ClusterTrouble` (exit code 3).

ClusterTrouble
└── LabTrouble           something on this machine is missing or in the way
    ├── JarsRefused         what was fetched, or lies on the disk, is not what the lock file says
    ├── BrokerDied          a broker ended while it was waited for, or could not be started
    └── StateUnreadable     a file of the lab's own is damaged
"""

from __future__ import annotations

from causeway.core.errors import ClusterTrouble


class LabTrouble(ClusterTrouble):
    """Java is missing, a directory can't be used, a process won't end."""


class JarsRefused(LabTrouble):
    """A jar is missing, is one too many, or has another checksum than the lock file."""


class BrokerDied(LabTrouble):
    """The remedy ends with the last lines of the broker's log."""


class StateUnreadable(LabTrouble):
    """A state file that isn't what the lab writes; deleting it is the way out."""
