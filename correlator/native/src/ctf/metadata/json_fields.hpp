// SPDX-License-Identifier: MIT
// Field classes in CTF 2 metadata (CTF2-SPEC-2.0, section 5.3), and how a fragment's properties are read. Private to
// json.cpp.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "ctf/metadata/types.hpp"

namespace opline::ctf {

using Json = nlohmann::json;
using RoleNames = std::map<std::string, FieldRole>;

inline const RoleNames kNoRoles{};

class JsonFields {
  protected:
    [[noreturn]] void unsupported(const std::string &what) const {
        throw Unsupported("metadata fragment " + std::to_string(number_) + ": " + what);
    }
    [[noreturn]] void malformed(const std::string &what) const {
        throw Malformed("metadata fragment " + std::to_string(number_) + ": " + what);
    }

    const Json &property(const Json &o, const char *name) const {
        auto it = o.find(name);
        if (it == o.end()) malformed(std::string("\"") + name + "\" is missing");
        return *it;
    }
    std::string text(const Json &v, const char *name) const {
        if (!v.is_string()) malformed(std::string("\"") + name + "\" is to be a text");
        return v.get<std::string>();
    }
    std::string text_of(const Json &o, const char *name, const char *otherwise = nullptr) const {
        if (otherwise && !o.contains(name)) return otherwise;
        return text(property(o, name), name);
    }
    std::uint64_t number_of(const Json &o, const char *name,
                            std::optional<std::uint64_t> otherwise = std::nullopt) const {
        if (otherwise && !o.contains(name)) return *otherwise;
        const Json &v = property(o, name);
        if (!v.is_number_unsigned()) malformed(std::string("\"") + name + "\" is to be a whole number, not below 0");
        return v.get<std::uint64_t>();
    }
    std::int64_t integer(const Json &v, const char *name) const {
        if (!v.is_number_integer()) malformed(std::string("\"") + name + "\" is to be a whole number");
        return v.is_number_unsigned() ? static_cast<std::int64_t>(v.get<std::uint64_t>()) : v.get<std::int64_t>();
    }

    void check_extensions(const Json &o) const {
        auto it = o.find("extensions");
        if (it == o.end() || it->empty()) return;
        unsupported("an extension of the format" + (it->is_object() ? ": " + it->begin().key() : std::string()));
    }

    TypePtr field_class(const Json &f, std::uint32_t depth);

    // An alias is compiled at its use, as the meaning of roles depends on the scope. An alias names only earlier
    // aliases.
    const Json &aliased(const Json &name) const {
        auto alias = aliases_.find(name.get<std::string>());
        if (alias == aliases_.end()) malformed("no field class alias \"" + name.get<std::string>() + "\"");
        return alias->second;
    }

    std::map<std::string, Json> aliases_;
    const RoleNames *roles_ = &kNoRoles;
    std::size_t number_ = 0;  // of the fragment

  private:
    std::uint32_t alignment_of(const Json &f, const char *name) const;
    Location location(const Json &f, const char *name) const;
    std::vector<Range> ranges(const Json &set) const;
    void take_roles(const Json &f, Type &t) const;
    void bit_array(const Json &f, Type &t) const;
    void integer_class(const Json &f, Type &t, bool is_signed) const;
    void check_encoding(const Json &f) const;
    void members(const Json &list, Type &t, std::uint32_t depth);
    void options(const Json &list, Type &t, std::uint32_t depth);
};

}  // namespace opline::ctf
