# SPDX-License-Identifier: MIT
"""The metadata of the trace that hits of declared probes make, in CTF 1.8 as LTTng 2.13 writes it for user space.

The streams are written by tracepoints/hit_provider.h; docs/probes.md says why this is a trace of its own. An integer
takes 8 bytes, a text as many as were asked for; thread and process are contexts, as ``opline record`` has them
everywhere.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opline import __version__
from opline.capture.machine import machine

if TYPE_CHECKING:
    from opline.model import Probe

CHANNEL = "probes"
CONTEXTS = ("vpid", "vtid", "procname")

_HEAD = """\
/* CTF 1.8 */

typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;

trace {
	major = 1;
	minor = 8;
	uuid = "%(trace)s";
	byte_order = le;
	packet.header := struct {
		uint32_t magic;
		uint8_t  uuid[16];
		uint32_t stream_id;
		uint64_t stream_instance_id;
	};
};

env {
	domain = "ust";
	tracer_name = "opline-probes";
	tracer_version = "%(version)s";
	trace_creation_datetime = "%(created)s";
	hostname = "%(host)s";
};

clock {
	name = "monotonic";
	uuid = "%(clock)s";
	description = "Monotonic Clock";
	freq = 1000000000; /* Frequency, in Hz */
	/* clock value offset from Epoch is: offset * (1/freq) */
	offset = %(offset)d;
	absolute = TRUE; /* as babeltrace2 takes LTTng's to be */
};

typealias integer {
	size = 32; align = 8; signed = false;
	map = clock.monotonic.value;
} := uint32_clock_monotonic_t;

typealias integer {
	size = 64; align = 8; signed = false;
	map = clock.monotonic.value;
} := uint64_clock_monotonic_t;

struct packet_context {
	uint64_clock_monotonic_t timestamp_begin;
	uint64_clock_monotonic_t timestamp_end;
	uint64_t content_size;
	uint64_t packet_size;
	uint64_t packet_seq_num;
	unsigned long events_discarded;
	uint32_t cpu_id;
};

struct event_header_large {
	enum : uint16_t { compact = 0 ... 65534, extended = 65535 } id;
	variant <id> {
		struct {
			uint32_clock_monotonic_t timestamp;
		} compact;
		struct {
			uint32_t id;
			uint64_clock_monotonic_t timestamp;
		} extended;
	} v;
} align(8);

stream {
	id = 0;
	event.header := struct event_header_large;
	packet.context := struct packet_context;
	event.context := struct {
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _vpid;
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _vtid;
		integer { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } _procname[17];
	};
};
"""

_EVENT = """
event {
	name = "%s";
	id = %d;
	stream_id = 0;
	loglevel = 13;
	fields := struct {
%s	};
};
"""
_INTEGER = "\t\tinteger { size = 64; align = 8; signed = %d; encoding = none; base = 10; } _%s;\n"
_TEXT = "\t\tinteger { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } _%s[%d];\n"


def metadata(probes: Sequence[Probe], signed: set[tuple[str, str]], trace: uuid.UUID) -> str:
    """The text. ``signed``: (event, field) of the integers that are."""
    about = machine.host()
    head = _HEAD % {
        "trace": trace,
        "version": __version__,
        "created": time.strftime("%Y%m%dT%H%M%S%z"),
        "host": about.hostname.replace("\\", "").replace('"', ""),
        "clock": about.boot_id,
        "offset": machine.sample_clocks().realtime_minus_monotonic_ns,
    }
    events = []
    for number, probe in enumerate(probes):
        fields = [
            _TEXT % (field.name, field.bytes)
            if field.type == "text"
            else _INTEGER % ((probe.event, field.name) in signed, field.name)
            for field in probe.fields
        ]
        events.append(_EVENT % (probe.event, number, "".join(fields)))
    return head + "".join(events)
