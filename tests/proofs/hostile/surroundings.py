"""What surrounds the command: the current folder, Java, Spark, the shell's variables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.proofs.hostile.case import HERE, Case
from tests.proofs.hostile.player import FLOW

_RUN = ("run", FLOW, "--until-caught-up")
_GROUPS = ("groups", FLOW, "--spark")
_JAVA_17 = "Java 17"


def _odd_programs(folder: Path) -> None:
    """Folders that look like a Java's, and aren't one."""
    for name, mode in {"no-rights/bin/java": 0o644, "empty/bin/.keep": 0o644, "ends/bin/java": 0o755}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(mode)
    (folder / "folder/bin/java").mkdir(parents=True)


def _cases() -> Iterator[Case]:
    for verb, argv in {"run": _RUN, "groups": _GROUPS}.items():
        for word, home in {
            "nowhere": "/nope",
            "a-file": "/etc/passwd",
            "empty-folder": f"{HERE}/empty",
            "no-rights": f"{HERE}/no-rights",
            "a-folder": f"{HERE}/folder",
            "escape": "/\x1b[31m",
            "long": "/" + "x" * 3_000,
            "relative": "jdk",
        }.items():
            yield Case(
                name=f"{verb}-java-home-{word}",
                argv=argv,
                environment={"JAVA_HOME": home},
                prepare=_odd_programs,
                says=("JAVA_HOME", "bin/java", _JAVA_17),
                is_silent=False,
            )
        for word, path in {"nowhere": "/nope", "empty": "", "relative": "bin"}.items():
            for no_home in (None, ""):
                yield Case(
                    name=f"{verb}-no-java-{word}-{no_home is None}",
                    argv=argv,
                    environment={"JAVA_HOME": no_home, "PATH": path},
                    says=("PATH", "java", _JAVA_17),
                )
        for word, spark in {"nowhere": "/nope", "a-file": "/etc/passwd", "here": HERE}.items():
            yield Case(
                name=f"{verb}-spark-home-{word}",
                argv=argv,
                environment={"SPARK_HOME": spark},
                says=("SPARK_HOME", "bin/spark-submit"),
            )
    yield Case(
        name="run-java-that-ends",
        argv=_RUN,
        environment={"JAVA_HOME": f"{HERE}/ends"},
        prepare=_odd_programs,
        says=("Spark", _JAVA_17),
        own_process=True,
        is_slow=True,
        seconds=60,
    )
    yield from _folders()
    yield from _variables()


def _folders() -> Iterator[Case]:
    gone = "mkdir gone && cd gone && rmdir ../gone && causeway"
    for line in ("flows", f"plan {FLOW}", f"run {FLOW}", f"groups {FLOW} --report r.json", "flows --json"):
        says = ("the current folder", "go to")
        if "--json" in line:
            yield Case(name=f"folder-gone {line}", shell=f"{gone} {line}", is_silent=True)
        else:
            yield Case(name=f"folder-gone {line}", shell=f"{gone} {line}", says=says)
    yield Case(
        name="folder-without-flows", shell=f"cd / && causeway plan {FLOW}", says=("flows.yaml", "--file")
    )
    yield Case(name="home-gone", argv=("plan", "nope"), environment={"HOME": "/nope"}, says=("nope",))
    yield Case(name="no-home", shell="unset HOME; causeway plan nope", says=("nope",))
    yield Case(name="no-temp", argv=("plan", "nope"), environment={"TMPDIR": "/nope"}, says=("nope",))


def _variables() -> Iterator[Case]:
    for word, value in {
        "nowhere": "/nope/flows.yaml",
        "a-folder": HERE,
        "escape": "/\x1b[31m",
        "newline": "a\nb",
        "long": "x" * 5_000,
    }.items():
        environment = {"CAUSEWAY_FLOWS": value}
        yield Case(
            name=f"flows-variable-{word}", argv=("plan", FLOW), environment=environment, says=("--file|name",)
        )
    for encoding in ("ascii", "utf-8"):
        yield Case(
            name=f"encoding-{encoding}",
            shell="causeway plan $'caf\\xc3\\xa9\\xff'",
            environment={"PYTHONIOENCODING": encoding, "LC_ALL": "C"},
            says=("caf",),
        )
    for name, value in {
        "PYTHONWARNINGS": "default",
        "PYTHONUTF8": "1",
        "LANG": "xx_XX.nope",
        "TZ": "Nowhere/Land",
        "TERM": "",
        "COLUMNS": "1",
        "PYTHONUNBUFFERED": "1",
    }.items():
        yield Case(
            name=f"variable-{name}", argv=("plan", "nope"), environment={name: value}, own_process=True
        )
    yield Case(
        name="zone-of-this-machine",
        argv=("failover", FLOW, "--at", "2025-11-18T04:03:00", "--dry-run"),
        environment={"TZ": "Nowhere/Land"},
        own_process=True,
        says=("--at",),
    )


CASES: tuple[Case, ...] = tuple(_cases())
