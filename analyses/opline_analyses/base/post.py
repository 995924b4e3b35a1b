# SPDX-License-Identifier: MIT
"""Output that goes to an HTTP port: an OpenTelemetry collector's (OTLP/HTTP, opentelemetry-proto 1.3).

A collector may answer 200 and still leave out spans: then its answer, an ExportTraceServiceResponse, has a
`partial_success` with their number and a reason (opentelemetry-proto, collector/trace/v1/trace_service.proto).
"""

from __future__ import annotations

import http.client
import io
import json
import threading
import urllib.error
import urllib.request
from typing import Any

from opline.errors import OplineError
from opline_analyses.base.text import count_of

SECONDS = 30  # for a request with its answer, from the first byte to the last
MOST_BYTES = 1 << 20  # of an answer
_SHOWN = 200  # characters of a reason


class Collector(io.RawIOBase):
    """Each ``write`` is a request of its own. Raises OplineError with what the collector says if it takes one not.
    ``rejected``: spans that it left out, and ``reason``, why.
    """

    def __init__(self, url: str, media: str) -> None:
        self.url, self.media = url, media
        self.sent = self.rejected = 0
        self.reason = ""

    def write(self, data: bytes) -> int:  # type: ignore[override]  # nothing but bytes comes here
        """POSTs it."""
        found: list[tuple[str, bytes] | Exception] = []

        def post() -> None:
            try:
                request = urllib.request.Request(self.url, data, {"Content-Type": self.media})
                with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                    found.append((answer.headers.get_content_type(), answer.read(MOST_BYTES + 1)))
            except Exception as error:
                found.append(error)

        sender = threading.Thread(target=post, daemon=True)  # an answer byte by byte has no end of its own
        sender.start()
        sender.join(SECONDS)
        done = found[0] if found else TimeoutError(f"no whole answer in {SECONDS} s")
        if isinstance(done, urllib.error.HTTPError):
            done.close()
            raise self._failed(f"it answers {done.code} {done.reason}") from done
        if isinstance(done, (OSError, http.client.HTTPException, ValueError)):
            raise self._failed(str(getattr(done, "reason", done))) from done
        if isinstance(done, Exception):
            raise done
        self.sent += 1
        self._partial(*done)
        return len(data)

    def _partial(self, media: str, answer: bytes) -> None:
        """Notes what a collector left out. An answer that is none of OTLP's says nothing."""
        if len(answer) > MOST_BYTES:
            raise self._failed(f"its answer is longer than {MOST_BYTES} bytes: it is no collector")
        rejected, reason = _of_json(answer) if media == "application/json" else _of_protobuf(answer)
        self.rejected += rejected
        self.reason = self.reason or reason[:_SHOWN]

    def _failed(self, why: str) -> OplineError:
        after = f", after {count_of(self.sent, 'request')} that it took" if self.sent else ""
        return OplineError(
            f"Cannot send to {self.url}{after}: {why}. Ids are always the same: send it again as it was."
        )


def _of_json(answer: bytes) -> tuple[int, str]:
    """Rejected spans and the reason. A number of 64 bits is a text in protobuf's JSON."""
    try:
        found: Any = json.loads(answer)["partialSuccess"]
        return int(found.get("rejectedSpans", 0)), str(found.get("errorMessage", ""))
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return 0, ""


def _of_protobuf(answer: bytes) -> tuple[int, str]:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        found = ExportTraceServiceResponse.FromString(answer).partial_success
    except DecodeError:
        return 0, ""
    return int(found.rejected_spans), str(found.error_message)
