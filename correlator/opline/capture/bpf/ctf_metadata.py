# SPDX-License-Identifier: MIT
"""The metadata of traces that collectors write by themselves, in CTF 1.8 as LTTng 2.13 writes it for user space.

Their streams are written by tracepoints/ctf_stream.h.
"""

from __future__ import annotations

import time
import uuid

from opline import __version__
from opline.capture.machine import machine

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
	tracer_name = "%(tracer)s";
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
"""

_STREAM = """
stream {
	id = 0;
	event.header := struct event_header_large;
	packet.context := struct packet_context;
%s};
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
_INTEGER = "\t\tinteger { size = %d; align = 8; signed = %d; encoding = none; base = %d; } _%s;\n"
_TEXT = "\t\tinteger { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } _%s[%d];\n"


def head(trace: uuid.UUID, tracer: str) -> str:
    """Everything before the stream: the trace, the machine, its monotonic clock."""
    about = machine.host()
    return _HEAD % {
        "trace": trace,
        "tracer": tracer,
        "version": __version__,
        "created": time.strftime("%Y%m%dT%H%M%S%z"),
        "host": about.hostname.replace("\\", "").replace('"', ""),
        "clock": about.boot_id,
        "offset": machine.sample_clocks().realtime_minus_monotonic_ns,
    }


def stream(contexts: str = "") -> str:
    """The only stream class; ``contexts``: fields of every event."""
    return _STREAM % (f"\tevent.context := struct {{\n{contexts}\t}};\n" if contexts else "")


def event(name: str, number: int, fields: str) -> str:
    """An event class; ``fields``: of :func:`integer` and :func:`text`."""
    return _EVENT % (name, number, fields)


def integer(name: str, bits: int = 64, signed: bool = False, base: int = 10) -> str:
    """A field at a whole byte."""
    return _INTEGER % (bits, signed, base, name)


def string(name: str) -> str:
    """A text of any length, with a NUL behind it."""
    return f"\t\tstring _{name};\n"


def text(name: str, size: int) -> str:
    """A text of at most so many bytes, its NUL among them."""
    return _TEXT % (name, size)
