"""Consumers that still read where the groups come from: who is named, and what to type."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.kernel.errors import BadInput
from causeway.usecases.failover.copy_remaining import refuse_readers


@pytest.mark.parametrize(("mode", "is_named"), [(Mode.HOME, False), (Mode.PLANNED, True)])
def test_groups_are_named_only_where_the_command_takes_them(mode: Mode, is_named: bool) -> None:
    """`causeway failback --home` moves all groups or none."""

    async def of_source(_ask: object) -> dict[str, Any]:
        return {"billing": SimpleNamespace(is_active=True)}

    sides: Any = SimpleNamespace(of_source=of_source, silent="")
    flow: Any = SimpleNamespace(name="f", source="nyc", target="sf")
    plan: Any = SimpleNamespace(groups=("billing",), wish=FailoverRequest(flow="f", at_ms=None, mode=mode))
    with pytest.raises(BadInput, match="billing") as refused:
        asyncio.run(refuse_readers(flow, sides, plan))
    assert ("--groups" in str(refused.value)) is is_named
