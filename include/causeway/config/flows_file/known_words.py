"""Which keys a message may repeat: those made of words that Causeway, Kafka's clients or MirrorMaker 2 know.

Somebody who pastes a password in the wrong place types it as a key, and messages land in logs. A key that is
nearly a known one is a mistake in spelling, and is shown; all else is named by its line only.
"""

from __future__ import annotations

import re
from functools import cache

from causeway.brokers.client_settings import UNDERSTOOD_KEYS
from causeway.config.flows_file.mirror_maker import INSTEAD
from causeway.config.flows_file.model import ClusterModel, FileModel, FlowModel, RuleModel, known_keys
from causeway.config.values.refusal import nearest

HIDDEN = "***"
_LONGEST = 80
_PARTS = re.compile(r"[._\-]+")
_AIRFLOWS = ("conn_type", "host", "login", "password", "schema", "port", "extra", "description", "team_name")
_OTHERS = re.findall(
    r"\w+",
    """
    acks batch bytes compression config count credential credentials debug extra factor fetch flow from group
    id in interval jaas keystore keytab linger list location max min name on passphrase password pem poll
    private record records region secret size timeout token transactional truststore type version
    """,
)
"""What else keys of Kafka's clients are made of."""


def shown_key(key: str, also: frozenset[str] = frozenset()) -> str:
    """The key if it may be printed, else stars; `also`: more keys that are known where it stands."""
    known = _keys() | also
    if len(key) > _LONGEST or not key:
        return HIDDEN if key else key
    if key in known or nearest(key, known, at_least=0.75):
        return key
    words = _words_of(known)
    return key if all(part in words for part in _PARTS.split(key.lower()) if part) else HIDDEN


@cache
def _keys() -> frozenset[str]:
    ours = (known_keys(model) for model in (FileModel, ClusterModel, FlowModel, RuleModel))
    return frozenset().union(*ours, INSTEAD, UNDERSTOOD_KEYS, _AIRFLOWS)


@cache
def _words_of(keys: frozenset[str]) -> frozenset[str]:
    return frozenset(part for key in (*keys, *_OTHERS) for part in _PARTS.split(key.lower()) if part)
