"""A sample of seeds: `tests.simulation.prove` plays all of them, `replay SEED` one with its trace."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.seeds import play, told

_ROOT = Path(__file__).parents[2]
_SAMPLE = range(0, 400)
_PIECE = 40


@pytest.mark.parametrize("first", [_SAMPLE[i] for i in range(0, len(_SAMPLE), _PIECE)])
def test_what_readers_see_is_a_prefix_of_the_source_whatever_happens(first: int) -> None:
    failed = [told(o) for o in map(play, range(first, first + _PIECE)) if o.failure is not None]
    gc.collect()
    assert not failed, "\n\n".join(failed)


def test_a_seed_is_the_same_world_in_every_process() -> None:
    """Neither hashes of strings nor anything else that differs between processes may decide."""
    code = (
        "import hashlib;from tests.simulation.seeds import play;"
        "print(hashlib.sha256('\\n'.join(line for s in (1, 17, 52) for line in play(s, trace=True).trace)"
        ".encode()).hexdigest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            cwd=_ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(number)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for number in (1, 2)
    }
    assert len(seen) == 1
