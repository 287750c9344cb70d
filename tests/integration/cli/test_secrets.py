"""Passwords and keys of a run are found nowhere but in its memory and in its environment.

The canaries are the passwords that both clusters really ask for, and the passphrase and the key that a client
shows: so they are certainly in use. What is searched, while it runs and afterwards: the arguments of every
process of this machine, Spark's event logs, its pages, its local and work folders, all output and the report.
That Airflow's logs, database and XCom hold none is shown in tests/airflow/e2e.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from causeway.lab import access
from causeway.lab.access import Right
from causeway.lab.certificates import ensure_certificates
from causeway.lab.cluster import LabCluster
from causeway.lab.ports import free_ports
from tests.integration.copy.spark_flow import environment, flows_file, submit_command
from tests.proofs.chaos.parts.spark_runs import StandaloneCluster
from tests.support.inline_flow import create_topic, named, write
from tests.support.scratch import JAVA_OPTIONS

pytestmark = [pytest.mark.integration, pytest.mark.spark]
LabClusterFactory = Callable[..., LabCluster]
RECORDS = 2_000
_PAGES = ("/environment/", "/executors/", "/jobs/", "/api/v1/applications", "/stages/")


def canary() -> str:
    return f"canary-{uuid.uuid4().hex}"


@dataclass(slots=True)
class Doors:
    """Two guarded clusters, and connections to them that are full of canaries."""

    source: LabCluster
    target: LabCluster
    connections: dict[str, str] = field(default_factory=dict, repr=False)
    canaries: tuple[str, ...] = field(default=(), repr=False)


@pytest.fixture(scope="module")
def doors(lab_clusters: LabClusterFactory, tmp_path_factory: pytest.TempPathFactory) -> Doors:
    made = Doors(lab_clusters("sf_tls", security="SASL_SSL"), lab_clusters("nyc_tls", security="SASL_SSL"))
    passphrase = canary()
    key, certificate = encrypted_key(tmp_path_factory.mktemp("client"), passphrase)
    found = [passphrase, key.splitlines()[2]]
    for alias, cluster in (("sf", made.source), ("nyc", made.target)):
        password = canary()
        access.set_password(cluster.endpoint(), "carrier", password)
        cluster.grant(
            "carrier",
            Right("topic", "*", "all"),
            Right("group", "*", "all"),
            Right("transactional-id", "*", "all"),
        )
        pem = {"ssl.key.pem": key, "ssl.certificate.pem": certificate, "ssl.key.password": passphrase}
        login = {"sasl.username": "carrier", "sasl.password": password}
        settings = named(cluster, alias).settings | login | pem
        made.connections[alias] = json.dumps({"conn_type": "kafka", "extra": settings})
        found.append(password)
    made.canaries = tuple(found)
    return made


def encrypted_key(folder: Path, passphrase: str) -> tuple[str, str]:
    """A client's key as PEM, encrypted, and its certificate."""
    text = ensure_certificates(folder, "client").node.read_text()
    key = serialization.load_pem_private_key(text.encode(), password=None)
    sealed = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase.encode()),
    )
    return sealed.decode(), text[text.index("-----BEGIN CERTIFICATE") :]


@dataclass(slots=True)
class Search:
    """Looks for words again and again while a run goes on, and once more when it is over."""

    words: tuple[str, ...] = field(repr=False)
    planted: str
    folder: Path
    ui_port: int
    found: set[str] = field(default_factory=set)
    """Where, never what."""
    found_planted: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    """What was looked at, so that an empty result means something."""

    def during(self, process: subprocess.Popen[str]) -> tuple[str, str]:
        over = threading.Event()
        looks = ((self._processes, 0.05), (self._files, 0.5), (self._pages, 0.5))  # and its seconds of rest
        eyes = [threading.Thread(target=self._again, args=(over, *look)) for look in looks]
        for eye in eyes:
            eye.start()
        try:
            said = process.communicate(timeout=240)
        finally:
            over.set()
            process.kill()  # over already, unless its time was
            for eye in eyes:
                eye.join()
        for name, text in zip(("standard output", "standard error"), said, strict=True):
            self._look_at(name, text.encode())
        self._files()
        return said

    def _again(self, over: threading.Event, look: Callable[[], None], rest_seconds: float) -> None:
        while not over.wait(rest_seconds):
            look()

    def _processes(self) -> None:
        for entry in Path("/proc").iterdir():
            try:
                command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            except OSError:
                continue  # it ended
            if b"copy_flow.py" in command or b"pyspark" in command or b"org.apache.spark" in command:
                self.seen.add("arguments of Spark's processes")
            self._look_at("arguments of a process", command)

    def _pages(self) -> None:
        try:
            applications = json.loads(self._page("/api/v1/applications"))
        except (OSError, ValueError):
            return  # not there yet, or not any more
        details = [
            f"/api/v1/applications/{a['id']}/{kind}" for a in applications for kind in ("environment", "jobs")
        ]
        for path in (*_PAGES, *details):
            try:
                self._look_at(f"page {path.split('?')[0]}", self._page(path))
            except OSError:
                continue
            self.seen.add("Spark's pages")

    def _page(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ui_port}{path}", timeout=5) as answer:
            body: bytes = answer.read()
        return body

    def _files(self) -> None:
        for path in self.folder.rglob("*"):
            try:
                content = path.read_bytes() if path.is_file() else b""
            except OSError:
                continue  # temporary, and gone
            if "events" in path.parts and content:
                self.seen.add("event logs")
            if "work" in str(path.relative_to(self.folder)) and path.name == "stderr":
                self.seen.add("output of executors")
            self._look_at(f"file {path.relative_to(self.folder).parts[0]}/.../{path.name}", content)

    def _look_at(self, place: str, content: bytes) -> None:
        if any(word.encode() in content for word in self.words):
            self.found.add(place)
        if self.planted.encode() in content:
            self.found_planted.add(place)


@dataclass(slots=True)
class Run:
    exit_code: int
    output: str
    search: Search


class Runs:
    """Runs of one flow with everything switched on that could tell: event logs and pages."""

    def __init__(self, doors: Doors, folder: Path) -> None:
        self._doors, self._folder = doors, folder
        name = f"quiet_{uuid.uuid4().hex[:8]}"
        self.topic, self.flow = f"words-{name}", name
        self._file = flows_file(folder, name, self.topic)
        create_topic(doors.source, self.topic, 2)
        write(doors.source, self.topic, RECORDS)
        for sub in ("events", "local"):
            (folder / sub).mkdir()

    def run(self, **conf: str) -> Run:
        """A word is planted as the holder's name: the flow's own way to be seen everywhere."""
        (port,), planted = free_ports(1), canary()
        settings = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": f"file://{self._folder / 'events'}",
            "spark.local.dir": str(self._folder / "local"),
            "spark.ui.enabled": "true",
            "spark.ui.port": str(port),
            **{key.replace("_", "."): value for key, value in conf.items()},
        }
        report = self._folder / "report.json"
        command = submit_command(
            self.flow,
            self._file,
            "--run-for",
            "3",
            "--report",
            str(report),
            "--holder",
            planted,
            conf=settings,
        )
        process = subprocess.Popen(
            command,
            env=environment(self.connections, self._folder),
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        search = Search(self._doors.canaries, planted, self._folder, port)
        output = "".join(search.during(process))
        return Run(process.returncode, output, search)

    @property
    def connections(self) -> Mapping[str, str]:
        return self._doors.connections


@pytest.fixture
def runs(doors: Doors, tmp_path: Path) -> Runs:
    return Runs(doors, tmp_path)


@pytest.fixture(scope="module")
def local_run(doors: Doors, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Runs(doors, tmp_path_factory.mktemp("local")).run()


def test_no_secret_is_found_anywhere(local_run: Run) -> None:
    assert local_run.exit_code == 0, local_run.output
    assert f"{RECORDS:,} records" in local_run.output
    assert local_run.search.seen == {"arguments of Spark's processes", "event logs", "Spark's pages"}
    assert local_run.search.found == set()


def test_the_search_finds_what_is_planted(local_run: Run) -> None:
    """As an argument it is in all of these places: what finds it there would have found a secret there."""
    found = local_run.search.found_planted
    assert "arguments of a process" in found
    assert "file report.json/.../report.json" in found
    assert [place for place in found if place.endswith("/environment")]
    assert [place for place in found if place.startswith("file events/")]


def test_no_secret_is_found_on_a_cluster_of_spark(runs: Runs, spark_cluster: StandaloneCluster) -> None:
    done = runs.run(
        spark_master=spark_cluster.master,
        spark_pyspark_python=str(spark_cluster.python),
        spark_pyspark_driver_python=sys.executable,
        spark_executor_memory="500m",
        spark_executor_extraJavaOptions=JAVA_OPTIONS,
    )
    assert done.exit_code == 0, done.output
    assert f"{RECORDS:,} records" in done.output
    wanted = {"arguments of Spark's processes", "event logs", "Spark's pages", "output of executors"}
    assert done.search.seen == wanted
    assert done.search.found == set()


def test_a_login_that_fails_repeats_no_secret(runs: Runs, doors: Doors) -> None:
    wrong = canary()
    connection = json.loads(doors.connections["sf"])
    connection["extra"]["sasl.password"] = wrong
    doors = Doors(
        doors.source,
        doors.target,
        doors.connections | {"sf": json.dumps(connection)},
        (*doors.canaries, wrong),
    )
    runs._doors = doors
    done = runs.run()
    assert done.exit_code == 3
    (line,) = [line for line in done.output.splitlines() if line.startswith("causeway: error:")]
    assert "User:carrier" in line
    assert done.search.found == set()


@pytest.fixture
def spark_cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    """Its workers' folders lie where the search looks."""
    folder = tmp_path / "spark"
    folder.mkdir()
    cluster = StandaloneCluster(folder)
    try:
        yield cluster.start()
    finally:
        cluster.stop()
