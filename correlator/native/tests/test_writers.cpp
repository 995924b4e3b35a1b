// SPDX-License-Identifier: MIT
// Who writes a file's row groups makes no difference to its bytes.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "output/parquet/writers.hpp"

using namespace opline;
using parquet::PendingFile;
using parquet::Writers;

namespace {

constexpr std::size_t kRowGroups = 40;

std::vector<parquet::File::ColumnSpec> specs() {
    return {{"number", ColumnType::kInt64}, {"name", ColumnType::kDict}, {"text", ColumnType::kText}};
}

Table table_of(const char *name) {
    std::vector<Column> columns;
    for (const auto &spec : specs()) columns.emplace_back(spec.name, spec.type);
    return {name, std::move(columns)};
}

// Each row group has names that were new to the pool when it was filled.
void fill(Table &table, std::size_t group, StringPool &strings) {
    for (std::size_t i = 0; i < 10'000 + group; ++i) {
        const std::size_t row = table.add_row();
        table.columns[0].put(row, static_cast<std::int64_t>(i * i % 1009 + group));
        table.columns[1].put(row, strings.intern("name " + std::to_string(i % 200 + group * 100)));
        if (i % 3 == 0) table.columns[2].put_absent(row);
        else table.columns[2].put_text(row, std::to_string(i));
    }
}

class Folder {
  public:
    Folder() { ::mkdtemp(path_.data()); }
    ~Folder() {
        for (const std::string &file : files_) ::unlink(file.c_str());
        ::rmdir(path_.data());
    }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    std::string add(const std::string &name) {
        files_.push_back(path_.data() + ("/" + name));
        return files_.back();
    }

  private:
    std::array<char, 32> path_{"/tmp/opline-writers-XXXXXX"};
    std::vector<std::string> files_;
};

int created(const std::string &path) { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); }

std::string bytes_of(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Two files' bytes, with so many threads beside.
std::pair<std::string, std::string> written(unsigned threads) {
    Folder folder;
    StringPool strings;
    const std::array<std::string, 2> paths = {folder.add("a"), folder.add("b")};
    std::array<std::shared_ptr<PendingFile>, 2> files;
    for (std::size_t i = 0; i < 2; ++i) files[i] = std::make_shared<PendingFile>(created(paths[i]), specs(), "schema");
    std::array<Table, 2> tables = {table_of("a"), table_of("b")};
    std::unique_ptr<Writers> writers = threads != 0 ? std::make_unique<Writers>(threads) : nullptr;
    for (std::size_t group = 0; group < kRowGroups; ++group)
        for (std::size_t i = 0; i < 2; ++i) {
            if (i == 1 && group % 4 != 0) continue;
            fill(tables[i], group, strings);
            if (writers) {
                writers->add(files[i], tables[i], strings);
                CHECK(tables[i].rows() == 0);
            } else {
                files[i]->add(tables[i], strings);
                tables[i].clear();
            }
        }
    for (auto &file : files) {
        file->settled().close();
        CHECK(file->settled().error() == 0);
    }
    return {bytes_of(paths[0]), bytes_of(paths[1])};
}

}  // namespace

TEST_CASE("files have the same bytes whoever writes them") {
    const auto expected = written(0);
    CHECK(expected.first.size() > 100'000);
    for (const unsigned threads : {1u, 2u, 5u}) CHECK(written(threads) == expected);
}

TEST_CASE("what can't be written is known at the latest when all is settled") {
    StringPool strings;
    Table table = table_of("a");
    Folder folder;
    const std::string path = folder.add("a");
    ::close(created(path));
    const int read_only = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const auto file = std::make_shared<PendingFile>(read_only, specs(), "");
    CHECK(file->error() == EBADF);
    Writers writers(1);
    fill(table, 0, strings);
    writers.add(file, table, strings);
    CHECK(file->settled().error() == EBADF);
}

TEST_CASE("a file that nobody asks for any more is still written to its end") {
    Folder folder;
    StringPool strings;
    Table table = table_of("a");
    const std::string path = folder.add("a");
    {
        Writers writers(2);
        auto file = std::make_shared<PendingFile>(created(path), specs(), "");
        for (std::size_t group = 0; group < 3; ++group) {
            fill(table, group, strings);
            writers.add(file, table, strings);
        }
        file.reset();
    }
    CHECK(bytes_of(path).size() > 10'000);
}
