// SPDX-License-Identifier: MIT
// libFuzzer target: any bytes as a stream file, under the metadata of the files named by OPLINE_FUZZ_METADATA
// (separated by colons; the first byte of the input chooses one; a second file begins where the next two bytes say).
#include <cstdint>
#include <iterator>
#include <memory>
#include <sstream>
#include <vector>

#include "counting_consumer.hpp"
#include "ctf/metadata/types.hpp"
#include "ctf/reader.hpp"
#include "scratch_trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    using namespace opline;
    static const std::vector<std::unique_ptr<ScratchTrace>> traces = [] {
        std::vector<std::unique_ptr<ScratchTrace>> out;
        const char *names = std::getenv("OPLINE_FUZZ_METADATA");
        std::istringstream list(names ? names : "");
        for (std::string name; std::getline(list, name, ':');) {
            std::ifstream in(name, std::ios::binary);
            if (!in) throw std::runtime_error("cannot read " + name);
            out.push_back(std::make_unique<ScratchTrace>());
            out.back()->write("metadata", std::string(std::istreambuf_iterator<char>(in), {}));
        }
        if (out.empty()) throw std::runtime_error("OPLINE_FUZZ_METADATA names no metadata");
        return out;
    }();
    if (size < 3) return 0;
    const ScratchTrace &trace = *traces[data[0] % traces.size()];
    const std::string_view bytes(reinterpret_cast<const char *>(data) + 3, size - 3);
    const std::size_t cut = data[1] | static_cast<std::size_t>(data[2]) << 8;
    trace.write("ch_0", bytes.substr(0, cut ? cut : bytes.size()));
    trace.write("ch_1", cut && cut < bytes.size() ? bytes.substr(cut) : std::string_view());
    try {
        ctf::Reader reader({trace.path()});
        CountingConsumer consumer;
        reader.open(consumer);
        while (reader.run(1u << 12)) {
        }
        // an event has 32 bits at least, and the consumer is told of the end
        if (consumer.count * 4 > size || !consumer.finished) __builtin_trap();
    } catch (const ctf::Unsupported &) {
    } catch (const ctf::Malformed &) {
    }
    return 0;
}
