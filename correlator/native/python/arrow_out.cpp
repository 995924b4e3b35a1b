// SPDX-License-Identifier: MIT
// arrow_capsule: rows of a Core's tables for DuckDB, without a copy: the buffers are those of the bytes that
// Core.take() gave.
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "arrow.hpp"
#include "arrow_abi.hpp"
#include "guarded.hpp"

namespace {

using opline::python::guarded;

struct Spec {
    std::string name;
    const char *format;
    bool is_dictionary;
};

const char *format_of(std::string_view type) {
    static const std::unordered_map<std::string_view, const char *> known{
        {"i64", "l"}, {"u64", "L"}, {"i32", "i"}, {"u32", "I"}, {"bool", "b"}, {"dict", "i"}, {"text", "u"},
    };
    const auto found = known.find(type);
    if (found == known.end()) throw std::runtime_error("no type of a column: " + std::string(type));
    return found->second;
}

// What a schema or an array points to: shared by all its parts, as whoever gets them may keep a part alone.
template <class T>
struct Parts {
    std::vector<T> children;
    std::vector<T *> pointers;
    std::vector<T> dictionaries;
    std::vector<std::array<const void *, 3>> buffers, words;
    std::vector<Spec> specs;
    std::array<const void *, 1> none{nullptr};
    PyObject *owner = nullptr;  // of the buffers

    explicit Parts(std::size_t columns) : children(columns), dictionaries(columns) {}
    Parts(const Parts &) = delete;
    Parts &operator=(const Parts &) = delete;
    ~Parts() {
        if (!owner) return;
        const PyGILState_STATE state = PyGILState_Ensure();
        Py_DECREF(owner);
        PyGILState_Release(state);
    }
};

template <class T>
using Shared = std::shared_ptr<Parts<T>>;

template <class T>
void release(T *part) {
    for (std::int64_t i = 0; i < part->n_children; ++i)
        if (part->children[i]->release) part->children[i]->release(part->children[i]);
    if (part->dictionary && part->dictionary->release) part->dictionary->release(part->dictionary);
    part->release = nullptr;
    delete static_cast<Shared<T> *>(part->private_data);
}

template <class T>
void own(T &part, const Shared<T> &parts) {
    part.private_data = new Shared<T>(parts);
    part.release = release<T>;
}

// When its parts are filled.
template <class T>
void own_children(const Shared<T> &parts) {
    for (T &child : parts->children) {
        if (child.dictionary) own(*child.dictionary, parts);
        own(child, parts);
        parts->pointers.push_back(&child);
    }
}

struct Given {
    std::vector<Spec> specs;
    PyObject *pieces;  // a list of (rows, columns, words)
    Py_ssize_t next = 0;

    explicit Given(PyObject *list) : pieces(Py_NewRef(list)) {}
    Given(const Given &) = delete;
    Given &operator=(const Given &) = delete;
    ~Given() {
        const PyGILState_STATE state = PyGILState_Ensure();
        Py_DECREF(pieces);
        PyGILState_Release(state);
    }
};

Given &given_of(ArrowArrayStream *stream) { return *static_cast<Given *>(stream->private_data); }

int get_schema(ArrowArrayStream *stream, ArrowSchema *out) try {
    const std::size_t columns = given_of(stream).specs.size();
    const auto parts = std::make_shared<Parts<ArrowSchema>>(columns);
    parts->specs = given_of(stream).specs;
    for (std::size_t i = 0; i < columns; ++i) {
        const Spec &spec = parts->specs[i];
        ArrowSchema &child = parts->children[i];
        child = {spec.format, spec.name.c_str(), nullptr, opline::python::kArrowNullable, 0, nullptr,
                 nullptr,     nullptr,           nullptr};
        if (spec.is_dictionary) {
            child.dictionary = &parts->dictionaries[i];
            *child.dictionary = {"u", "", nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr};
        }
    }
    own_children(parts);
    *out = {"+s",    "",      nullptr, 0, static_cast<std::int64_t>(columns), parts->pointers.data(),
            nullptr, nullptr, nullptr};
    own(*out, parts);
    return 0;
} catch (const std::bad_alloc &) {
    return ENOMEM;
}

// The bytes of an object that is held by its piece.
const void *buffer(PyObject *bytes) { return bytes == Py_None ? nullptr : PyBytes_AS_STRING(bytes); }

void fill(Parts<ArrowArray> &parts, const std::vector<Spec> &specs, std::int64_t rows, PyObject *columns,
          PyObject *words) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
        PyObject *column = PyList_GET_ITEM(columns, static_cast<Py_ssize_t>(i));
        const auto at = [&](Py_ssize_t place) { return PyTuple_GET_ITEM(column, place); };
        const auto nulls = static_cast<std::int64_t>(PyLong_AsLongLong(at(2)));
        const bool is_text = at(5) != Py_None;
        auto &b = parts.buffers[i];
        b = {nulls ? buffer(at(3)) : nullptr, is_text ? buffer(at(5)) : buffer(at(4)),
             is_text ? buffer(at(4)) : nullptr};
        parts.children[i] = {rows, nulls, 0, is_text ? 3 : 2, 0, b.data(), nullptr, nullptr, nullptr, nullptr};
        if (!specs[i].is_dictionary) continue;
        auto &w = parts.words[i];
        w = {nullptr, buffer(PyTuple_GET_ITEM(words, 1)), buffer(PyTuple_GET_ITEM(words, 2))};
        const auto texts = static_cast<std::int64_t>(PyLong_AsLongLong(PyTuple_GET_ITEM(words, 0)));
        parts.dictionaries[i] = {texts, 0, 0, 3, 0, w.data(), nullptr, nullptr, nullptr, nullptr};
        parts.children[i].dictionary = &parts.dictionaries[i];
    }
}

int next_piece(Given &given, ArrowArray *out) try {
    if (given.next >= PyList_GET_SIZE(given.pieces)) {
        *out = {};
        return 0;
    }
    PyObject *piece = PyList_GET_ITEM(given.pieces, given.next++);
    const std::size_t columns = given.specs.size();
    const auto parts = std::make_shared<Parts<ArrowArray>>(columns);
    parts->buffers.resize(columns);
    parts->words.resize(columns);
    parts->owner = Py_NewRef(piece);
    const auto rows = static_cast<std::int64_t>(PyLong_AsLongLong(PyTuple_GET_ITEM(piece, 0)));
    fill(*parts, given.specs, rows, PyTuple_GET_ITEM(piece, 1), PyTuple_GET_ITEM(piece, 2));
    own_children(parts);
    *out = {rows,    0,       0,      1, static_cast<std::int64_t>(columns), parts->none.data(), parts->pointers.data(),
            nullptr, nullptr, nullptr};
    own(*out, parts);
    return 0;
} catch (const std::bad_alloc &) {
    return ENOMEM;
}

int get_next(ArrowArrayStream *stream, ArrowArray *out) {
    const PyGILState_STATE state = PyGILState_Ensure();
    const int error = next_piece(given_of(stream), out);
    PyGILState_Release(state);
    return error;
}

const char *get_last_error(ArrowArrayStream *) { return nullptr; }

void release_stream(ArrowArrayStream *stream) {
    delete &given_of(stream);
    stream->release = nullptr;
}

void free_capsule(PyObject *capsule) {
    auto *stream = static_cast<ArrowArrayStream *>(PyCapsule_GetPointer(capsule, opline::python::kArrowStream));
    if (stream->release) stream->release(stream);
    delete stream;
}

// Whether every piece is (rows, a list of a column per spec, (number of texts, offsets, texts)).
bool is_sound(PyObject *pieces, std::size_t columns) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pieces); ++i) {
        long long rows, texts;
        PyObject *given, *ends, *data;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(pieces, i), "LO!(LSS)", &rows, &PyList_Type, &given, &texts, &ends,
                              &data))
            return false;
        if (static_cast<std::size_t>(PyList_GET_SIZE(given)) != columns) {
            PyErr_SetString(PyExc_ValueError, "not as many columns as there are names");
            return false;
        }
        for (Py_ssize_t c = 0; c < PyList_GET_SIZE(given); ++c) {
            const char *name, *type;
            Py_ssize_t nulls;
            PyObject *validity, *values, *offsets;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(given, c), "ssnSSO", &name, &type, &nulls, &validity, &values,
                                  &offsets))
                return false;
        }
    }
    return true;
}

}  // namespace

PyObject *opline_arrow_capsule(PyObject *, PyObject *args) {
    PyObject *columns, *pieces;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &columns, &PyList_Type, &pieces)) return nullptr;
    return guarded([&]() -> PyObject * {
        auto given = std::make_unique<Given>(pieces);
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(columns); ++i) {
            const char *name, *type;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(columns, i), "ss", &name, &type)) return nullptr;
            given->specs.push_back({name, format_of(type), std::string_view(type) == "dict"});
        }
        if (!is_sound(pieces, given->specs.size())) return nullptr;
        auto stream = std::make_unique<ArrowArrayStream>();
        *stream = {get_schema, get_next, get_last_error, release_stream, given.get()};
        PyObject *capsule = PyCapsule_New(stream.get(), opline::python::kArrowStream, free_capsule);
        if (!capsule) return nullptr;
        (void)stream.release();
        (void)given.release();
        return capsule;
    });
}
