// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace iaa::deflate {

/// The device's analytics error codes, as a completion record with status 0x0a carries them.
/// Numbers: the device's published list (core-iaa's hw_status.h). Codes that only concern filters,
/// indexing or zero-compression are never made by this library; they are listed to be named.
enum class ErrorCode : std::uint8_t {
    kNone = 0,
    kHeaderTooLarge = 1,            ///< input ends inside a header that no input buffer can hold
    kUndefinedClCode = 2,           ///< a code-length code that the header does not define
    kFirstLlCode16 = 3,             ///< "repeat previous" before the first literal/length length
    kFirstDCode16 = 4,              ///< "repeat previous" before the first distance length
    kNoLlCode = 5,                  ///< every literal/length code has length 0
    kWrongLlCount = 6,              ///< literal/length lengths run past their number
    kWrongDCount = 7,               ///< distance lengths run past their number
    kOversubscribedCl = 8,          ///< code-length tree has more codes than its lengths allow
    kOversubscribedLl = 9,          ///< the same of the literal/length tree
    kOversubscribedD = 10,          ///< the same of the distance tree
    kBadLlCode = 11,                ///< bits that are no literal/length code, or symbol 286 or 287
    kBadDCode = 12,                 ///< bits that are no distance code, or symbol 30 or 31
    kBadBlockType = 13,             ///< block type 3
    kBadStoredLength = 14,          ///< a stored block's LEN and NLEN disagree
    kBadEndOfFile = 15,             ///< input ends elsewhere than at an end of block
    kBadLength = 16,                ///< match length 0 or above 258
    kBadDistance = 17,              ///< match distance 0 or above 4096
    kReferenceBeforeStart = 18,     ///< match distance beyond the first byte of output
    kTimeout = 19,                  ///< input at hand, but no progress
    kPrleFormat = 20,               ///< malformed packed run-length record
    kOutputWidth = 21,              ///< value wider than the output elements
    kAecs = 22,                     ///< configuration and state area holds an invalid value
    kSource1TooSmall = 23,          ///< fewer elements in source 1 than announced
    kSource2TooSmall = 24,          ///< fewer elements in source 2 than announced
    kOutputOverflow = 25,           ///< output does not fit and the operation cannot go on
    kDistanceSpansMiniBlocks = 26,  ///< indexing: match source in another mini-block
    kLengthSpansMiniBlocks = 27,    ///< indexing: match runs into the next mini-block
    kBadMiniBlockSize = 28,         ///< indexing: wrong mini-block size
    kVerifyFailed = 29,             ///< decompressor's own check failed
    kNoHuffmanCode = 30,            ///< compressor met a symbol that its tables have no code for
    kPrleWidth = 31,                ///< packed run-length elements wider than 32 bits
    kTooFewElements = 32,           ///< input ends before the announced number of elements
    kReserved33 = 33,               ///< not assigned
    kZeroRecordTruncated = 34,      ///< zero-decompress: input ends inside a record header
    kTooManyLlCodes = 35,           ///< header announces more than 286 literal/length codes
    kTooManyDCodes = 36,            ///< header announces more than 30 distance codes
};

inline constexpr unsigned kErrorCodes = 37;

/// A short text for a log line, for every code from 0 to 36; "unknown error" above.
[[nodiscard]] std::string_view describe(ErrorCode code);

}  // namespace iaa::deflate
