// SPDX-License-Identifier: MIT
// opline._core.TableFile: a table as a Parquet file, written by a Core.
#include "table_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "guarded.hpp"
#include "output/parquet/writers.hpp"
#include "type_slots.hpp"

namespace {

using opline::parquet::File;
using opline::parquet::PendingFile;
using opline::python::Buffer;
using opline::python::guarded;
using opline::python::rows_match;

using FilePointer = std::shared_ptr<PendingFile>;

struct FileObject {
    PyObject_HEAD
    FilePointer *file;  // nullptr: closed
};

FilePointer *&file_of(PyObject *self) { return reinterpret_cast<FileObject *>(self)->file; }

void file_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    delete file_of(self);
    type->tp_free(self);
    Py_DECREF(type);
}

// A descriptor that is closed unless it is taken.
struct Descriptor {
    int fd;
    explicit Descriptor(int given) : fd(given) {}
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
    int take() { return std::exchange(fd, -1); }
};

PyObject *file_new(PyTypeObject *type, PyObject *args, PyObject *) {
    int fd;
    PyObject *columns;
    const char *schema;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "iO!s#", &fd, &PyList_Type, &columns, &schema, &size)) return nullptr;
    Descriptor descriptor(fd);
    return guarded([&]() -> PyObject * {
        std::vector<File::ColumnSpec> specs;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(columns); ++i) {
            const char *column, *text;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(columns, i), "ss", &column, &text)) return nullptr;
            specs.push_back({column, opline::column_type(text)});
        }
        auto file = std::make_unique<FilePointer>(std::make_shared<PendingFile>(
            descriptor.take(), std::move(specs), std::string(schema, static_cast<std::size_t>(size))));
        if (!opline_table_file_is_fine((*file)->error())) return nullptr;
        PyObject *self = type->tp_alloc(type, 0);
        if (self) file_of(self) = file.release();
        return self;
    });
}

// One value into the row of a column; false on a Python error.
bool put(opline::Column &column, std::size_t row, PyObject *value, opline::StringPool &strings) {
    using opline::ColumnType;
    if (value == Py_None) {
        column.put_absent(row);
        return true;
    }
    if (column.type == ColumnType::kDict || column.type == ColumnType::kText) {
        char *text;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(value, &text, &size) != 0) return false;
        const std::string_view v(text, static_cast<std::size_t>(size));
        if (column.type == ColumnType::kText) column.put_text(row, v);
        else column.put(row, strings.intern(v));
        return true;
    }
    if (column.type == ColumnType::kUint64) {
        column.put(row, static_cast<std::uint64_t>(PyLong_AsUnsignedLongLong(value)));
        return !PyErr_Occurred();
    }
    const long long v = PyLong_AsLongLong(value);
    if (column.type == ColumnType::kInt64) column.put(row, static_cast<std::int64_t>(v));
    else if (column.type == ColumnType::kBool) column.put(row, static_cast<std::uint8_t>(v != 0));
    else column.put(row, static_cast<std::uint32_t>(v));
    return !PyErr_Occurred();
}

// The slow way in, for tests.
PyObject *file_add(PyObject *self, PyObject *columns) {
    const FilePointer pending = opline_table_file_of(self);
    if (!pending) return nullptr;
    const auto &specs = pending->settled().columns();
    if (!PyList_Check(columns) || static_cast<std::size_t>(PyList_GET_SIZE(columns)) != specs.size()) {
        PyErr_SetString(PyExc_ValueError, "a list per column is wanted");
        return nullptr;
    }
    try {
        std::vector<opline::Column> made;
        for (const auto &c : specs) made.emplace_back(c.name, c.type);
        opline::Table table("", std::move(made));
        opline::StringPool strings;
        const Py_ssize_t rows = PyList_Size(PyList_GET_ITEM(columns, 0));
        for (Py_ssize_t row = 0; row < rows; ++row) {
            const std::size_t at = table.add_row();
            for (std::size_t i = 0; i < table.columns.size(); ++i) {
                PyObject *value = PyList_GetItem(PyList_GET_ITEM(columns, static_cast<Py_ssize_t>(i)), row);
                if (!value || !put(table.columns[i], at, value, strings)) return nullptr;
            }
        }
        if (table.rows() != 0) pending->add(table, strings);
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
    return opline_table_file_is_fine(pending->error()) ? Py_NewRef(Py_None) : nullptr;
}

// Numbers of one width, and a byte per row that is 1 where it is absent, or None.
bool put_numbers(opline::Column &column, std::size_t rows, PyObject *given) {
    Buffer data, absent;
    if (!PyArg_ParseTuple(given, "y*z*", &data.view, &absent.view) || !rows_match({{&data, column.width()}}, rows))
        return false;
    std::memcpy(column.from<std::uint8_t>(0), data.view.buf, rows * column.width());
    if (!absent.view.buf) return true;
    if (!rows_match({{&absent, 1}}, rows)) return false;
    for (std::size_t row = 0; row < rows; ++row)
        if (absent.at<std::uint8_t>(row) != 0) column.put_absent(row);
    return true;
}

// Of each row the number of its text, -1: absent; and the texts.
bool put_texts(opline::Column &column, std::size_t rows, PyObject *given, opline::StringPool &strings) {
    Buffer codes;
    PyObject *list;
    if (!PyArg_ParseTuple(given, "y*O!", &codes.view, &PyList_Type, &list) || !rows_match({{&codes, 4}}, rows))
        return false;
    std::vector<std::string_view> texts;
    std::vector<std::uint32_t> ids;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
        char *text;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyList_GET_ITEM(list, i), &text, &size) != 0) return false;
        texts.emplace_back(text, static_cast<std::size_t>(size));
        if (column.type == opline::ColumnType::kDict) ids.push_back(strings.intern(texts.back()));
    }
    for (std::size_t row = 0; row < rows; ++row) {
        const auto code = codes.at<std::int32_t>(row);
        if (code >= 0 && static_cast<std::size_t>(code) >= texts.size()) {
            PyErr_SetString(PyExc_ValueError, "a number of no text");
            return false;
        }
        if (code < 0) column.put_absent(row);
        else if (ids.empty()) column.put_text(row, texts[static_cast<std::size_t>(code)]);
        else column.put(row, ids[static_cast<std::size_t>(code)]);
    }
    return true;
}

PyObject *file_add_columns(PyObject *self, PyObject *args) {
    const FilePointer pending = opline_table_file_of(self);
    Py_ssize_t given;
    PyObject *columns;
    if (!pending || !PyArg_ParseTuple(args, "nO!", &given, &PyList_Type, &columns)) return nullptr;
    const auto &specs = pending->settled().columns();
    if (given <= 0 || static_cast<std::size_t>(PyList_GET_SIZE(columns)) != specs.size()) {
        PyErr_SetString(PyExc_ValueError, "rows, and a column of each name, are wanted");
        return nullptr;
    }
    return guarded([&]() -> PyObject * {
        std::vector<opline::Column> made;
        for (const auto &c : specs) made.emplace_back(c.name, c.type);
        opline::Table table("", std::move(made));
        opline::StringPool strings;
        const auto rows = static_cast<std::size_t>(given);
        table.add_rows(rows);
        for (std::size_t i = 0; i < specs.size(); ++i) {
            PyObject *column = PyList_GET_ITEM(columns, static_cast<Py_ssize_t>(i));
            const bool is_text =
                specs[i].type == opline::ColumnType::kDict || specs[i].type == opline::ColumnType::kText;
            if (is_text ? !put_texts(table.columns[i], rows, column, strings)
                        : !put_numbers(table.columns[i], rows, column))
                return nullptr;
        }
        pending->add(table, strings);
        return opline_table_file_is_fine(pending->error()) ? Py_NewRef(Py_None) : nullptr;
    });
}

PyObject *file_close(PyObject *self, PyObject *) {
    const FilePointer pending = opline_table_file_of(self);
    if (!pending) return nullptr;
    File &file = pending->settled();
    file.close();
    delete file_of(self);
    file_of(self) = nullptr;
    if (!opline_table_file_is_fine(file.error())) return nullptr;
    return Py_BuildValue("KIK", static_cast<unsigned long long>(file.bytes()), static_cast<unsigned>(file.crc32()),
                         static_cast<unsigned long long>(file.rows()));
}

PyMethodDef file_methods[] = {
    {"add", file_add, METH_O,
     "add([values of a column]): a row group of int, bool, bytes (texts) and None; for tests. Raises OSError."},
    {"add_columns", file_add_columns, METH_VARARGS,
     "add_columns(rows, [column]): a row group. A column: (numbers or flags of its width, a byte per row that is 1 "
     "where "
     "it is absent, or None); of texts (their numbers i32, -1: absent, [texts in UTF-8]). Raises OSError."},
    {"close", file_close, METH_NOARGS, "Completes the file: its bytes, their CRC-32, and the rows. Raises OSError."},
    {nullptr, nullptr, 0, nullptr}};

opline::python::TypeSlots file_slots = opline::python::type_slots(
    "TableFile(descriptor of a new file, which it closes, [(column, type)], Arrow's schema as base64): a Parquet file "
    "that Core.write() fills. Raises "
    "OSError.",
    file_methods, file_new, file_dealloc);

}  // namespace

PyType_Spec opline_table_file_spec = {"opline._core.TableFile", sizeof(FileObject), 0, Py_TPFLAGS_DEFAULT,
                                      file_slots.data()};

FilePointer opline_table_file_of(PyObject *object) {
    if (Py_TYPE(object)->tp_dealloc != file_dealloc) PyErr_SetString(PyExc_TypeError, "a TableFile is wanted");
    else if (!file_of(object)) PyErr_SetString(PyExc_ValueError, "the file is closed");
    else return *file_of(object);
    return nullptr;
}

bool opline_table_file_is_fine(int error) {
    if (error == 0) return true;
    errno = error;
    PyErr_SetFromErrno(PyExc_OSError);
    return false;
}
