"""`causeway lab`: names that can't be, and wishes that what is there can't fulfil. No broker is started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from causeway.lab.cluster import LabCluster
from causeway.lab.places import lab_directory
from causeway.lab.record import ClusterSpec
from tests.proofs.hostile.case import HERE, Case

_HOME = {"CAUSEWAY_HOME": HERE}
_NAMES: dict[str, str] = {
    "": "--clusters",
    " ": "--clusters",
    ",": "empty name",
    "sf,": "empty name",
    "sf,,nyc": "empty name",
    "../../x": "lab cluster name",
    "..": "lab cluster name",
    ".": "lab cluster name",
    "/etc": "lab cluster name",
    "a b": "lab cluster name",
    "a.b": "lab cluster name",
    "a-b": "lab cluster name",
    "-x": "lab cluster name",
    "_x": "lab cluster name",
    "1st": "lab cluster name",
    "é": "lab cluster name",
    "\u0455f": "lab cluster name",
    "a\nb": "lab cluster name",
    "a\x1b[31m": "lab cluster name",
    "a'b": "lab cluster name",
    "$(id)": "lab cluster name",
    "kafka;rm": "lab cluster name",
    "{{x}}": "lab cluster name",
    "\udcff": "lab cluster name",
    "x" * 41: "lab cluster name",
    "x" * 10_000: "lab cluster name",
    "sf,../x": "lab cluster name = ../x",
    "sf,sf": "is there twice",
    "sf, sf": "is there twice",
    "sf,SF": "capital letters only",
    "sf,nyc,Sf": "capital letters only",
}

_OPTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "kafka": (("--kafka", "2.8"), "4.3.1"),
    "kafka-empty": (("--kafka", ""), "4.3.1"),
    "security": (("--security", "SSL"), "SASL_SSL"),
    "nodes-two-hundred": (("--nodes", "200"), "--nodes"),
    "nodes-zero": (("--nodes", "0"), "--nodes"),
    "nodes-negative": (("--nodes=-1",), "--nodes"),
    "nodes-word": (("--nodes", "three"), "--nodes"),
    "nodes-float": (("--nodes", "1.0"), "--nodes"),
    "unknown": (("--size", "3"), "--size"),
    "place": (("sf",), "sf"),
}

_WISHES: dict[str, tuple[tuple[str, ...], str]] = {
    "security": (("--security", "SASL_SSL"), "--security = SASL_SSL: .*PLAINTEXT.*--forget"),
    "nodes": (("--nodes", "3"), "--nodes = 3: .*1.*--forget"),
    "both": (("--nodes", "3", "--security", "SASL_SSL"), "--forget"),
    "security-second": (("--clusters", "nyc,sf", "--security", "SASL_SSL"), "cluster sf .*PLAINTEXT"),
    "json": (("--nodes", "3", "--json"), "--forget"),
}


def _with_data(folder: Path) -> None:
    """What an earlier lab has left: a cluster that doesn't run."""
    LabCluster(ClusterSpec(name="sf"), lab_directory(folder) / "sf", root=folder)


def _cases() -> Iterator[Case]:
    for number, (names, says) in enumerate(_NAMES.items()):
        for more in ((), ("--json",)):
            yield _case(f"name-{number}{''.join(more)}", ("--clusters=" + names, *more), says)
    for name, (options, says) in _OPTIONS.items():
        yield _case(f"option-{name}", options, says)
    for name, (options, says) in _WISHES.items():
        yield Case(
            name=f"lab-wish-{name}",
            argv=("lab", "up", *options),
            environment=_HOME,
            says=(says,),
            prepare=_with_data,
            leaves=(".causeway/lab/.busy",),
        )
    for verb in ("", "start", "UP", "down-all"):
        yield Case(name=f"lab-verb-{verb}", argv=("lab", *filter(None, (verb,))), says=("VERB|verb",))


def _case(name: str, options: tuple[str, ...], says: str) -> Case:
    return Case(name=f"lab-{name}", argv=("lab", "up", *options), environment=_HOME, says=(says,))


CASES: tuple[Case, ...] = tuple(_cases())
