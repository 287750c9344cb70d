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
    └── ProtocolFault            6  the two clusters report something that can't be: stop and look
        └── NewerFormat             a newer Causeway wrote it: upgrade

The number is the exit code (1 = verify found a difference, 5 = partitions are parked, 130 = interrupted).
Each message is one line: the thing, its value, the rule, the fix; of a name that is longer than
anybody reads it shows the beginning. Facts are fields, whole, so that `--json` can show them. Only
`retriable` errors are worth an automatic second try.
"""

from __future__ import annotations

from typing import ClassVar

_LONGEST_PART = 400
_LONGEST_WORD, _SHOWN_OF_A_WORD = 300, 60


class CausewayError(Exception):
    exit_code: ClassVar[int] = 6
    retriable: ClassVar[bool] = False

    def __init__(self, what: str, *, value: object = None, rule: str = "", remedy: str = "") -> None:
        """`what` names the field or resource; `value` is what it holds; `rule` and `remedy` end the line."""
        self.what, self.value, self.rule, self.remedy = what, value, rule, remedy
        named = what if value is None else f"{_shortened(what)} = {_shortened(value)}"
        head = f"{_shortened(named)}: {_shortened(rule)}" if rule else _shortened(named)
        super().__init__("; ".join(part for part in (head, _words_cut(_one_line(remedy))) if part))

    def __reduce__(self) -> tuple[object, ...]:
        """Errors travel from executors to the driver with all their facts."""
        return _rebuild, (type(self), self.what, self.value, self.rule, self.remedy)

    def as_dict(self) -> dict[str, object]:
        return {
            "error": type(self).__name__,
            "what": _one_line(self.what),
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


def _shortened(value: object) -> str:
    text = _words_cut(_one_line(value))
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART]}... ({len(text):,} characters)"


def _words_cut(text: str) -> str:
    """No command that is written here has such a word; a name that somebody made up may be one."""
    if len(text) <= _LONGEST_WORD:
        return text
    return " ".join(
        word if len(word) <= _LONGEST_WORD else f"{word[:_SHOWN_OF_A_WORD]}... ({len(word):,} characters)"
        for word in text.split(" ")
    )


class BadInput(CausewayError):
    """An option, a name or a value is wrong, or something must be done first."""

    exit_code = 2


class ConfigError(BadInput):
    """A field of flows.yaml or of a connection."""


class UnknownName(BadInput):
    """There is no such flow, topic or group; the remedy names the nearest one."""


class UnfitTarget(BadInput):
    """The target has too few partitions, foreign data or an illegal name: Causeway writes nothing there."""


class StalePlan(BadInput):
    """The state has changed since the plan was shown: nothing of the plan is done."""


class ClusterTrouble(CausewayError):
    """A cluster can't be used as asked."""

    exit_code = 3


class ClusterUnreachable(ClusterTrouble):
    """A cluster, or a broker that is needed, doesn't answer. Run the same command again."""

    retriable = True


class AuthenticationFailed(ClusterTrouble):
    """Wrong password, unknown user, mechanism not offered, or a certificate that doesn't hold."""


class NotAuthorized(ClusterTrouble):
    """A right is missing; the remedy is the grant."""


class IncompatibleBroker(ClusterTrouble):
    """The brokers are too old, or a feature that the protocol needs is switched off."""


class NotTheOwner(CausewayError):
    """Another run has the flow, or a fence stops it."""

    exit_code = 4


class FlowHeld(NotTheOwner):
    """Another run, the reverse flow, another command or MirrorMaker 2 is at work; or this command's fence was
    lifted."""


class FlowFenced(NotTheOwner):
    """A fence stops the flow until an operator lifts it."""


class Superseded(NotTheOwner):
    """A newer run took the flow over while this one worked."""


class ProtocolFault(CausewayError):
    """An answer contradicts the protocol: Causeway guesses nothing and stops."""


class NewerFormat(ProtocolFault):
    """A newer Causeway wrote a record that this version would misread: use that version."""
