"""A Kafka cluster on this machine, from its first start to its last stop.

Its home directory is the cluster: data, ports, passwords and certificates stay there, so that any process
can open it again. Nodes run on their own; this class holds no connection and no thread.
"""

from __future__ import annotations

import base64
import json
import signal
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import UnknownName
from causeway.lab import access, processes, readiness
from causeway.lab.broker_settings import node_name
from causeway.lab.certificates import CertificateFiles, ensure_certificates
from causeway.lab.credentials import ADMIN, MECHANISM, make_password
from causeway.lab.errors import LabTrouble
from causeway.lab.jars import ensure_jars
from causeway.lab.node import Node
from causeway.lab.places import Say
from causeway.lab.ports import free_ports
from causeway.lab.record import ClusterRecord, ClusterSpec, NodePorts, load_record, save_record

_STOP_SECONDS = 20.0
_READY_SECONDS = 90.0


class LabCluster:
    """Start, stop and mistreat a cluster.

    A tied cluster's brokers die with the process that started them; others stay until somebody stops them.
    """

    def __init__(
        self, spec: ClusterSpec, home: Path, *, root: Path | None = None, tied: bool = True, say: Say = print
    ) -> None:
        """Prepare the home; one that has been used before keeps its data, ports and passwords."""
        self.home = _usable(home.absolute())
        self._root, self._tied, self._say = root, tied, say
        known = self._record_path.exists()
        self._record = load_record(self._record_path).with_spec(spec) if known else _new_record(spec)
        self._nodes = {
            number: Node(spec.name, number, self.home / f"node-{number}") for number in self._record.ports
        }
        self._save(self._record)

    @classmethod
    def open(
        cls, home: Path, *, root: Path | None = None, tied: bool = False, say: Say = print
    ) -> LabCluster:
        """A cluster that was made before, running or not.

        :raises StateUnreadable: there is none in this home.
        """
        return cls(load_record(home / "cluster.json").spec, home, root=root, tied=tied, say=say)

    # What it is

    @property
    def spec(self) -> ClusterSpec:
        return self._record.spec

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def cluster_id(self) -> str:
        return self._record.cluster_id

    @property
    def bootstrap_servers(self) -> str:
        return self._record.bootstrap_servers

    @property
    def node_numbers(self) -> tuple[int, ...]:
        return tuple(self._nodes)

    def pid(self, node: int = 1) -> int | None:
        """None: it isn't running."""
        process = self._running.get(self._node(node).number)
        return process.pid if process else None

    def log_path(self, node: int = 1) -> Path:
        return self._node(node).log

    def endpoint(self, user: str | None = None) -> ClusterEndpoint:
        """How a client reaches it, in librdkafka's words; as the super user unless another one is given."""
        settings = {"bootstrap.servers": self.bootstrap_servers, "security.protocol": self.spec.security}
        if self.spec.security == "SASL_SSL":
            settings |= {
                "sasl.mechanism": MECHANISM,
                "sasl.username": user or ADMIN,
                "sasl.password": self._password(user or ADMIN),
                "ssl.ca.location": str(self._certificates().authority),
            }
        return ClusterEndpoint(self.name, settings)

    def connection_json(self, user: str | None = None) -> str:
        """The same as an Airflow connection, for AIRFLOW_CONN_KAFKA_<NAME>."""
        return json.dumps({"conn_type": "kafka", "extra": self.endpoint(user).settings})

    # Running it

    def start(self) -> None:
        """Start every node that isn't running, and wait until a client is served by all.

        :raises BrokerDied: with the end of the broker's log.
        """
        self.launch()
        self.wait_until_ready()

    def launch(self, nodes: Iterable[int] | None = None) -> None:
        """Start processes and return at once: several clusters can so come up together."""
        jars = ensure_jars(f"kafka-{self.spec.kafka_version}", root=self._root, say=self._say)
        running = self._running
        asleep = [self._node(number) for number in nodes or self._nodes if number not in running]
        certificates = self._certificates() if self.spec.security == "SASL_SSL" else None
        for node in asleep:
            node.configure(self._record, certificates)
        with ThreadPoolExecutor(max_workers=max(1, len(asleep))) as pool:
            list(pool.map(lambda node: node.format(self._record, jars), asleep))
        for node in asleep:
            running[node.number] = node.start(self._record, jars, tied=self._tied)
            # After each, not after all: whatever happens next, nothing runs that the record doesn't know.
            self._save(replace(self._record, processes=running))

    def wait_until_ready(self, *, timeout_seconds: float = _READY_SECONDS) -> None:
        """Until every node that was started, and not stopped, serves clients.

        :raises BrokerDied: one ended meanwhile.
        """
        wanted = self._record.processes
        dead = readiness.wait_until_served(self.endpoint(), wanted, timeout_seconds=timeout_seconds)
        if dead is not None:
            raise self._nodes[dead].died("it ended while it was starting")

    def stop(self) -> None:
        """Ask all nodes to end, insist after a while. Data stays."""
        with ThreadPoolExecutor(max_workers=len(self._nodes)) as pool:
            list(pool.map(_end, self._running.values()))
        self._save(replace(self._record, processes={}))

    def stop_node(self, node: int) -> None:
        self._take_down(node, _end)

    def kill(self, node: int | None = None) -> None:
        """SIGKILL: one node, or all of them at once. Back when the process is gone."""
        for number in self.node_numbers if node is None else (node,):
            self._take_down(number, processes.kill)

    def restart(self) -> None:
        self.stop()
        self.start()

    def start_node(self, node: int) -> None:
        self.launch([node])
        self.wait_until_ready()

    def pause(self, node: int | None = None) -> None:
        """SIGSTOP: the process stays, its connections stay, nothing answers."""
        self._signal(node, signal.SIGSTOP)

    def resume(self, node: int | None = None) -> None:
        self._signal(node, signal.SIGCONT)

    def is_running(self, node: int | None = None) -> bool:
        """Whether this node runs; of no node in particular: whether all do. A paused one runs."""
        running = self._running
        return len(running) == len(self._nodes) if node is None else self._node(node).number in running

    # Who may do what (SASL_SSL)

    def add_user(self, user: str) -> str:
        """A new user of the running cluster, without any right; returns the password."""
        password = make_password()
        access.set_password(self.endpoint(), user, password)
        self._save(replace(self._record, passwords=self._record.passwords | {user: password}))
        return password

    def grant(self, user: str, *rights: access.Right) -> None:
        access.grant(self.endpoint(), user, *rights)

    def revoke(self, user: str, *rights: access.Right) -> None:
        access.revoke(self.endpoint(), user, *rights)

    # Inside

    @property
    def _record_path(self) -> Path:
        return self.home / "cluster.json"

    @property
    def _running(self) -> dict[int, processes.ProcessIdentity]:
        return {node: each for node, each in self._record.processes.items() if processes.is_alive(each)}

    def _save(self, record: ClusterRecord) -> None:
        self._record = record
        save_record(self._record_path, record)

    def _node(self, number: int) -> Node:
        if number not in self._nodes:
            raise UnknownName(
                f"lab cluster {self.name}: node", value=number, rule=f"nodes are 1 to {len(self._nodes)}"
            )
        return self._nodes[number]

    def _password(self, user: str) -> str:
        if user not in self._record.passwords:
            known = ", ".join(self._record.passwords)
            raise UnknownName(f"lab cluster {self.name}: user", value=user, rule=f"users are {known}")
        return self._record.passwords[user]

    def _certificates(self) -> CertificateFiles:
        return ensure_certificates(self.home / "certificates", node_name(self.name))

    def _take_down(self, node: int, how: processes.Ending) -> None:
        process = self._running.get(self._node(node).number)
        if process is not None:
            how(process)
            rest = {number: each for number, each in self._record.processes.items() if number != node}
            self._save(replace(self._record, processes=rest))

    def _signal(self, node: int | None, number: signal.Signals) -> None:
        for each in self.node_numbers if node is None else (node,):
            process = self._running.get(self._node(each).number)
            if process is None or not processes.send(process, number):
                raise LabTrouble(
                    f"lab broker {self.name}/{each}", rule=f"not running, so it can't get {number.name}"
                )


def _usable(home: Path) -> Path:
    if "," in str(home):
        raise LabTrouble(
            "lab cluster home", value=home, rule="Kafka takes a comma for the end of a directory's name"
        )
    return home


def _end(process: processes.ProcessIdentity) -> None:
    processes.end(process, patience_seconds=_STOP_SECONDS)


def _new_record(spec: ClusterSpec) -> ClusterRecord:
    ports = free_ports(2 * spec.nodes)
    return ClusterRecord(
        spec=spec,
        cluster_id=_new_cluster_id(),
        ports={node + 1: NodePorts(ports[2 * node], ports[2 * node + 1]) for node in range(spec.nodes)},
        passwords={user: make_password() for user in (ADMIN, *spec.users)}
        if spec.security == "SASL_SSL"
        else {},
        processes={},
    )


def _new_cluster_id() -> str:
    """Kafka's way to write a UUID; one that begins with a dash would look like an option to its tools."""
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return _new_cluster_id() if text.startswith("-") else text
