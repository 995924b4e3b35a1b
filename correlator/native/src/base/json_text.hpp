// SPDX-License-Identifier: MIT
// JSON whose texts come from a trace: bytes that are not UTF-8 are written as everywhere (utf8.hpp).
#pragma once
#include <string>
#include <utility>

#include "base/utf8.hpp"

namespace opline {

template <typename Json>
void make_valid(Json &value) {
    if (value.is_string()) {
        const auto &text = value.template get_ref<const std::string &>();
        if (!is_ascii(text)) value = valid_utf8(text);
    } else if (value.is_array()) {
        for (auto &item : value) make_valid(item);
    } else if (value.is_object()) {
        Json mended = Json::object();
        for (auto it = value.begin(); it != value.end(); ++it) {
            make_valid(it.value());
            mended[is_ascii(it.key()) ? it.key() : valid_utf8(it.key())] = std::move(it.value());
        }
        value = std::move(mended);
    }
}

// One line of JSON in UTF-8.
template <typename Json>
std::string json_text(Json value) {
    make_valid(value);
    return value.dump();
}

}  // namespace opline
