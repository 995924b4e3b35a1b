// SPDX-License-Identifier: MIT
// libFuzzer target: any bytes as stream files, under the metadata of the files named by OPLINE_FUZZ_METADATA (separated
// by colons). Metadata is compiled once in a process, and nothing is a file. Of the input the first byte chooses the
// metadata and the number of CPUs that the recording counted; a second stream begins where the next two bytes say.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "counting_sink.hpp"
#include "ctf/reader.hpp"
#include "ctf/trace.hpp"

namespace {

using namespace opline;

struct Prepared {
    std::shared_ptr<ctf::Trace> trace;
    CountingSink consumer;
};

std::vector<Prepared> prepare() {
    std::vector<Prepared> out;
    const char *names = std::getenv("OPLINE_FUZZ_METADATA");
    std::istringstream list(names ? names : "");
    for (std::string name; std::getline(list, name, ':');) {
        std::ifstream in(name, std::ios::binary);
        if (!in) throw std::runtime_error("cannot read " + name);
        out.push_back({ctf::compile_trace(std::string(std::istreambuf_iterator<char>(in), {})), {}});
        out.back().trace->files = {{"ch_0", 0, nullptr}, {"ch_1", 0, nullptr}};
    }
    if (out.empty()) throw std::runtime_error("OPLINE_FUZZ_METADATA names no metadata");
    return out;
}

// Bytes that end where they end: whoever reads on is seen.
std::unique_ptr<char[]> copy_of(const std::uint8_t *data, std::size_t size) {
    std::unique_ptr<char[]> out(new char[size]);
    if (size > 0) std::memcpy(out.get(), data, size);
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    static std::vector<Prepared> all = prepare();
    if (size < 3) return 0;
    Prepared &chosen = all[data[0] % all.size()];
    const std::uint32_t cpus = data[0] >> 4;
    const std::uint8_t *const bytes = data + 3;
    std::size_t cut = data[1] | static_cast<std::size_t>(data[2]) << 8;
    if (cut == 0 || cut > size - 3) cut = size - 3;
    const std::size_t rest = size - 3 - cut;
    const auto first = copy_of(bytes, cut), second = copy_of(bytes + cut, rest);
    auto &files = chosen.trace->files;
    files[0].bytes = cut, files[0].content = first.get();
    files[1].bytes = rest, files[1].content = second.get();
    CountingSink &consumer = chosen.consumer;
    consumer.begin_again();
    ctf::Reader reader({chosen.trace}, cpus);
    reader.open(consumer);
    while (reader.run(1u << 12)) {}
    // an event has 32 bits at least, and the consumer is told of the end
    if (consumer.count * 4 > size || !consumer.finished) __builtin_trap();
    if (reader.bytes_read() > reader.bytes_total()) __builtin_trap();
    return 0;
}
