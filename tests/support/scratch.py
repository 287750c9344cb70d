"""Where everything that the tests start leaves what it would leave in /tmp: killed JVMs don't clean up.

`make test` makes the folder and deletes it when all is green.
"""

from __future__ import annotations

import os
import tempfile

_IN_SCRATCH = f"-Djava.io.tmpdir={tempfile.gettempdir()} -XX:-UsePerfData"
JAVA_OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {_IN_SCRATCH}"
"""For every JVM of Spark; a broker of the lab has its own folder. A JVM that lives for seconds spends most of
its work on compiling what it could run as it is: the first compiler's code is enough here."""

SCRATCH = {"TMPDIR": tempfile.gettempdir(), "SPARK_SUBMIT_OPTS": JAVA_OPTIONS}
"""The environment variables that say so; everything that a test starts has them."""


def use_scratch() -> None:
    os.environ.update(SCRATCH)
