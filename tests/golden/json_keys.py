"""What `--json` prints, verb by verb: the path of each key, and what kinds of values it can have.

No broker is needed. A verb is typed as a person types it, only its use case gives examples instead
(`exemplars.py`), made from the annotation of what it returns. So the verb builds its own JSON from them.
"""

from __future__ import annotations

import importlib
import json
import os
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch
from uuid import UUID

from causeway.cli.parser import parser
from causeway.cli.request import Request
from causeway.config.flows_file.load import load_flows
from causeway.core.copy.report import parked_dict
from causeway.core.copy.unknown_outcomes import UnknownOutcome
from causeway.core.kernel.errors import CausewayError, ClusterTrouble, ClusterUnreachable
from causeway.core.kernel.estimate import Estimate, exact, unknown
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.offsets.mm2_offset_syncs import Inherited
from causeway.core.offsets.translation import FlowMap, PartitionMap, Reach
from causeway.core.state.parked import Parked
from causeway.usecases.inspect.known_on_target import KnownPlace
from tests.golden.exemplars import ANYTHING, SPARSE, VARIANTS, Exemplars
from tests.support import builders

FLOWS = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
  oak: {connection: kafka_oak}
flows:
  sf_to_nyc:
    source: sf
    target: nyc
    topics: [orders]
    replication.policy: identity
    sync.group.offsets.enabled: true
    schedule: "@hourly"
    run_for: 10m
    start: 2026-01-31T12:00:00Z
  nyc_to_sf: {source: nyc, target: sf, failback_of: sf_to_nyc, replication.policy: identity}
"""
MM2 = """\
clusters = sf, nyc
sf.bootstrap.servers = sf:1
nyc.bootstrap.servers = nyc:1
sf->nyc.enabled = true
sf->nyc.topics = orders
errors.tolerance = all
"""
KEYED_BY_DATA = {"outcomes", "pids", "repacked", "repacked_batches"}
"""Objects whose keys are words of a list that may grow."""

Keys = dict[str, str]
"""By path: kinds of values, with `absent` where the key isn't always there."""


@dataclass(frozen=True, slots=True)
class Typed:
    """What is typed, and the use cases that give examples."""

    arguments: str
    use_cases: tuple[str, ...] = ()


_NEXT = "causeway.usecases.inspect.episode.find_next_step"
_BACK = "causeway.usecases.failback."
_OVER = "causeway.usecases.failover."
TYPED: dict[str, tuple[Typed, ...]] = {
    "lab up": (Typed("lab up", ("causeway.lab.lab.up",)),),
    "lab down": (Typed("lab down --forget", ("causeway.lab.lab.down", "causeway.lab.lab.forget")),),
    "lab status": (Typed("lab status", ("causeway.lab.lab.status",)),),
    "flows": (Typed("flows"), Typed("flows --connections")),
    "plan": (Typed("plan sf_to_nyc", ("causeway.usecases.inspect.flow_status.inspect_flow",)),),
    "run": (
        Typed(
            "run sf_to_nyc",
            (
                "causeway.spark.copy_job.run",
                "causeway.usecases.groups.sync.weigh_groups",
                "causeway.usecases.groups.sync.sync_groups",
                "causeway.spark.groups_job.run",
            ),
        ),
        Typed("run sf_to_nyc --dry-run", ("causeway.usecases.inspect.flow_status.inspect_flow",)),
    ),
    "status": (
        Typed(
            "status sf_to_nyc",
            (
                "causeway.usecases.inspect.status_without_source.inspect_for_status",
                "causeway.usecases.groups.unprotected.find_unprotected_groups",
                _NEXT,
            ),
        ),
    ),
    "verify": (Typed("verify sf_to_nyc", ("causeway.usecases.verify.flow.verify_mirror",)),),
    "next": (Typed("next sf_to_nyc", (_NEXT,)),),
    "groups": (Typed("groups sf_to_nyc", ("causeway.usecases.groups.sync.sync_groups",)),),
    "doctor": (Typed("doctor sf_to_nyc", ("causeway.usecases.doctor.examine.examine",)),),
    "translate": (
        Typed(
            "translate sf_to_nyc orders:0:101 orders:0:60 orders:0:1",
            ("causeway.usecases.offsets.translate.load_flow_map",),
        ),
        Typed(
            "translate sf_to_nyc sf.orders:0:41 x:0:1 --reverse",
            ("causeway.usecases.offsets.translate.load_flow_map",),
        ),
    ),
    "maintain": (Typed("maintain sf_to_nyc", ("causeway.usecases.offsets.maintain_map.maintain_map",)),),
    "drift": (Typed("drift sf_to_nyc", ("causeway.usecases.upkeep.sync.read_drift",)),),
    "sync": (Typed("sync sf_to_nyc", ("causeway.usecases.upkeep.sync.sync_flow",)),),
    "heartbeat": (Typed("heartbeat sf_to_nyc", ("causeway.usecases.upkeep.heartbeats.write_heartbeat",)),),
    "upstreams": (Typed("upstreams nyc", ("causeway.usecases.upkeep.heartbeats.see_upstreams",)),),
    "fence": (Typed("fence sf_to_nyc --because x", ("causeway.usecases.run_lock.fence.fence_flow",)),),
    "lift": (Typed("lift sf_to_nyc --because x", (f"{_BACK}lift.lift_by_hand",)),),
    "recover": (Typed("recover sf_to_nyc --because x", ("causeway.usecases.repair.recover.recover_flow",)),),
    "failover": (
        Typed("failover sf_to_nyc --at latest --yes", (f"{_OVER}execute.fail_over", _NEXT)),
        Typed("failover sf_to_nyc --at latest --dry-run", (f"{_OVER}execute.preview_failover",)),
        Typed("failover sf_to_nyc --rollback x --yes", (f"{_OVER}rollback.roll_back", _NEXT)),
    ),
    "failback": (
        Typed("failback sf_to_nyc --resume --yes", (f"{_BACK}start.fail_back", _NEXT)),
        Typed("failback sf_to_nyc --rebuild --dry-run", (f"{_BACK}start.preview_failback",)),
        Typed("failback sf_to_nyc --home --dry-run", (f"{_BACK}complete.preview_completion",)),
        Typed(
            "failback sf_to_nyc --home --yes",
            (f"{_BACK}complete.complete_failback", f"{_BACK}protect_groups.protect_again", _NEXT),
        ),
    ),
    "drill": (Typed("drill sf_to_nyc", (f"{_OVER}drill.drill", f"{_OVER}drill.history")),),
    "adopt": (
        Typed("adopt sf_to_nyc orders 0 1 --because x", ("causeway.usecases.repair.adopt.adopt_partition",)),
    ),
    "accept-gap": (
        Typed(
            "accept-gap sf_to_nyc orders 0 1 2 --because x",
            ("causeway.usecases.repair.accept_gap.accept_gap",),
        ),
    ),
    "restart-topic": (
        Typed(
            "restart-topic sf_to_nyc orders --because x",
            ("causeway.usecases.repair.restart_topic.restart_topic",),
        ),
    ),
    "reconcile": (
        Typed(
            "reconcile sf_to_nyc orders 0 --because x",
            ("causeway.usecases.repair.reconcile.reconcile_partition",),
        ),
    ),
    "import-mm2": (
        Typed("import-mm2 mm2.properties --overwrite --dry-run"),
        Typed("import-mm2 mm2.properties --adopt --dry-run", ("causeway.usecases.takeover.run.take_over",)),
    ),
}


def keys_of_all_verbs() -> dict[str, Keys]:
    """By what is typed; and of an error, which each verb can end with."""
    with _project() as place:
        found = {typed.arguments: _keys_of(typed, place) for each in TYPED.values() for typed in each}
    return {**found, "(an error)": _keys([_error_in_json()])}


def _keys_of(typed: Typed, place: Path) -> Keys:
    return _keys([_printed(typed, place, variant) for variant in range(VARIANTS)])


def _printed(typed: Typed, place: Path, variant: int) -> object:
    """What the verb prints if its use cases return the examples of this variant."""
    exemplars = Exemplars(variant, _given(place, variant))
    with ExitStack() as stack:
        for use_case in typed.use_cases:
            module, _, name = use_case.rpartition(".")
            example = exemplars.returned_by(getattr(importlib.import_module(module), name))
            stack.enter_context(patch(use_case, lambda *_, example=example, **__: example))
        options = _parser().parse_args(typed.arguments.split())
        request = Request(
            options=options, environ=os.environ, directory=place, progress=lambda _: None, say=lambda _: None
        )
        return json.loads(json.dumps(options.verb(request).payload))


@cache
def _parser() -> ArgumentParser:
    return parser()


@cache
def _flow(place: Path) -> Flow:
    return load_flows(place / "include" / "flows.yaml").flow("sf_to_nyc")


@contextmanager
def _project() -> Iterator[Path]:
    """A project's folder, as the current one, with connections that lead nowhere."""
    with TemporaryDirectory() as folder, chdir(folder), patch.dict(os.environ, _environment()):
        os.environ.pop("CAUSEWAY_FLOWS", None)
        _lay_out(Path(folder))
        yield Path(folder)


def _lay_out(place: Path) -> None:
    (place / "include").mkdir()
    (place / "include" / "flows.yaml").write_text(FLOWS, encoding="utf-8")
    (place / "mm2.properties").write_text(MM2, encoding="utf-8")


def _environment() -> dict[str, str]:
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": "kafka:1"}}
    fit = {f"AIRFLOW_CONN_KAFKA_{name}": json.dumps(connection) for name in ("SF", "NYC")}
    return {**fit, "AIRFLOW_CONN_KAFKA_OAK": "{}"}


def _error() -> ClusterUnreachable:
    return ClusterUnreachable("sf", value="kafka:1", rule="doesn't answer", remedy="look")


def _error_in_json() -> object:
    error = _error()
    return {**error.as_dict(), "message": str(error), "exit_code": error.exit_code}


def _given(place: Path, variant: int) -> Mapping[object, object]:
    """Examples of what no annotation describes, or whose parts have to fit together."""
    plain, other = Exemplars(variant, {}), TopicPartition(ANYTHING, 2)
    figure = exact(1) if variant < SPARSE else unknown("x")
    parked, doubt, place_known = plain.of(Parked), plain.of(UnknownOutcome), plain.of(KnownPlace)
    assert isinstance(parked, Parked)
    assert isinstance(doubt, UnknownOutcome)
    return {
        Flow: _flow(place),
        CausewayError: _error(),
        ClusterTrouble: _error(),
        FlowMap: _flow_map(),
        TopicPartition: TopicPartition(ANYTHING, 1),
        Estimate: figure,
        "FailbackRun.facts": {
            "plan": "x",
            "parted": True,
            "accepts_loss": True,
            "exports": {ANYTHING: 1},
            "tail": figure.as_dict(),
            "written": figure.as_dict(),
        },
        "FlowState.ended": -2,
        "FlowView.parked": {other: parked},
        "FlowView.unseen": {other: place_known},
        "NewPartition.source": TopicPartition(ANYTHING, 3),
        "RunReport.in_doubt": [doubt.as_dict()],
        "RunReport.refused_topics": [{"topic": "x", "reason": "x", "remedy": "x"}],
        "PartitionReport.parked": parked_dict(parked),
    }


def _flow_map() -> FlowMap:
    """With a run, a bound from MirrorMaker 2's offset syncs, and a place that it can't say."""
    source, target, at = UUID(int=1), UUID(int=2), TopicPartition("sf.orders", 0)
    run = builders.mapped_range(100, 40, (3, 2), (2, 0))
    inherited = Inherited(
        source_next=SourceOffset(100),
        target_next=TargetOffset(40),
        points=((10, 5), (60, 30)),
        source_topic_id=source,
        target_topic_id=target,
    )
    reach = Reach(source_next=SourceOffset(107), target_next=TargetOffset(45))
    index = PartitionMap([run], reach, source_topic_id=source, target_topic_id=target, inherited=inherited)
    pair = builders.known_pair()
    return FlowMap({"sf.orders": pair}, {at: index})


# paths and kinds


def _keys(printed: list[object]) -> Keys:
    kinds: dict[str, set[str]] = {}
    objects: dict[str, list[set[str]]] = {}
    for each in printed:
        for path, value in _walk("", each):
            kinds.setdefault(path, set()).add(_kind(value))
            if isinstance(value, dict):
                objects.setdefault(path, []).append({_named(path, key) for key in value})
    for path, all_of_them in objects.items():
        for key in set.union(*all_of_them) - {"*"}:
            if any(key not in keys for keys in all_of_them):
                kinds[f"{path}/{key}"].add("absent")
    return {path: " | ".join(sorted(kinds[path])) for path in sorted(kinds) if path}


def _walk(path: str, value: object) -> Iterator[tuple[str, object]]:
    yield path, value
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _walk(f"{path}/{_named(path, key)}", each)
    elif isinstance(value, list):
        for each in value:
            yield from _walk(f"{path}[]", each)


def _named(path: str, key: str) -> str:
    """`*` for a key that is data."""
    is_data = ANYTHING in key or path.rpartition("/")[2] in KEYED_BY_DATA
    return "*" if is_data else key


def _kind(value: object) -> str:
    return "null" if value is None else {"dict": "object"}.get(type(value).__name__, type(value).__name__)
