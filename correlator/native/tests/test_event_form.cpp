// SPDX-License-Identifier: MIT
// Events as JSON and CSV: well-formed whatever is in a field or is missing.
#include <doctest/doctest.h>

#include <limits>

#include <nlohmann/json.hpp>

#include "core/event_form.hpp"

using namespace opline;

namespace {

std::string written(EventForm &form, const std::vector<Slot> &values) {
    WrittenClass cls;
    cls.name = "p:e";
    for (std::size_t i = 0; i < values.size(); ++i)
        cls.payload.push_back({form.label("f\"" + std::to_string(i)), static_cast<std::int32_t>(i)});
    StreamDecl stream;
    std::string out;
    form.event(out, cls, stream, {0, 0, 0, kNoCpu, 7, values.data()});
    return out;
}

}  // namespace

TEST_CASE("what no JSON number can be is a text, and nothing is cut off") {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    const double third = 1.0 / 3;
    const std::string out = written(
        *json_form(), {Slot::of(kInfinite), Slot::of(-kInfinite), Slot::of(std::numeric_limits<double>::quiet_NaN()),
                       Slot::of(third), Slot::of(2.0), Slot::of(UINT64_MAX), Slot::of(INT64_MIN), Slot()});
    REQUIRE(out.back() == '\n');
    const auto row = nlohmann::json::parse(out);
    const auto &fields = row["fields"];
    CHECK(fields["f\"0"] == "inf");
    CHECK(fields["f\"1"] == "-inf");
    CHECK(fields["f\"2"] == "nan");
    CHECK(fields["f\"3"].get<double>() == third);
    CHECK(out.find(": 2.0,") != std::string::npos);
    CHECK(fields["f\"5"].get<std::uint64_t>() == UINT64_MAX);
    CHECK(fields["f\"6"].get<std::int64_t>() == INT64_MIN);
    CHECK(fields["f\"7"].is_null());
    CHECK(row["host"].is_null());
    CHECK(row["cpu"].is_null());
}

TEST_CASE("any byte is in a text, and each event is a line") {
    std::string all;
    for (int byte = 255; byte >= 0; --byte) all += static_cast<char>(byte);
    all += "\xe2\x80\xae\xf0\x9f\x98\x80";  // what a terminal obeys, and four bytes
    const std::string out = written(*json_form(), {Slot::of(std::string_view(all))});
    CHECK(out.find('\n') == out.size() - 1);
    const auto text = nlohmann::json::parse(out)["fields"]["f\"0"].get<std::string>();
    CHECK(text.find("\xf0\x9f\x98\x80") != std::string::npos);
    CHECK(text.find("\xe2\x80\xae") != std::string::npos);
    CHECK(text.find('\0') != std::string::npos);
    CHECK(out.find("\xe2\x80\xae") == std::string::npos);
    const std::string cell = written(*csv_form(), {Slot::of(std::string_view(all))});
    CHECK(cell.find('\n') == cell.size() - 1);
}

TEST_CASE("what is missing is a row of its own") {
    StreamDecl stream;
    stream.host = "a,b";
    stream.instance = 3;
    std::string out, cells;
    json_form()->gap(out, stream, {0, Gap::Kind::kPackets, kNoTime, kNoTime, 0, {}});
    auto row = nlohmann::json::parse(out);
    CHECK(row["ts_ns"].is_null());
    CHECK(row["event"].is_null());
    CHECK(row["lost"]["count"].is_null());
    CHECK(row["lost"]["stream"] == 3);
    csv_form()->gap(cells, stream, {0, Gap::Kind::kDamage, 5, kNoTime, 0, "cut \"off\""});
    CHECK(cells ==
          "5,\"a,b\",,,,,,,,,\"{\"\"what\"\": \"\"not readable\"\", \"\"count\"\": null, \"\"stream\"\": 3, "
          "\"\"end_ns\"\": null, \"\"why\"\": \"\"cut \\\"\"off\\\"\"\"\"}\"\n");
}
