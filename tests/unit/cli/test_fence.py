"""What `causeway fence` answers where others have raised fences before."""

from __future__ import annotations

from dataclasses import replace

from causeway.cli.commands.fence import _beside, _fenced
from causeway.core.state.fences import Fence
from causeway.usecases.run_lock.fence import FenceOutcome

AMY = Fence(generation=7, by="amy", because="nyc takes over", since_ms=0, token="a")
BOB = Fence(generation=9, by="bob", because="a disk is full", since_ms=0, token="b")


def done(*standing: Fence) -> FenceOutcome:
    return FenceOutcome(
        flow="f", fenced=True, generation=9, lanes_claimed=2, changed=True, stands=BOB, standing=standing
    )


def test_the_fence_of_somebody_else_is_named_beside_ones_own() -> None:
    assert "until `causeway lift f --fence 9 " in _fenced("f", done(AMY, BOB))
    (line,) = _beside("f", done(AMY, BOB))
    assert line.startswith("f: beside it stands fence 7, by amy since 1970-01-01T00:00:00Z: nyc takes over: ")
    assert "`causeway lift f --fence 7 " in line


def test_what_a_fence_names_can_be_typed_also_where_it_is_gone_by_then() -> None:
    gone = replace(done(), stands=None)
    assert 'until `causeway lift f --because "..."`' in _fenced("f", gone)


def test_nothing_is_printed_of_others_where_there_are_none() -> None:
    assert _beside("f", done(BOB)) == []
