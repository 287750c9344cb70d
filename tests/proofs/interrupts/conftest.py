"""What comes before a command that is interrupted is played here, and waits for nobody."""

from __future__ import annotations

import pytest

from causeway.usecases.run_lock import write_proof


@pytest.fixture(autouse=True)
def nobody_is_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No group sync runs beside these failovers. The commands themselves wait as always."""
    monkeypatch.setattr(write_proof, "OUTLIVED_SECONDS", 0.05)
