"""Java's archive of a broker's classes: taken if it is there, and missed by nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway.lab import class_archive as archiving
from causeway.lab.errors import LabTrouble
from causeway.lab.node import Node
from causeway.lab.places import class_archive
from causeway.lab.record import ClusterRecord, ClusterSpec


def java_in(folder: Path) -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/java").write_text("#!/bin/sh\n")
    (folder / "bin/java").chmod(0o755)


def test_it_lies_beside_its_jars_and_another_java_has_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars, found = tmp_path / "jars/kafka-4.3.1", set()
    for home in ("one", "other"):
        java_in(tmp_path / home)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / home))
        found.add(class_archive(jars))
        assert class_archive(jars) == class_archive(jars)
    assert len(found) == 2
    assert {each.parent for each in found} == {jars.parent}


def test_a_broker_is_given_the_archive_that_is_there(tmp_path: Path) -> None:
    jars = tmp_path / "kafka-4.3.1"
    node = Node("sf", 1, tmp_path / "node-1")
    record = ClusterRecord(spec=ClusterSpec(name="sf"), cluster_id="", ports={}, passwords={}, processes={})
    assert not [option for option in node._java(record, jars) if "Archive" in option]
    class_archive(jars).touch()
    assert f"-XX:SharedArchiveFile={class_archive(jars)}" in node._java(record, jars)


def test_who_can_not_make_it_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_java(*_: object, **__: object) -> None:
        raise LabTrouble("java", rule="the lab's brokers need Java 17 or newer")

    monkeypatch.setattr(archiving, "ensure_archive", no_java)
    assert archiving.main(["4.3.1", "3.9.2"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2
    assert "Kafka 4.3.1 start without an archive of their classes: java" in said[0]
