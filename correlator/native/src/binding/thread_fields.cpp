// SPDX-License-Identifier: MIT
#include "binding/thread_fields.hpp"

#include <initializer_list>
#include <string_view>

namespace opline {
namespace {

constexpr auto kPayload = FieldScope::kPayload, kContext = FieldScope::kContext;

// The first existing name; for a name, the first existing scope.
std::int32_t first_of(const ClassDecl &decl, std::initializer_list<FieldScope> scopes,
                      std::initializer_list<std::string_view> names) {
    for (const auto name : names)
        for (const auto scope : scopes)
            for (std::size_t i = 0; i < decl.fields.size(); ++i)
                if (decl.fields[i].scope == scope && decl.fields[i].name == name) return static_cast<std::int32_t>(i);
    return kNoSlot;
}

}  // namespace

ThreadFields thread_fields(const ClassDecl &decl, const Providers &providers) {
    const std::string_view name = decl.name;
    if (providers.relay_of(name))
        return {first_of(decl, {kPayload, kContext}, {"vtid"}), first_of(decl, {kPayload, kContext}, {"vpid"}),
                first_of(decl, {kPayload, kContext}, {"procname"})};
    const bool own = starts_with(name, kBpfCalls) || starts_with(name, kBpfBlock) || starts_with(name, kBpfSched) ||
                     providers.timed_of(name) != 0;
    if (own || starts_with(name, "block_"))  // the kernel's block events have both
        return {first_of(decl, {kPayload, kContext}, {"tid", "perf_tid", "vtid"}),
                first_of(decl, {kPayload, kContext}, {"pid", "perf_pid", "vpid"}),
                first_of(decl, {kPayload, kContext}, {"comm", "procname"})};
    return {first_of(decl, {kContext}, {"vtid", "tid", "perf_tid", "pthread_id"}),
            first_of(decl, {kContext}, {"vpid", "pid", "perf_pid"}), first_of(decl, {kContext}, {"procname"})};
}

}  // namespace opline
