"""Gets sets of Kafka's jars: resolved by the Ivy that PySpark bundles, pinned by the lock files beside this.

A set is what one kind of process needs, under the name of its directory and of its lock file: a broker of
some version; the classes by which clients read MirrorMaker 2's topics, which tests ask; MirrorMaker 2 itself,
which is only measured against and so never fetched by `make setup`.

Invariants:
(a) a directory of jars holds exactly what its lock file lists, or it isn't there;
(b) jars that are there and match cost no network;
(c) two processes never fetch at once.

`python -m causeway.lab.jars kafka-4.3.1` fetches; with `--relock` it writes the lock files again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

from causeway.core.kernel.errors import CausewayError
from causeway.lab.errors import JarsRefused, LabTrouble
from causeway.lab.places import Say, exclusive, jars_directory, java_executable, project_root, write_whole

# What runs, and what makes it write a log: Kafka's own distribution adds that beside its dependencies.
MODULES = {
    "kafka-4.3.1": (
        "org.apache.kafka:kafka_2.13:4.3.1",
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
    ),
    "kafka-3.9.2": (
        "org.apache.kafka:kafka_2.13:3.9.2",
        "org.slf4j:slf4j-reload4j:1.7.36",
        "ch.qos.reload4j:reload4j:1.2.25",
    ),
    "mirror-client-4.3.1": ("org.apache.kafka:connect-mirror-client:4.3.1",),
    "mirror-maker-4.3.1": (
        "org.apache.kafka:connect-mirror:4.3.1",
        "org.apache.kafka:connect-runtime:4.3.1",
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
    ),
}
_LOCKS = Path(__file__).parent
_FETCH_SECONDS = 900


def ensure_jars(name: str, *, root: Path | None = None, say: Say = print) -> Path:
    """The directory with this set's jars, fetched if need be.

    :raises JarsRefused: what is there, or what was fetched, isn't what the lock file says.
    :raises LabTrouble: an unknown set, no Java, no network.
    """
    lock = read_lock(name)
    home = project_root(root)
    directory = jars_directory(home, name)
    if directory.is_dir():
        verify(directory, lock, lock_name=lock_path(name).name)
        return directory
    guard = directory.with_name(".fetching")  # for all sets: they share Ivy's download directory
    with exclusive(guard, waiting=lambda: say(f"jars: another process is fetching {name}; waiting")):
        if not directory.is_dir():
            say(f"jars: fetching {name} ({len(lock)} jars, about a minute)")
            _install(name, lock, directory)
            say(f"jars: {name} is in {directory}")
    return directory


def lock_path(name: str) -> Path:
    return _LOCKS / f"{name}.lock"


def read_lock(name: str) -> dict[str, str]:
    """File name -> sha256."""
    if name not in MODULES:
        raise LabTrouble(
            "set of jars",
            value=name,
            rule=f"the lab has lock files for {', '.join(MODULES)}",
            remedy="use one of these",
        )
    lines = lock_path(name).read_text(encoding="ascii").splitlines()
    return {jar: digest for digest, jar in (line.split() for line in lines if line and line[0] != "#")}


def verify(directory: Path, lock: dict[str, str], *, lock_name: str) -> None:
    """:raises JarsRefused: naming the first jar that is missing, too many or changed."""
    found = {path.name: path for path in directory.iterdir()}
    remedy = (
        f"delete {directory} and fetch again; if that happens again, the repository serves something else"
    )
    for name in sorted(lock.keys() - found.keys()):
        raise JarsRefused(name, rule=f"listed in {lock_name} and not there", remedy=remedy)
    for name in sorted(found.keys() - lock.keys()):
        raise JarsRefused(name, rule=f"there and not listed in {lock_name}", remedy=remedy)
    for name, expected in sorted(lock.items()):
        digest = sha256_of(found[name])
        if digest != expected:
            raise JarsRefused(
                name, value=f"sha256 {digest}", rule=f"{lock_name} says {expected}", remedy=remedy
            )


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _install(name: str, lock: dict[str, str], directory: Path) -> None:
    """Fetch beside the final place, verify there, then rename: half a set never has the right name."""
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as scratch:
        fetched = Path(scratch) / "jars"
        retrieve(MODULES[name], fetched, ivy_home=directory.parents[1] / "ivy")
        verify(fetched, lock, lock_name=lock_path(name).name)
        fetched.rename(directory)


def retrieve(modules: tuple[str, ...], directory: Path, *, ivy_home: Path) -> None:
    """Let Ivy resolve the modules with all they need at run time; their jars go into a new directory."""
    directory.mkdir(parents=True)
    descriptor = directory.with_name("ivy.xml")
    descriptor.write_text(_ivy_descriptor(modules), encoding="utf-8")
    command = [
        java_executable(),
        "-XX:-UsePerfData",
        f"-Divy.default.ivy.user.dir={ivy_home}",
        "-jar",
        str(_ivy_jar()),
        *("-ivy", str(descriptor), "-confs", "default", "-types", "jar", "bundle"),
        *("-retrieve", f"{directory}/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise _not_fetched(modules, f"no answer in {_FETCH_SECONDS} s") from None
    if done.returncode != 0 or not any(directory.iterdir()):
        raise _not_fetched(modules, _ivy_complaint(done.stdout + done.stderr))


def _not_fetched(modules: tuple[str, ...], why: str) -> LabTrouble:
    return LabTrouble(
        modules[0],
        rule=f"Ivy could not fetch it: {why}",
        remedy="check the network, then try again: what came is kept",
    )


def _ivy_complaint(output: str) -> str:
    """Ivy prints pages; the lines that tell are its warnings of what was not found."""
    telling = [line.strip() for line in output.splitlines() if "not found" in line or "Exception" in line]
    return " | ".join((telling or output.split("\n"))[:3])


def _ivy_descriptor(modules: tuple[str, ...]) -> str:
    def dependency(module: str) -> str:
        organisation, name, revision = map(quoteattr, module.split(":"))
        return f'<dependency org={organisation} name={name} rev={revision} conf="default->default"/>'

    return (
        '<ivy-module version="2.0"><info organisation="causeway" module="lab"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(map(dependency, modules))}</dependencies></ivy-module>"
    )


def _ivy_jar() -> Path:
    """Found without importing pyspark, which only the Spark room may."""
    spec = importlib.util.find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    jars = [jar for place in places or () for jar in Path(place).glob("jars/ivy-*.jar")]
    if not jars:
        raise LabTrouble("pyspark", rule="its jars/ivy-*.jar is not there", remedy="install requirements.txt")
    return jars[0]


def relock(name: str, *, root: Path | None = None) -> int:
    """Resolve again and trust what comes: for a maintainer who raises a version, never for a user."""
    directory = jars_directory(project_root(root), name)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        fetched = Path(scratch) / "jars"
        retrieve(MODULES[name], fetched, ivy_home=directory.parents[1] / "ivy")
        lines = [f"{sha256_of(path)}  {path.name}\n" for path in sorted(fetched.iterdir())]
    write_whole(lock_path(name), "".join(lines))
    shutil.rmtree(directory, ignore_errors=True)
    return len(lines)


def main(arguments: list[str]) -> int:
    try:
        for name in [word for word in arguments if word != "--relock"] or list(MODULES):
            if "--relock" in arguments:
                _say(f"jars: {relock(name)} jars of {name} locked")
            ensure_jars(name, say=_say)
    except CausewayError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
