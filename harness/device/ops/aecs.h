// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "deflate/accumulator.h"
#include "deflate/decoder.h"
#include "deflate/huffman.h"

/// The two kinds of analytics engine configuration and state (AECS) as they lie in guest memory.
/// Sources: the kernel's struct aecs_comp_table_record and struct aecs_decomp_table_record, and
/// core-iaa's hw_aecs_api.h. What those leave open is the model's own choice and is marked so here
/// and in Documentation/device-operations.rst.
namespace iaa::device {

inline constexpr std::uint32_t kAecsAlignment = 32;  ///< of addresses and sizes, bytes

/// Compression, 1568 bytes:
///      0  crc u32
///      4  XOR checksum u32, 15:0
///      8  reserved, 20 bytes. The model's: u8 at 8, 1 where an odd number of bytes was summed
///     28  valid bits of the output accumulator u32
///     32  output accumulator, 256 bytes
///    288  literal/length codes, 286 x u32: length << 15 | code; then 8 bytes reserved
///   1440  distance codes, 30 x u32; then 8 bytes reserved
inline constexpr std::uint32_t kCompressAecsSize = 1568;

/// Bytes in front of the codes: what is written back when the tables are not.
inline constexpr std::uint32_t kCompressStateSize = 288;

struct CompressAecs {
    std::uint32_t crc = 0;
    std::uint16_t xor_sum = 0;
    bool odd = false;  ///< the checksums stand behind an odd number of bytes
    deflate::Accumulator accumulator{};
    deflate::CodeTables tables{};

    bool operator==(const CompressAecs&) const = default;
};

/// Reads an AECS. Empty on success, else what is wrong with it (error code 22).
[[nodiscard]] std::string load(std::span<const std::uint8_t, kCompressAecsSize> image,
                               CompressAecs& aecs);

/// The same without the codes, which are left as they are: for header generation, which makes its
/// own. What lies there need not be codes.
[[nodiscard]] std::string load_state(std::span<const std::uint8_t, kCompressStateSize> image,
                                     CompressAecs& aecs);

/// The reverse. Every byte is written.
void store(const CompressAecs& aecs, std::span<std::uint8_t, kCompressAecsSize> image);

/// Decompression, 5376 bytes, or the first 1248 (1088 where the format is 1) of them:
///      0  crc u32
///      4  XOR checksum u32, 15:0
///      8  filter parameters, output modifier index (not looked at)
///     20  initial decompressed bytes to drop u32 (must be 0)
///     24  reserved
///    168  output accumulator, 8 bytes
///    176  its valid bits u32; bit 0: format 2
///    180  bit offset for indices (not looked at)
///    184  input accumulator, 32 x u64
///    440  their valid bits, 32 x u8
///    472  end-of-block entry u32. The model's: length << 15 | code; not read
///    476  initial bits to drop u8 (must be 0)
///    477  format u8: 0 for format 1, 1 for format 2
///    478  reserved
///    480  first table index, per length 1 to 15, packed; reserved in format 2
///    500  number of codes, packed
///    520  first code, packed
///    540  first code that is not a literal's, packed; all ones where there is none
///    560  248 bytes, the model's own use: 21 codes of symbols 265-285 and 30 of the distances
///         (length << 15 | code), u32 0; at 768 what is left of a match that the output cut u16,
///         its distance u16; u8 1 where the checksums stand behind an odd number of bytes; u8 1
///         where the last thing read is an end of block; the rest zero
///    808  268 bytes. Format 1: the symbols 0-264 in the order of their codes, one byte each, less
///         256 from the first code on that is not a literal's. Format 2: from 832 on, 224 bytes of
///         the map below, reserved before and behind them
///   1076  parser state u16: 0 symbols, 1 block header, 2 stored, 4 symbols of the final block,
///         6 stored and final, 8 ended; then 2 bytes reserved
///   1080  bytes left of a stored block u16; reserved to 1088
///   1088  Format 2: the map's other 144 bytes. It has a number per symbol 0-264, one behind the
///         other: length in bits 3:0, above that the code less the length's first code, in as many
///         bits as the symbol's own number takes. Reserved behind it; format 1: from 1088 on
///   1252  history write offset 14:0, wrapped 15; then 2 bytes reserved
///   1256  history, 4096 bytes; then 24 reserved
/// Packed: the field for length n has n + 1 bits; lengths 1-6 share the first word, then 7-9,
/// 10-11, 12-13 and 14-15.
inline constexpr std::uint32_t kDecompressAecsSize = 5376;
inline constexpr std::uint32_t kAecsSizeWithoutHistory = 1248;
inline constexpr std::uint32_t kAecsSizeFormat1 = 1088;

/// Whether source 2 of a DECOMPRESS may have this size.
[[nodiscard]] constexpr bool is_decompress_aecs_size(std::uint32_t size, bool format2) {
    return size == kDecompressAecsSize || size == kAecsSizeWithoutHistory ||
           (size == kAecsSizeFormat1 && !format2);
}

struct DecompressAecs {
    std::uint32_t crc = 0;
    std::uint16_t xor_sum = 0;
    bool odd = false;
    deflate::Accumulator input{};        ///< bits in front of source 1
    std::array<std::uint8_t, 8> held{};  ///< output not yet written
    std::uint32_t held_size = 0;         ///< bytes of it, at most 7
    deflate::DecoderState state{};
};

/// Reads an AECS of one of the sizes above; what lies beyond the image is as in a new stream. Empty
/// on success, else what is wrong with it (error code 22).
[[nodiscard]] std::string load(std::span<const std::uint8_t> image, bool format2,
                               DecompressAecs& aecs);

/// Writes the fields into an image of one of the sizes above; fields that are not looked at stay as
/// they are in it.
void store(const DecompressAecs& aecs, bool format2, std::span<std::uint8_t> image);

}  // namespace iaa::device
