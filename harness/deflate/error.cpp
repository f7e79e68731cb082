// SPDX-License-Identifier: GPL-2.0
#include "deflate/error.h"

#include <array>
#include <cstddef>

namespace iaa::deflate {
namespace {

constexpr std::array<std::string_view, kErrorCodes> kTexts = {
    "no error",
    "input ends inside a block header too large to buffer",
    "undefined code-length code in a block header",
    "first literal/length code length repeats a previous one",
    "first distance code length repeats a previous one",
    "no literal/length symbol has a code",
    "more literal/length code lengths than the header announces",
    "more distance code lengths than the header announces",
    "oversubscribed code-length tree",
    "oversubscribed literal/length tree",
    "oversubscribed distance tree",
    "bits that are no literal/length code",
    "bits that are no distance code",
    "block type 3",
    "stored block's length and its complement disagree",
    "input ends elsewhere than at an end of block",
    "match length 0 or above 258",
    "match distance 0 or above 4096",
    "match distance reaches before the start of the output",
    "no progress although there is input",
    "malformed packed run-length record",
    "value too wide for the output elements",
    "invalid value in the configuration and state area (AECS)",
    "source 1 has fewer elements than announced",
    "source 2 has fewer elements than announced",
    "output does not fit",
    "match source in another mini-block",
    "match runs into the next mini-block",
    "wrong mini-block size",
    "decompressor's verification failed",
    "symbol without a Huffman code",
    "packed run-length elements wider than 32 bits",
    "input ends before the announced number of elements",
    "error 33 (not assigned)",
    "input ends inside a zero-compression record header",
    "more than 286 literal/length codes",
    "more than 30 distance codes",
};

}  // namespace

std::string_view describe(ErrorCode code) {
    const auto index = static_cast<std::size_t>(code);
    return index < kTexts.size() ? kTexts[index] : "unknown error";
}

}  // namespace iaa::deflate
