/* SPDX-License-Identifier: MIT
 * One event with a field of every kind that LTTng-UST writes, and one without fields. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER kinds
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./kinds_tp.h"
#if !defined(KINDS_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define KINDS_TP_H
#include <stdint.h>
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_ENUM(kinds, colour, LTTNG_UST_TP_ENUM_VALUES(
  lttng_ust_field_enum_value("red", 0) lttng_ust_field_enum_range("green", 1, 5) lttng_ust_field_enum_value("red", 9) lttng_ust_field_enum_value("minus", -3)))
LTTNG_UST_TRACEPOINT_EVENT(kinds, all, LTTNG_UST_TP_ARGS(int, n, const char *, text, const uint16_t *, list, size_t, count),
 LTTNG_UST_TP_FIELDS(
  lttng_ust_field_integer(int8_t, i8, (int8_t)-n)
  lttng_ust_field_integer(uint64_t, u64, 0xfedcba9876543210ull + n)
  lttng_ust_field_integer_hex(unsigned, hex, n)
  lttng_ust_field_integer_network(uint32_t, net, __builtin_bswap32(n))
  lttng_ust_field_float(float, f, n * 0.5f)
  lttng_ust_field_float(double, d, n * 0.25)
  lttng_ust_field_string(text, text)
  lttng_ust_field_array_text(char, fixed, text, 8)
  lttng_ust_field_sequence_text(char, some, text, size_t, count)
  lttng_ust_field_array(uint16_t, numbers, list, 3)
  lttng_ust_field_sequence(uint16_t, several, list, uint8_t, count)
  lttng_ust_field_sequence_network(uint16_t, netseq, list, uint32_t, count)
  lttng_ust_field_array_nowrite(uint16_t, hidden, list, 2)
  lttng_ust_field_enum(kinds, colour, int, colour, n % 12 - 3)
  lttng_ust_field_integer(uint8_t, _odd, n)))
LTTNG_UST_TRACEPOINT_EVENT(kinds, none, LTTNG_UST_TP_ARGS(int, n), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_LOGLEVEL(kinds, all, LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING)
#endif
#include <lttng/tracepoint-event.h>
