"""What is widened so that a log can be emptied is narrowed again, whatever comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from causeway import interruption
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.usecases.failback import delete_records


class Admin:
    """Takes each change; Ctrl-C comes while it takes the first one, and is heard at the next check."""

    def __init__(self, _endpoint: ClusterEndpoint) -> None:
        self.policies: list[str | None] = []
        ADMINS.append(self)

    def alter_settings(self, changes: Mapping[str, Mapping[str, str | None]]) -> dict[str, Any]:
        self.policies.append(changes["orders"]["cleanup.policy"])
        return {}


ADMINS: list[Admin] = []


def test_ctrl_c_while_a_policy_is_widened_leaves_none_widened(monkeypatch: pytest.MonkeyPatch) -> None:
    ADMINS.clear()
    monkeypatch.setattr(delete_records, "ClusterAdmin", Admin)

    def interrupted() -> None:
        if ADMINS[-1].policies:
            raise KeyboardInterrupt

    async def proved() -> None:
        return None

    async def delete_before(*_: object) -> None:
        interruption.check()

    monkeypatch.setattr(interruption, "check", interrupted)
    monkeypatch.setattr(delete_records, "delete_before", delete_before)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(delete_records.empty(ClusterEndpoint("sf", {}), {}, {"orders": "compact"}, proved))
    assert ADMINS[-1].policies == ["compact,delete", "compact"]
