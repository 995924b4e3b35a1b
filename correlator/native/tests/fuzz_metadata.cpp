// SPDX-License-Identifier: MIT
// libFuzzer target: any bytes as a trace's metadata, over the fixed stream of the file named by OPLINE_FUZZ_STREAM.
// Metadata that is accepted is compiled, and the stream is decoded with it.
#include <cstdint>
#include <iterator>

#include "counting_sink.hpp"
#include "ctf/metadata/types.hpp"
#include "ctf/reader.hpp"
#include "scratch_trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    using namespace opline;
    static const ScratchTrace trace;
    static const bool prepared = [] {
        const char *name = std::getenv("OPLINE_FUZZ_STREAM");
        std::ifstream in(name ? name : "", std::ios::binary);
        if (!in) throw std::runtime_error("OPLINE_FUZZ_STREAM names no stream file");
        trace.write("ch_0", std::string(std::istreambuf_iterator<char>(in), {}));
        return true;
    }();
    (void)prepared;
    const std::string bytes(reinterpret_cast<const char *>(data), size);
    try {
        ctf::parse_metadata(ctf::metadata_text(bytes));
        trace.write("metadata", bytes);
        ctf::Reader reader({trace.path()});
        CountingSink consumer;
        reader.open(consumer);
        while (reader.run(1u << 12)) {}
        reader.environment_json();
    } catch (const ctf::Unsupported &) {
    } catch (const ctf::Malformed &) {}
    return 0;
}
