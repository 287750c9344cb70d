"""The progress line of a run: records, speed, lag, time left."""

from __future__ import annotations

from causeway.core.kernel.plurals import counted

_EVERY_SECONDS = 2.0
_KILOBYTE = 1_000
_MEGABYTE = 1_000_000


class Progress:
    def __init__(self, flow: str, run_for_seconds: float | None) -> None:
        self._flow, self._run_for = flow, run_for_seconds
        self._records = self._bytes = 0
        self._said_at = self._said_records = 0.0
        self._said_bytes = 0

    def add(self, records: int, size_bytes: int) -> None:
        """Totals of the run so far."""
        self._records, self._bytes = records, size_bytes

    def line(self, seconds: float, lag: int, *, in_doubt: int = 0) -> str:
        """A line when it is time for one, else nothing."""
        since = seconds - self._said_at
        if since < _EVERY_SECONDS:
            return ""
        rate = (self._records - self._said_records) / since
        speed = _speed((self._bytes - self._said_bytes) / since)
        self._said_at, self._said_records, self._said_bytes = seconds, self._records, self._bytes
        return (
            f"{self._flow}: {counted(self._records, 'record')}, {speed}, lag {lag:,}"
            f"{self._time_left(seconds, lag, rate)}{lanes_in_doubt(in_doubt)}"
        )

    def _time_left(self, seconds: float, lag: int, rate: float) -> str:
        if self._run_for is not None:
            return f", {max(self._run_for - seconds, 0):.0f} s left"
        if rate <= 0:
            return ""
        return f", about {lag / rate:.0f} s left"


def lanes_in_doubt(lanes: int) -> str:
    return f", {counted(lanes, 'lane')} in doubt" if lanes else ""


def _speed(bytes_a_second: float) -> str:
    """In a unit in which it isn't nothing, if it isn't."""
    if bytes_a_second >= _MEGABYTE / 10:
        return f"{bytes_a_second / _MEGABYTE:,.1f} MB/s"
    return f"{bytes_a_second / _KILOBYTE:.1f} kB/s" if bytes_a_second else "nothing moves"
