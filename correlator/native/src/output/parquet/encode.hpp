// SPDX-License-Identifier: MIT
// Encodings of Parquet's values that need no second look at them (apache/parquet-format 2.11, Encodings.md).
// Little-endian machines.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace opline::parquet {

using Bytes = std::vector<char>;

void add_varint(Bytes &out, std::uint64_t v);  // unsigned LEB128
void add_zigzag(Bytes &out, std::int64_t v);

// DELTA_BINARY_PACKED, blocks of 128 in miniblocks of 32. Differences wrap at the type's width, as required by the
// format.
void add_delta(Bytes &out, const std::uint32_t *values, std::size_t n);
void add_delta(Bytes &out, const std::uint64_t *values, std::size_t n);
// The RLE / bit-packing hybrid, without a length before. Values are below 2^width, width is 1 to 32. With a period the
// values repeat after `period` values, and only the first many_of() are read.
void add_hybrid(Bytes &out, const std::uint32_t *values, std::size_t n, unsigned width, std::size_t period = 0);
constexpr std::size_t many_of(std::size_t period) { return 128 * period + 129; }
// The period after which the values repeat up to the end, if a period saves work; else 0. Ops of one shape make such
// columns.
std::size_t period_of(const std::uint32_t *values, std::size_t n);
// DELTA_BYTE_ARRAY: for each text the part not shared with the text before. ends: end of each text in `text`.
void add_delta_texts(Bytes &out, std::string_view text, const std::vector<std::uint32_t> &ends);

// CRC-32 as in gzip, of the bytes from `from` on, continuing the CRC `before`. crc_of_both: of bytes with CRC `crc`,
// followed by `bytes` bytes with CRC `behind`.
std::uint32_t crc_of(const Bytes &, std::size_t from = 0, std::uint32_t before = 0);
std::uint32_t crc_of_both(std::uint32_t crc, std::uint32_t behind, std::size_t bytes);

// The bytes as one frame of Zstandard (RFC 8878) at level 1: higher levels save 2 % more.
void add_zstd(Bytes &out, const Bytes &bytes);

}  // namespace opline::parquet
