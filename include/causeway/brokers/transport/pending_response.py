"""What kafka-python's parser keeps of a request until its answer comes, for the two that are read by hand."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

_CORRELATION = struct.Struct(">i")


class HandDecoded:
    """An answer that decodes itself."""

    __slots__ = ()

    @classmethod
    def parse_header(cls, frame: Any) -> Awaited:
        return Awaited(_CORRELATION.unpack(frame.read(_CORRELATION.size))[0], cls)


@dataclass(frozen=True, slots=True)
class Awaited:
    """Takes the place of the library's request header while the answer is on its way."""

    correlation_id: int
    answer: type[HandDecoded]

    def get_response_class(self) -> type[HandDecoded]:
        return self.answer
