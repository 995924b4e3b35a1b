# SPDX-License-Identifier: MIT
"""Output that goes to an HTTP port: an OpenTelemetry collector's (OTLP/HTTP, opentelemetry-proto 1.3)."""

from __future__ import annotations

import http.client
import io
import urllib.error
import urllib.request

from opline.errors import OplineError
from opline_analyses.base.text import count_of

SECONDS = 30  # for an answer


class Collector(io.RawIOBase):
    """Each ``write`` is a request of its own. Raises OplineError with what the collector says if it takes one not."""

    def __init__(self, url: str, media: str) -> None:
        self.url, self.media = url, media
        self.sent = 0

    def write(self, data: bytes) -> int:  # type: ignore[override]  # nothing but bytes comes here
        """POSTs it."""
        request = urllib.request.Request(self.url, data, {"Content-Type": self.media})
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                answer.read()
        except urllib.error.HTTPError as error:
            raise self._failed(f"it answers {error.code} {error.reason}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._failed(str(getattr(error, "reason", error))) from error
        self.sent += 1
        return len(data)

    def _failed(self, why: str) -> OplineError:
        after = f", after {count_of(self.sent, 'request')} that it took" if self.sent else ""
        return OplineError(
            f"Cannot send to {self.url}{after}: {why}. Ids are always the same: send it again as it was."
        )
