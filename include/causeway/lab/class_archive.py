"""An archive of the classes that a broker loads: with it a broker starts with a third less work.

Java writes it when a broker that was started for it ends. Java takes an archive only if it fits that Java and
those jars. If there is none that fits, a broker loads its classes as always: nothing depends on it.

`python -m causeway.lab.class_archive 4.3.1` makes one if it is missing, and never fails.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from causeway.core.kernel.errors import CausewayError
from causeway.lab.cluster import LabCluster
from causeway.lab.jars import ensure_jars
from causeway.lab.places import Say, class_archive, exclusive, java_executable
from causeway.lab.record import DEFAULT_JVM_OPTIONS, ClusterSpec

_CHECK_SECONDS = 60


def ensure_archive(kafka_version: str, *, root: Path | None = None, say: Say = print) -> None:
    """Once for a version of Kafka and a Java.

    :raises CausewayError: the broker that should write it doesn't start. | :raises OSError: no room for it.
    """
    jars = ensure_jars(f"kafka-{kafka_version}", root=root, say=say)
    archive = class_archive(jars)
    guard = jars.with_name(".archiving")
    with exclusive(guard, waiting=lambda: say(f"lab: another process archives classes; waiting for {guard}")):
        if not archive.exists():
            say(f"lab: archiving the classes of Kafka {kafka_version}, once (ten seconds)")
            _make(kafka_version, jars, archive, root=root, say=say)


def _make(kafka_version: str, jars: Path, archive: Path, *, root: Path | None, say: Say) -> None:
    """Written beside its place, tried, then renamed: Java dies of a file that was cut off."""
    with tempfile.TemporaryDirectory(prefix=".archive.", dir=jars.parent) as folder:
        draft = Path(folder) / "classes.jsa"
        options = (*DEFAULT_JVM_OPTIONS, f"-XX:ArchiveClassesAtExit={draft}")
        spec = ClusterSpec(
            name="archive", kafka_version=kafka_version, security="SASL_SSL", jvm_options=options
        )
        cluster = LabCluster(spec, Path(folder) / "home", root=root, say=say)
        try:
            cluster.start()
        finally:
            cluster.stop()
        if draft.exists() and _is_usable(draft, jars):
            draft.rename(archive)


def _is_usable(draft: Path, jars: Path) -> bool:
    sharing = ["-Xshare:on", f"-XX:SharedArchiveFile={draft}", *DEFAULT_JVM_OPTIONS]
    command = [java_executable(), *sharing, "-cp", f"{jars}/*", "kafka.tools.StorageTool", "random-uuid"]
    done = subprocess.run(command, cwd=draft.parent, capture_output=True, timeout=_CHECK_SECONDS, check=False)
    return done.returncode == 0


def main(versions: list[str]) -> int:
    for version in versions:
        try:
            ensure_archive(version, say=_say)
        except (CausewayError, OSError, subprocess.SubprocessError) as trouble:
            _say(f"lab: brokers of Kafka {version} start without an archive of their classes: {trouble}")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
