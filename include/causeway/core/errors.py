"""Every error that Causeway raises on purpose.

    CausewayError
    ├── BadInput                 2  what a person wrote is wrong: a field, a name, a value
    │   ├── ConfigError             in flows.yaml or a connection
    │   ├── UnknownName             no such flow, topic, group
    │   ├── UnfitTarget             the target holds something that the flow must not touch
    │   └── StalePlan               what was agreed to isn't what would be done now
    ├── ClusterTrouble           3  a cluster can't be used as asked
    │   ├── ClusterUnreachable      (retriable)
    │   ├── AuthenticationFailed
    │   ├── NotAuthorized
    │   └── IncompatibleBroker
    ├── NotTheOwner              4  somebody else has the flow
    │   ├── FlowHeld                a run that shows signs of life
    │   ├── FlowFenced              a fence stands until it is lifted
    │   └── Superseded              a newer run took over while this one worked
    └── ProtocolFault            6  the two clusters said something that can't be: stop and look

The number is the exit code (1 = verify found a difference, 5 = partitions are parked, 130 = interrupted).
Each message is one line: the thing, its value, the rule, the way out. Facts are fields, so that
`--json` can show them. Only `retriable` errors are worth an automatic second try.
"""

from __future__ import annotations

from typing import ClassVar


class CausewayError(Exception):
    exit_code: ClassVar[int] = 6
    retriable: ClassVar[bool] = False

    def __init__(self, what: str, *, value: object = None, rule: str = "", remedy: str = "") -> None:
        """`what` names the field or resource; `value` is what it holds; `rule` and `remedy` end the line."""
        self.what, self.value, self.rule, self.remedy = what, value, rule, remedy
        head = what if value is None else f"{what} = {_one_line(value)}"
        super().__init__(
            "; ".join(_one_line(part) for part in (f"{head}: {rule}" if rule else head, remedy) if part)
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Errors travel from executors to the driver with all their facts."""
        return _rebuild, (type(self), self.what, self.value, self.rule, self.remedy)

    def as_dict(self) -> dict[str, object]:
        return {
            "error": type(self).__name__,
            "what": self.what,
            "value": None if self.value is None else _one_line(self.value),
            "rule": self.rule,
            "remedy": self.remedy,
        }


def _rebuild(kind: type[CausewayError], what: str, value: object, rule: str, remedy: str) -> CausewayError:
    return kind(what, value=value, rule=rule, remedy=remedy)


def _one_line(value: object) -> str:
    """Log lines stay lines, whatever a topic or a group is called."""
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class BadInput(CausewayError):
    exit_code = 2


class ConfigError(BadInput):
    """A field of flows.yaml or of a connection."""


class UnknownName(BadInput):
    """A flow, topic or group that isn't there; the remedy names the nearest one."""


class UnfitTarget(BadInput):
    """Fewer partitions, foreign data, an illegal name: nothing of the flow may be written there."""


class StalePlan(BadInput):
    """The state has changed under a plan: nothing of it is done."""


class ClusterTrouble(CausewayError):
    exit_code = 3


class ClusterUnreachable(ClusterTrouble):
    retriable = True


class AuthenticationFailed(ClusterTrouble):
    """Wrong password, unknown user, mechanism not offered, or a certificate that doesn't hold."""


class NotAuthorized(ClusterTrouble):
    """A right is missing; the remedy is the grant."""


class IncompatibleBroker(ClusterTrouble):
    """Too old, or with a feature switched off that the protocol needs."""


class NotTheOwner(CausewayError):
    exit_code = 4


class FlowHeld(NotTheOwner):
    """Another run holds the flow and shows signs of life."""


class FlowFenced(NotTheOwner):
    """The flow was fenced; only a lift record opens it again."""


class Superseded(NotTheOwner):
    """A newer run took the flow over while this one worked."""


class ProtocolFault(CausewayError):
    """An answer that contradicts the protocol: nothing is guessed, the run stops."""
