"""Two versions beside each other: means, spreads and the ratio, the right way round."""

from tests.bench.turn import Measurement
from tests.bench.versions import HERE, OTHER, lines_of


def turn(contender: str, seconds: float, cpu_seconds: float, peak_mb: int) -> Measurement:
    return Measurement(
        workload="plain",
        contender=contender,
        records=1_000,
        repeated=0,
        starting_seconds=1.0,
        copying_seconds=seconds,
        copying_records=1_000,
        wall_seconds=seconds,
        cpu_seconds=cpu_seconds,
        peak_bytes=peak_mb * 1_000_000,
    )


def test_each_figure_is_a_share_of_the_other_versions() -> None:
    turns = [turn(OTHER, 1.0, 2.0, 100), turn(HERE, 2.0, 3.0, 50), turn(OTHER, 1.0, 4.0, 100)]
    assert lines_of(turns) == [
        "records/s  this tree 500.0 (500.0 to 500.0), the other 1,000.0 (1,000.0 to 1,000.0): 0.50",
        "CPU s      this tree 3.0 (3.0 to 3.0), the other 3.0 (2.0 to 4.0): 1.00",
        "peak MB    this tree 50.0 (50.0 to 50.0), the other 100.0 (100.0 to 100.0): 0.50",
    ]
