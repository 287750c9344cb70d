"""The words of Kafka's authorizer: operations, resources, a right, and the command that grants it.

Read and Write imply Describe, so Describe is not in any list of rights."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal


class Operation(IntEnum):
    """The protocol's numbers, as brokers list what a user may do."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12

    @property
    def word(self) -> str:
        """As `kafka-acls.sh --operation` takes it."""
        return "".join(part.capitalize() for part in self.name.split("_"))


Resource = Literal["topic", "group", "transactional-id", "cluster"]
Side = Literal["source", "target"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededRight:
    side: Side
    resource: Resource
    name: str
    operation: Operation
    why: str
    is_prefix: bool = False

    def command(self, principal: str) -> str:
        return grant_command(
            principal, self.operation.word, self.resource, self.name, is_prefix=self.is_prefix
        )


def grant_command(
    principal: str, operation: str, resource: Resource, name: str, *, is_prefix: bool = False
) -> str:
    """What an administrator of the cluster types; `--bootstrap-server` and `--command-config` are theirs."""
    return _acl_command("--add", principal, operation, resource, name, is_prefix=is_prefix)


def revoke_command(
    principal: str, operation: str, resource: Resource, name: str, *, is_prefix: bool = False
) -> str:
    return _acl_command("--remove", principal, operation, resource, name, is_prefix=is_prefix)


def _acl_command(
    change: str, principal: str, operation: str, resource: Resource, name: str, *, is_prefix: bool
) -> str:
    named = "--cluster" if resource == "cluster" else f"--{resource} {name}"
    pattern = " --resource-pattern-type prefixed" if is_prefix else ""
    return f"kafka-acls.sh {change} --allow-principal {principal} --operation {operation} {named}{pattern}"


def needed_right(
    side: Side, resource: Resource, name: str, operation: Operation, why: str, *, is_prefix: bool = False
) -> NeededRight:
    return NeededRight(
        side=side, resource=resource, name=name, operation=operation, why=why, is_prefix=is_prefix
    )
