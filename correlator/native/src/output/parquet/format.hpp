// SPDX-License-Identifier: MIT
// Numbers of Parquet's format that this writer uses (apache/parquet-format 2.11, parquet.thrift).
#pragma once
#include <cstdint>

#include "base/table.hpp"

namespace opline::parquet {

enum Type { kBoolean = 0, kPhysicalInt32 = 1, kPhysicalInt64 = 2, kByteArray = 6 };
enum Encoding { kPlain = 0, kRle = 3, kDelta = 5, kDeltaTexts = 7, kRleDictionary = 8 };
enum ConvertedType { kUtf8 = 0, kUint32Converted = 13, kUint64Converted = 14 };
constexpr int kOptional = 1, kDataPage = 0, kDictionaryPage = 2, kZstd = 6;

inline int physical(ColumnType t) {
    switch (t) {
    case ColumnType::kInt64:
    case ColumnType::kUint64: return kPhysicalInt64;
    case ColumnType::kInt32:
    case ColumnType::kUint32: return kPhysicalInt32;
    case ColumnType::kBool: return kBoolean;
    case ColumnType::kDict:
    case ColumnType::kText: break;
    }
    return kByteArray;
}

inline bool is_number(ColumnType t) { return physical(t) == kPhysicalInt32 || physical(t) == kPhysicalInt64; }

}  // namespace opline::parquet
