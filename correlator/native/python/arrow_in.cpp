// SPDX-License-Identifier: MIT
// opline._core.ArrowStream: the columns of a query, a batch of rows at a time, as numbers for numpy. Texts become
// numbers too, with the different texts beside them: no Python object per cell.
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "arrow.hpp"
#include "arrow_abi.hpp"
#include "guarded.hpp"
#include "type_slots.hpp"

namespace {

using opline::python::guarded;

// A structure of the interface that is released in the end.
template <class T>
struct Held {
    T value{};
    Held() = default;
    Held(const Held &) = delete;
    Held &operator=(const Held &) = delete;
    ~Held() {
        if (value.release) value.release(&value);
    }
};

struct Stream {
    PyObject *capsule;  // owns the stream
    ArrowArrayStream *stream;
    Held<ArrowSchema> schema;
    std::set<std::string, std::less<>> whole;  // columns of texts that are wanted as they are

    explicit Stream(PyObject *given)
        : capsule(Py_NewRef(given)),
          stream(static_cast<ArrowArrayStream *>(PyCapsule_GetPointer(given, opline::python::kArrowStream))) {}
    Stream(const Stream &) = delete;
    Stream &operator=(const Stream &) = delete;
    ~Stream() { Py_DECREF(capsule); }
};

struct StreamObject {
    PyObject_HEAD
    Stream *state;
};

Stream &state_of(PyObject *self) { return *reinterpret_cast<StreamObject *>(self)->state; }

void stream_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    delete reinterpret_cast<StreamObject *>(self)->state;
    type->tp_free(self);
    Py_DECREF(type);
}

// DuckDB computes meanwhile, in threads that may want Python's lock.
template <class F>
void without_lock(Stream &s, F &&f) {
    int error;
    Py_BEGIN_ALLOW_THREADS
    error = f();
    Py_END_ALLOW_THREADS
    if (error == 0) return;
    const char *why = s.stream->get_last_error(s.stream);
    throw std::runtime_error(why ? why : std::strerror(error));
}

PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *) {
    PyObject *capsule, *whole;
    if (!PyArg_ParseTuple(args, "OO!", &capsule, &PyTuple_Type, &whole)) return nullptr;
    return guarded([&]() -> PyObject * {
        auto state = std::make_unique<Stream>(capsule);
        if (!state->stream) return nullptr;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(whole); ++i) {
            const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(whole, i));
            if (!name) return nullptr;
            state->whole.insert(name);
        }
        without_lock(*state, [&] { return state->stream->get_schema(state->stream, &state->schema.value); });
        auto self = reinterpret_cast<StreamObject *>(type->tp_alloc(type, 0));
        if (!self) return nullptr;
        self->state = state.release();
        return reinterpret_cast<PyObject *>(self);
    });
}

PyObject *bytes_of(const void *data, std::size_t size) {
    return PyBytes_FromStringAndSize(static_cast<const char *>(data), static_cast<Py_ssize_t>(size));
}

bool bit(const void *bits, std::int64_t at) {
    return (static_cast<const std::uint8_t *>(bits)[at >> 3] >> (at & 7) & 1) != 0;
}

const void *validity_of(const ArrowArray &a) { return a.null_count == 0 ? nullptr : a.buffers[0]; }

bool is_absent(const ArrowArray &a, std::int64_t row) {
    const void *bits = validity_of(a);
    return bits && !bit(bits, a.offset + row);
}

// A byte per row, 1: absent; None where no row is.
PyObject *absent_of(const ArrowArray &a) {
    bool any = false;
    for (std::int64_t row = 0; row < a.length && !any; ++row) any = is_absent(a, row);
    if (!any) return Py_NewRef(Py_None);
    PyObject *found = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(a.length));
    if (!found) return nullptr;
    for (std::int64_t row = 0; row < a.length; ++row) PyBytes_AS_STRING(found)[row] = is_absent(a, row);
    return found;
}

struct Width {
    const char *dtype;  // numpy's
    std::size_t bytes;
};

// Of a number's format; {nullptr, 0}: of none.
Width width_of(std::string_view format) {
    static const std::unordered_map<std::string_view, Width> known{
        {"c", {"i1", 1}}, {"C", {"u1", 1}}, {"s", {"i2", 2}}, {"S", {"u2", 2}}, {"i", {"i4", 4}},
        {"I", {"u4", 4}}, {"l", {"i8", 8}}, {"L", {"u8", 8}}, {"f", {"f4", 4}}, {"g", {"f8", 8}},
    };
    const auto found = known.find(format);
    return found == known.end() ? Width{nullptr, 0} : found->second;
}

PyObject *numbers(const ArrowArray &a, Width width) {
    const auto *data = static_cast<const char *>(a.buffers[1]);
    return Py_BuildValue("(sNN)", width.dtype,
                         bytes_of(data + static_cast<std::size_t>(a.offset) * width.bytes,
                                  static_cast<std::size_t>(a.length) * width.bytes),
                         absent_of(a));
}

PyObject *flags(const ArrowArray &a) {
    PyObject *found = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(a.length));
    if (!found) return nullptr;
    for (std::int64_t row = 0; row < a.length; ++row) PyBytes_AS_STRING(found)[row] = bit(a.buffers[1], a.offset + row);
    return Py_BuildValue("(sNN)", "?", found, absent_of(a));
}

// A text with offsets of this type, of a row that has one.
template <class Offset>
std::string_view text_at(const ArrowArray &a, std::int64_t row) {
    const auto *ends = static_cast<const Offset *>(a.buffers[1]) + a.offset;
    return {static_cast<const char *>(a.buffers[2]) + ends[row], static_cast<std::size_t>(ends[row + 1] - ends[row])};
}

template <class Offset>
PyObject *whole_texts(const ArrowArray &a) {
    std::string data;
    std::vector<std::int32_t> ends{0};
    for (std::int64_t row = 0; row < a.length; ++row) {
        if (!is_absent(a, row)) data += text_at<Offset>(a, row);
        ends.push_back(static_cast<std::int32_t>(data.size()));
    }
    return Py_BuildValue("(sNN)", "text", bytes_of(data.data(), data.size()), bytes_of(ends.data(), ends.size() * 4));
}

PyObject *coded(const std::vector<std::int32_t> &codes, const std::vector<std::string_view> &texts) {
    PyObject *list = opline::python::list_of(texts, opline::python::text_of);
    if (!list) return nullptr;
    return Py_BuildValue("(sNN)", "codes", bytes_of(codes.data(), codes.size() * 4), list);
}

template <class Offset>
PyObject *coded_texts(const ArrowArray &a) {
    std::unordered_map<std::string_view, std::int32_t> known;
    std::vector<std::string_view> texts;
    std::vector<std::int32_t> codes(static_cast<std::size_t>(a.length), -1);
    std::vector<std::int32_t> after{-1};  // of each code, and of the begin, the code that came after it the last time
    std::int32_t code = -1;
    const bool all = validity_of(a) == nullptr;
    for (std::int64_t row = 0; row < a.length; ++row) {
        if (!all && is_absent(a, row)) continue;
        const std::string_view text = text_at<Offset>(a, row);
        std::int32_t &guess = after[static_cast<std::size_t>(code + 1)];
        if (guess < 0 || texts[static_cast<std::size_t>(guess)] != text) {
            const auto [at, is_new] = known.try_emplace(text, static_cast<std::int32_t>(texts.size()));
            guess = at->second;
            code = guess;
            if (is_new) {
                texts.push_back(text);
                after.push_back(-1);
            }
        } else {
            code = guess;
        }
        codes[static_cast<std::size_t>(row)] = code;
    }
    return coded(codes, texts);
}

template <class Index>
std::int32_t index_at(const ArrowArray &a, std::int64_t row) {
    return static_cast<std::int32_t>(static_cast<const Index *>(a.buffers[1])[a.offset + row]);
}

// A dictionary of texts (an ENUM of DuckDB, a dictionary of Arrow).
PyObject *dictionary(const ArrowSchema &schema, const ArrowArray &a) {
    const std::string_view of = schema.dictionary->format;
    if (of != "u" && of != "U") throw std::runtime_error("a dictionary of other values than texts");
    std::vector<std::string_view> texts;
    for (std::int64_t i = 0; i < a.dictionary->length; ++i)
        texts.push_back(of == "u" ? text_at<std::int32_t>(*a.dictionary, i) : text_at<std::int64_t>(*a.dictionary, i));
    const std::size_t bytes = width_of(schema.format).bytes;
    std::vector<std::int32_t> codes(static_cast<std::size_t>(a.length), -1);
    for (std::int64_t row = 0; row < a.length; ++row) {
        if (is_absent(a, row)) continue;
        codes[static_cast<std::size_t>(row)] = bytes == 1   ? index_at<std::uint8_t>(a, row)
                                               : bytes == 2 ? index_at<std::uint16_t>(a, row)
                                                            : index_at<std::int32_t>(a, row);
    }
    return coded(codes, texts);
}

PyObject *column(const Stream &s, const ArrowSchema &schema, const ArrowArray &a) {
    const std::string_view format = schema.format;
    if (schema.dictionary) return dictionary(schema, a);
    if (const Width width = width_of(format); width.dtype) return numbers(a, width);
    if (format == "b") return flags(a);
    const bool whole = s.whole.count(std::string_view(schema.name)) != 0;
    if (format == "u") return whole ? whole_texts<std::int32_t>(a) : coded_texts<std::int32_t>(a);
    if (format == "U") return whole ? whole_texts<std::int64_t>(a) : coded_texts<std::int64_t>(a);
    throw std::runtime_error("column " + std::string(schema.name) + ": values of the type " + std::string(format));
}

PyObject *stream_names(PyObject *self, PyObject *) {
    const ArrowSchema &schema = state_of(self).schema.value;
    std::vector<std::string_view> names;
    for (std::int64_t i = 0; i < schema.n_children; ++i) names.emplace_back(schema.children[i]->name);
    return opline::python::list_of(names, opline::python::text_of);
}

PyObject *stream_next(PyObject *self, PyObject *) {
    return guarded([&]() -> PyObject * {
        Stream &s = state_of(self);
        Held<ArrowArray> batch;
        without_lock(s, [&] { return s.stream->get_next(s.stream, &batch.value); });
        if (!batch.value.release) Py_RETURN_NONE;
        const auto &a = batch.value;
        PyObject *columns = PyList_New(0);
        if (!columns) return nullptr;
        for (std::int64_t i = 0; i < a.n_children; ++i) {
            PyObject *made = column(s, *s.schema.value.children[i], *a.children[i]);
            if (!made || PyList_Append(columns, made) < 0) {
                Py_XDECREF(made);
                Py_DECREF(columns);
                return nullptr;
            }
            Py_DECREF(made);
        }
        return Py_BuildValue("(nN)", static_cast<Py_ssize_t>(a.length), columns);
    });
}

PyMethodDef stream_methods[] = {
    {"names", stream_names, METH_NOARGS, "names() -> the columns' names"},
    {"next", stream_next, METH_NOARGS,
     "next() -> (rows, [column]), or None at the end. A column: (numpy's type, data, a byte per row that is 1 where it "
     "is absent, or None); of texts (\"codes\", i32, -1: absent, [texts]), or (\"text\", UTF-8, offsets i32). Raises "
     "ValueError with what the query's engine says."},
    {nullptr, nullptr, 0, nullptr}};

opline::python::TypeSlots stream_slots = opline::python::type_slots(
    "ArrowStream(capsule of an Arrow C stream, names of the columns whose texts are wanted as they are)",
    stream_methods, stream_new, stream_dealloc);

}  // namespace

PyType_Spec opline_arrow_stream_spec = {"opline._core.ArrowStream", sizeof(StreamObject), 0, Py_TPFLAGS_DEFAULT,
                                        stream_slots.data()};
