"""Whatever happens to Causeway's own topics is reported with the remedy, and that remedy works as it is
printed.

Foreign, empty, cut, newer and tombstoned records in each of them, and each of them deleted. The other flow of
the same target goes on through all of it.
"""

from __future__ import annotations

import json
import re
import shlex
import struct
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from causeway.cli.main import main
from causeway.core.journal.journal_format import FAILOVERS_TOPIC
from causeway.core.kernel.errors import FlowFenced, ProtocolFault
from causeway.core.kernel.identity import TopicPartition as Partition
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.offsets.offset_map import MAP_PARTITIONS, map_partition
from causeway.core.state.fences import Fence, fence_record
from causeway.lab.cluster import LabCluster
from tests.support.inline_flow import InlineFlow, create_topic, delete_topic, mirror_of, named, write
from tests.support.janitor import forget_positions

pytestmark = pytest.mark.integration
MAP_TOPIC = "causeway-offset-map.sf.internal"
_NEWEST = b'{"v":1,"generation":1000000000000}'
_FLOWS = """\
clusters: {{sf: {{connection: kafka_sf}}, nyc: {{connection: kafka_nyc}}}}
flows:
  {flow}: {{source: sf, target: nyc, topics: [{mine}], lanes: 2}}
  {other}: {{source: sf, target: nyc, topics: [{theirs}], lanes: 2}}
"""


@dataclass(slots=True)
class Said:
    code: int
    text: str

    def command(self, *words: str) -> list[str]:
        """The command that is printed with these words in it, as a person would type it."""
        found = [c for c in re.findall(r"`causeway ([^`]+)`", self.text) if all(w in c for w in words)]
        assert found, self.text
        return shlex.split(found[0].replace("...", "seen, and no fence"))


class Stage:
    def __init__(self, source: LabCluster, target: LabCluster, folder: Path, capsys: Any) -> None:
        self.source, self.target, self._capsys = source, target, capsys
        token = uuid.uuid4().hex[:8]
        self.name, self.bystander = f"mirror_{token}", f"bystander_{token}"
        self.mine, self.theirs = f"mine-{token}", f"theirs-{token}"
        self.file = folder / "flows.yaml"
        self.file.write_text(
            _FLOWS.format(flow=self.name, other=self.bystander, mine=self.mine, theirs=self.theirs),
            encoding="utf-8",
        )
        ends = named(source, "sf"), named(target, "nyc")
        self.run = InlineFlow(mirror_of(self.name, self.mine), *ends)
        self.other = InlineFlow(mirror_of(self.bystander, self.theirs), *ends)
        for topic in (self.mine, self.theirs):
            create_topic(source, topic)
            write(source, topic, 20)
        self.run.run()
        self.other.run()

    def say(self, *arguments: str) -> Said:
        code = main([*arguments, "--file", str(self.file)])
        shown = self._capsys.readouterr()
        assert "Traceback" not in shown.err
        return Said(code, shown.out + shown.err)

    def put(self, topic: str, key: bytes, value: bytes | None, partition: int = 0) -> int:
        """Where it was appended, by somebody who isn't Causeway."""
        placed: list[int] = []
        producer = Producer(self.target.endpoint().settings)
        producer.produce(
            topic,
            value,
            key,
            partition=partition,
            on_delivery=lambda _, message: placed.append(message.offset()),
        )
        assert producer.flush(30) == 0
        return placed[0]

    def copy_more(self) -> int:
        write(self.source, self.mine, 5)
        return self.run.run().records

    def assert_other_goes_on(self) -> None:
        write(self.source, self.theirs, 5)
        assert self.other.run().records == 5
        assert self.say("status", self.bystander).code == 0


@pytest.fixture(scope="module")
def target(lab_clusters: Callable[..., LabCluster]) -> LabCluster:
    return lab_clusters("nyc_harmed")


@pytest.fixture
def stage(
    sf: LabCluster, target: LabCluster, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> Iterator[Stage]:
    for alias, cluster in (("SF", sf), ("NYC", target)):
        extra = {"conn_type": "kafka", "extra": dict(cluster.endpoint().settings)}
        monkeypatch.setenv(f"AIRFLOW_CONN_KAFKA_{alias}", json.dumps(extra))
    yield Stage(sf, target, tmp_path, capsys)
    for topic in (FLOWS_TOPIC, MAP_TOPIC, FAILOVERS_TOPIC):
        if topic in sorted_topics(target):
            delete_topic(target, topic)


def sorted_topics(cluster: LabCluster) -> list[str]:
    from causeway.lab.clients import admin_client

    return sorted(admin_client(cluster.endpoint()).list_topics(timeout=30).topics)


def test_a_foreign_record_of_the_flows_topic_is_named_and_harms_nobody(stage: Stage) -> None:
    for key, value in ((b"some-app", b"x"), (b"", b""), (b"\xff\x00", b"{}")):
        stage.put(FLOWS_TOPIC, key, value)
        assert stage.say("status", stage.name).code == 0
    stage.put(FLOWS_TOPIC, b"", None)
    assert stage.copy_more() == 5
    for _ in range(2):
        doctor = stage.say("doctor", stage.name, "--read-only")
        assert (doctor.code, "isn't Causeway's" in doctor.text) == (6, True)
        assert stage.say(*doctor.command("recover", "--record")).code == 0
    assert not [line for line in doctor_failures(stage) if "own records" in line]
    stage.assert_other_goes_on()


def doctor_failures(stage: Stage) -> list[str]:
    found = json.loads(json_of(stage.say("doctor", stage.name, "--read-only", "--json").text))
    return [f"{c['check']}: {c['finding']}" for c in found["checks"] if c["result"] == "FAILED"]


def json_of(text: str) -> str:
    return text[text.index("{") : text.rindex("}") + 1]


def test_a_record_that_may_be_a_fence_stops_writing_until_it_is_named(stage: Stage) -> None:
    name = stage.name
    offset = stage.put(FLOWS_TOPIC, b"2/fence/%s/0123" % name.encode(), b'{"v":2,"state":"standing","by"')
    for arguments in (("status", name), ("plan", name), ("doctor", name, "--read-only")):
        said = stage.say(*arguments)
        assert (said.code, f"record {offset} of" in said.text) == (6, True), said.text
        assert stage.mine in said.text or arguments[0] == "doctor", "what is known is shown all the same"
    translated = stage.say("translate", name, f"{stage.mine}:0:3")
    assert (translated.code, f"record {offset} of" in translated.text) == (0, True)
    with pytest.raises(ProtocolFault, match=f"record {offset} of"):
        stage.copy_more()
    for refused in (
        ("fence", name, "--because", "x"),
        ("lift", name, "--because", "x"),
        ("adopt", name, stage.mine, "0", "3", "--because", "x"),
        ("sync", name),
        ("groups", name, "--sync"),
        ("maintain", name),
        ("failover", name, "--at", "latest", "--yes"),
        ("recover", name, "--because", "x"),
    ):
        said = stage.say(*refused)
        assert (said.code, f"record {offset} of" in said.text) == (6, True), (refused, said)
    stage.assert_other_goes_on()
    assert stage.say("next", name).command("recover", "--record") == said.command("recover", "--record")
    assert stage.say(*said.command("recover", "--record")).code == 0
    assert stage.copy_more() == 5 + 5
    status = stage.say("status", name)
    assert (status.code, f"STEPPED OVER record {offset}" in status.text) == (0, True)


def test_empty_and_broken_records_are_each_named_by_their_offset(stage: Stage) -> None:
    name = stage.name.encode()
    bad = [
        (b"2/fence/%s/a", b""),
        (b"1/run/%s", b"not JSON"),
        (b"1/fence/%s", b"[]"),
        (b"2/starts/%s", b"{}"),
    ]
    offsets = [stage.put(FLOWS_TOPIC, key % name, value) for key, value in bad]
    for offset in offsets:
        status = stage.say("status", stage.name)
        assert (status.code, f"record {offset} of" in status.text) == (6, True)
        assert stage.say(*status.command("recover", f"--record {offset} ")).code == 0
    assert stage.say("recover", stage.name, "--record", "0", "--because", "x").code == 2, "it can be read"
    assert stage.copy_more() == 5


def test_a_tombstone_heals_and_a_newer_format_is_refused_by_name(stage: Stage) -> None:
    key = b"3/fence/%s/0123" % stage.name.encode()
    stage.put(FLOWS_TOPIC, key, b'{"v":3}')
    for arguments in (
        ("status", stage.name),
        ("fence", stage.name, "--because", "x"),
        ("failover", stage.name, "--at", "latest", "--yes"),
    ):
        said = stage.say(*arguments)
        assert said.code == 6
        assert "written by a newer Causeway" in said.text
        assert "upgrade" in said.text
    stage.assert_other_goes_on()
    stage.put(FLOWS_TOPIC, key, None)
    assert stage.say("status", stage.name).code == 0
    assert stage.copy_more() == 5


def test_without_the_flows_topic_nothing_is_written_until_the_flow_is_fenced_again(stage: Stage) -> None:
    before = generation_of(stage)
    assert stage.say("fence", stage.name, "--because", "failed over").code == 0
    delete_topic(stage.target, FLOWS_TOPIC)
    for arguments in (
        ("status", stage.name),
        ("plan", stage.name),
        ("doctor", stage.name, "--read-only"),
        ("failover", stage.name, "--at", "latest", "--dry-run"),
        ("failover", stage.name, "--at", "latest", "--yes"),
        ("fence", stage.name, "--because", "x"),
        ("lift", stage.name, "--because", "x"),
        ("adopt", stage.name, stage.mine, "0", "3", "--because", "x"),
        ("restart-topic", stage.name, stage.mine, "--because", "x"),
        ("sync", stage.name),
        ("groups", stage.name, "--sync"),
        ("maintain", stage.name),
        ("recover", stage.name, "--record", "3", "--because", "x"),
    ):
        said = stage.say(*arguments)
        assert (said.code, f"has lost what it knew of flow {stage.name}" in said.text) == (6, True), (
            arguments,
            said,
        )
    translated = stage.say("translate", stage.name, f"{stage.mine}:0:3")
    assert "has lost what it knew" in translated.text
    with pytest.raises(ProtocolFault, match="has lost what it knew"):
        stage.copy_more()
    assert FLOWS_TOPIC not in sorted_topics(stage.target), "nothing was written"

    said = stage.say("next", stage.name)
    assert (said.code, "HARMED" in said.text) == (0, True), said
    recovered = stage.say(*said.command("recover"))
    assert (recovered.code, "fenced" in recovered.text) == (0, True)
    assert generation_of(stage) > max(before, 1_000_000_000)
    with pytest.raises(FlowFenced):
        stage.run.run()
    sheet = stage.say("failover", stage.name, "--at", "latest", "--dry-run")
    assert "no consumer group to move" in sheet.text, "no run is needed for that"
    assert "nothing is lost" in stage.say("recover", stage.name, "--because", "again").text
    assert stage.say(*recovered.command("lift")).code == 0
    assert stage.run.run().records == 5
    assert stage.say("status", stage.name).code == 0
    assert stage.say("translate", stage.name, f"{stage.mine}:0:3").code == 0

    refused = stage.say("status", stage.bystander)
    assert (refused.code, f"flow {stage.bystander}" in refused.text) == (6, True), "its fences are gone, too"
    assert stage.say(*refused.command("recover")).code == 0
    assert stage.say("lift", stage.bystander, "--because", "seen").code == 0
    stage.assert_other_goes_on()


def test_what_the_map_knows_is_not_begun_again_after_a_recovery(stage: Stage) -> None:
    """Committed offsets had expired before the topic was lost."""
    forget_positions(stage.target, f"causeway.{stage.name}")
    delete_topic(stage.target, FLOWS_TOPIC)
    recovered = stage.say(*stage.say("status", stage.name).command("recover"))
    assert recovered.code == 0, recovered
    assert stage.say(*recovered.command("lift")).code == 0
    assert stage.copy_more() == 5, "the start rule says earliest, and 20 records were mirrored before"
    assert stage.copy_more() == 5


def generation_of(stage: Stage) -> int:
    return int(json.loads(json_of(stage.say("status", stage.name, "--json").text))["generation"])


def test_records_of_the_map_are_named_and_nothing_wrong_is_reported(stage: Stage) -> None:
    name, tp = stage.name, Partition(f"sf.{stage.mine}", 0)
    number = map_partition(tp, MAP_PARTITIONS)
    good = stage.say("translate", name, f"{stage.mine}:0:3")
    stage.put(MAP_TOPIC, b"some-app", b"x", partition=number)
    assert stage.say("translate", name, f"{stage.mine}:0:3") == good

    newer = b"\x04" + run_key(tp, 0)[1:]
    stage.put(MAP_TOPIC, newer, b"\x03", partition=number)
    refused = stage.say("translate", name, f"{stage.mine}:0:3")
    assert (refused.code, "written by a newer Causeway" in refused.text) == (6, True)
    stage.put(MAP_TOPIC, newer, None, partition=number)
    assert stage.say("translate", name, f"{stage.mine}:0:3") == good

    stage.put(MAP_TOPIC, run_key(tp, 0), b"\x02\x00", partition=number)  # it was the run of the first records
    cut = stage.say("translate", name, f"{stage.mine}:0:3")
    assert (cut.code, "older than the map" in cut.text) == (1, True)
    assert stage.copy_more() == 5
    assert stage.say("translate", name, f"{stage.mine}:0:23").code == 0
    for _ in range(2):
        doctor = stage.say("doctor", name, "--read-only")
        assert (doctor.code, f"record {MAP_TOPIC}-{number}:" in doctor.text) == (6, True)
        assert stage.say(*doctor.command("recover", MAP_TOPIC)).code == 0
    assert not [line for line in doctor_failures(stage) if "own records" in line]
    stage.assert_other_goes_on()


def run_key(target: Partition, source_first: int) -> bytes:
    name = target.topic.encode()
    return struct.pack(">BH", 1, len(name)) + name + struct.pack(">iq", target.partition, source_first)


def test_without_the_map_it_is_reported_and_a_run_makes_it_again(stage: Stage) -> None:
    delete_topic(stage.target, MAP_TOPIC)
    for arguments in (
        ("status", stage.name),
        ("doctor", stage.name, "--read-only"),
        ("translate", stage.name, f"{stage.mine}:0:3"),
    ):
        said = stage.say(*arguments)
        assert said.code != 0
        assert MAP_TOPIC in said.text
        assert f"causeway run {stage.name} --until-caught-up" in said.text, said
    assert stage.copy_more() == 5
    assert stage.say("status", stage.name).code == 0
    stage.assert_other_goes_on()


def test_the_journal_is_mended_in_the_same_way_and_what_it_lost_is_reported(stage: Stage) -> None:
    name = stage.name
    create_topic(stage.target, FAILOVERS_TOPIC, cleanup_policy="compact")
    stage.put(FAILOVERS_TOPIC, b"order-7", b"hello")
    offset = stage.put(FAILOVERS_TOPIC, json.dumps([1, "begun", name, "r"]).encode(), b'{"v":1}')
    for arguments in (("failover", name, "--at", "latest", "--dry-run"), ("doctor", name, "--read-only")):
        said = stage.say(*arguments)
        assert (said.code, f"record {offset} of {FAILOVERS_TOPIC}" in said.text) == (6, True)
    assert stage.say(*said.command("recover", f"{FAILOVERS_TOPIC}-0:{offset}")).code == 0
    sheet = stage.say("failover", name, "--at", "latest", "--dry-run")
    assert "journal: 1 record of" in sheet.text
    assert stage.copy_more() == 5

    stage.put(FAILOVERS_TOPIC, json.dumps([1, "of mine", name, "r"]).encode(), _NEWEST)
    assert stage.copy_more() == 5, "it tells no turn"
    forged = [stage.put(FAILOVERS_TOPIC, json.dumps([1, "agreed", name, r]).encode(), _NEWEST) for r in "ab"]
    for offset in forged:
        said = stage.say("status", name)
        assert (said.code, "has lost what it knew" in said.text) == (6, True), said
        assert stage.say(*said.command("--record", FAILOVERS_TOPIC)).code == 0, offset
    assert stage.copy_more() == 5

    delete_topic(stage.target, FAILOVERS_TOPIC)
    fence = Fence(by="ann", because="x", since_ms=1, token="t", owner="failover 0123456789ab")
    stage.put(FLOWS_TOPIC, *fence_record(name, fence, most_lanes=2))
    for arguments in (("failover", name, "--at", "latest", "--dry-run"), ("doctor", name, "--read-only")):
        said = stage.say(*arguments)
        assert f"{FAILOVERS_TOPIC} has lost failover 0123456789ab" in said.text
    assert stage.say(*said.command("lift", "--fence")).code == 0
    assert stage.copy_more() == 5
    stage.assert_other_goes_on()
