// SPDX-License-Identifier: MIT
// Tracepoints as functions that write a CTF stream. Included before a provider's header (*_tp.h), which is then read
// once more: each event that the header declares becomes a function write_PROVIDER_EVENT(arguments), and an entry of a
// table of events, from which the metadata is made. So fields are declared once, for LTTng-UST, which says what the
// session records, and for the stream.
#undef LTTNG_UST_TRACEPOINT_EVENT
#undef LTTNG_UST_TRACEPOINT_EVENT_CLASS
#undef LTTNG_UST_TRACEPOINT_EVENT_INSTANCE
#undef LTTNG_UST_TP_ARGS
#undef LTTNG_UST_TP_FIELDS
#undef lttng_ust_field_integer
#undef lttng_ust_field_integer_hex
#undef lttng_ust_field_array_text
#undef lttng_ust_field_string

// (type, name, type, name ...) → parameters, names, and variables with values of no event.
#define LTTNG_UST_TP_ARGS(...) (__VA_ARGS__)
#define LTTNG_UST_TP_FIELDS(...) __VA_ARGS__
#define TP_PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, pick, ...) pick
#define TP_EACH(what, ...) TP_PICK(__VA_ARGS__, TP_5, _, TP_4, _, TP_3, _, TP_2, _, TP_1, _, _)(what, __VA_ARGS__)
#define TP_1(what, t, n) what(t, n)
#define TP_2(what, t, n, ...) what(t, n) TP_1(what, __VA_ARGS__)
#define TP_3(what, t, n, ...) what(t, n) TP_2(what, __VA_ARGS__)
#define TP_4(what, t, n, ...) what(t, n) TP_3(what, __VA_ARGS__)
#define TP_5(what, t, n, ...) what(t, n) TP_4(what, __VA_ARGS__)
#define TP_PARAMETER(t, n) , t n
#define TP_NAME(t, n) , n
#define TP_BLANK(t, n) t n = _Generic((t)0, const struct block_event * : &tp_blank, const char * : "", default : 0);
#define TP_PARAMETERS(...) TP_EACH(TP_PARAMETER, __VA_ARGS__)
#define TP_NAMES(...) TP_EACH(TP_NAME, __VA_ARGS__)
#define TP_BLANKS(...) TP_EACH(TP_BLANK, __VA_ARGS__)

#define lttng_ust_field_integer(type, name, value)                                                                     \
    tp_integer(tp, describes, #name, sizeof(type), (type)-1 < 1, 10, (uint64_t)(type)(value));
#define lttng_ust_field_integer_hex(type, name, value)                                                                 \
    tp_integer(tp, describes, #name, sizeof(type), false, 16, (uint64_t)(type)(value));
#define lttng_ust_field_array_text(type, name, from, length) tp_array(tp, describes, #name, from, length);
#define lttng_ust_field_string(name, from) tp_string(tp, describes, #name, from);

#define LTTNG_UST_TRACEPOINT_EVENT_CLASS(provider, class, arguments, fields)                                           \
    static inline __attribute__((always_inline, unused)) void tp_fields_##provider##_##class(                          \
        struct tp_output * tp, const bool describes TP_PARAMETERS arguments) {                                         \
        fields                                                                                                         \
    }
#define LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(of, class, provider, event, arguments)                                     \
    static void tp_describe_##provider##_##event(struct tp_output *tp) {                                               \
        TP_BLANKS arguments tp_fields_##of##_##class(tp, true TP_NAMES arguments);                                     \
    }                                                                                                                  \
    static const struct tp_event tp_event_##provider##_##event                                                         \
        __attribute__((section("tp_events"), used)) = {#provider ":" #event, tp_describe_##provider##_##event};        \
    static __attribute__((unused)) void write_##provider##_##event(uint64_t time_ns TP_PARAMETERS arguments) {         \
        struct tp_output *tp = tp_begin(&tp_event_##provider##_##event, time_ns);                                      \
        tp_fields_##of##_##class(tp, false TP_NAMES arguments);                                                        \
        tp_end(tp);                                                                                                    \
    }
#define LTTNG_UST_TRACEPOINT_EVENT(provider, event, arguments, fields)                                                 \
    LTTNG_UST_TRACEPOINT_EVENT_CLASS(provider, event, LTTNG_UST_TP_ARGS arguments, fields)                             \
    LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(provider, event, provider, event, LTTNG_UST_TP_ARGS arguments)
