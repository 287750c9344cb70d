"""How late a plain commit can come, and how long a failover waits for that.

No broker refuses a plain commit of an empty group to anybody, so the writer proves first that it may: by the
flows topic, written to and then read. Two bounds make such a proof worth something to others.
"""

from __future__ import annotations

PROOF_SECONDS = 2.0
"""Nothing is sent on a proof that was asked for longer ago, by a clock that goes on during a suspend."""
COMMIT_SECONDS = 1.5
"""A request that hasn't been answered for so long is given up, and sent again only on a proof that holds."""
OUTLIVED_SECONDS = PROOF_SECONDS + COMMIT_SECONDS
"""So long after a fence nobody who asked before it still commits, unless it was held up between its look at
the clock and its send. Whoever moves groups waits for the first, and as long again for the second.
"""
