// SPDX-License-Identifier: GPL-2.0
#include "device/ops/rules.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "unit/ops/guest.h"

namespace iaa::device::test {
namespace {

/// A guest with room for any operation, and a correct descriptor of each kind.
class Guest {
  public:
    Guest() {
        source = &memory.map(bytes_of("source source source source source"));
        destination = &memory.map(8192);
        aecs = &memory.map(kTwoAreas);
        const Bytes image = image_of(fixed_aecs());
        std::ranges::copy(image, aecs->bytes.begin());
    }

    [[nodiscard]] Descriptor noop(Opcode opcode = Opcode::kNoop) const {
        Descriptor d{};
        d.flags_opcode = flags_opcode(
            op_flag::kCompletionAddressValid | op_flag::kRequestCompletionRecord, opcode);
        d.completion_addr = kRecordAddress;
        return d;
    }
    [[nodiscard]] Descriptor compress() const {
        return compress_descriptor(*source, *destination, *aecs);
    }
    [[nodiscard]] Descriptor statistics() const {
        Descriptor d = compress();
        d.flags_opcode = flags_opcode(0x10c, Opcode::kCompress);
        d.op_flags = compress_flag::kStatistics;
        d.src2_addr = 0;
        d.src2_size = 0;
        return d;
    }
    [[nodiscard]] Descriptor one_pass() const {
        Descriptor d = statistics();
        d.op_flags = compress_flag::kFlush | 0x4 | 0x3000;
        return d;
    }
    [[nodiscard]] Descriptor two_pass() const {
        Descriptor d = compress();
        d.flags_opcode = flags_opcode(0x4010c, Opcode::kCompress);
        d.op_flags = 0x4 | 0x6000;
        d.filter_flags = compress2_flag::kWriteTables;
        d.dst_addr = 0;
        d.max_dst_size = 0;
        return d;
    }
    [[nodiscard]] Descriptor decompress() const {
        return decompress_descriptor(*source, *destination);
    }
    /// As one that goes on with a stream, and may be gone on from.
    [[nodiscard]] Descriptor decompress_state() const {
        Descriptor d = decompress();
        set_flags(d, op_flag::kReadAecs | op_flag::kWriteAecs);
        d.src2_addr = aecs->address;
        d.src2_size = kDecompressAecsSize;
        return d;
    }
    [[nodiscard]] Descriptor crc64() const {
        Descriptor d = noop(Opcode::kCrc64);
        d.src1_addr = source->address;
        d.src1_size = static_cast<std::uint32_t>(source->bytes.size());
        d.filter_flags = 0xa9ea3693;
        d.num_inputs = 0x42f0e1eb;
        return d;
    }

    GuestMemory memory;
    GuestMemory::Buffer* source = nullptr;
    GuestMemory::Buffer* destination = nullptr;
    GuestMemory::Buffer* aecs = nullptr;
};

Capabilities generation2() {
    return {.version = 0x200, .header_generation = true, .decompress_aecs_format2 = true};
}

struct Case {
    std::string rule;
    Status status;
    std::function<Descriptor(const Guest&)> make;
    Capabilities capabilities{};
    std::uint32_t invalid_flags = 0;
};

/// The descriptor that `base` makes, changed.
auto changed(Descriptor (Guest::*base)() const, std::function<void(Descriptor&)> change) {
    return [base, change = std::move(change)](const Guest& setup) {
        Descriptor d = (setup.*base)();
        change(d);
        return d;
    };
}

auto with_flags(Descriptor (Guest::*base)() const, std::uint32_t flags) {
    return changed(base, [flags](Descriptor& d) { set_flags(d, flags); });
}

auto with_codec_flags(Descriptor (Guest::*base)() const, std::uint16_t flags) {
    return changed(base, [flags](Descriptor& d) {
        d.op_flags = static_cast<std::uint16_t>(d.op_flags | flags);
    });
}

Descriptor noop(const Guest& setup) {
    return setup.noop();
}

Descriptor drain(const Guest& setup) {
    return setup.noop(Opcode::kDrain);
}

auto noop_with(std::function<void(Descriptor&)> change) {
    return [change = std::move(change)](const Guest& setup) {
        Descriptor d = noop(setup);
        change(d);
        return d;
    };
}

std::vector<Case> cases() {
    std::vector<Case> all;
    const auto add = [&all](std::string rule, Status status,
                            std::function<Descriptor(const Guest&)> make,
                            Capabilities capabilities = {}, std::uint32_t invalid_flags = 0) {
        all.push_back({.rule = std::move(rule),
                       .status = status,
                       .make = std::move(make),
                       .capabilities = capabilities,
                       .invalid_flags = invalid_flags});
    };
    const auto add_flags = [&add](std::string rule, Descriptor (Guest::*base)() const,
                                  std::uint32_t flags, std::uint32_t invalid) {
        add(std::move(rule), Status::kInvalidFlags, with_flags(base, flags), {}, invalid);
    };

    // Opcodes: every number but the five, and one that the work queue leaves out.
    for (unsigned number = 0; number < 256; ++number) {
        const bool known = number == 0 || number == 2 || (number >= 0x42 && number <= 0x44);
        if (!known) {
            Capabilities every;
            every.opcodes.fill(~0ULL);
            add(
                "opcode-supported", Status::kBadOpcode,
                [number](const Guest& setup) { return setup.noop(static_cast<Opcode>(number)); },
                every);
        }
    }
    for (const Opcode opcode :
         {Opcode::kNoop, Opcode::kDrain, Opcode::kDecompress, Opcode::kCompress, Opcode::kCrc64}) {
        Capabilities without;
        const auto number = static_cast<unsigned>(opcode);
        without.opcodes[number / 64] &= ~(1ULL << number % 64);
        add(
            "opcode-supported", Status::kBadOpcode,
            [opcode](const Guest& setup) { return setup.noop(opcode); }, without);
    }

    // Operation flags.
    for (const std::uint32_t flag :
         {op_flag::kFence, op_flag::kSteeringTagCompletion, 0x40U, op_flag::kCheckResult,
          op_flag::kStrictOrdering, op_flag::kDestinationReadback, op_flag::kSteeringTagDestination,
          op_flag::kSource2SteeringTag, 0x800000U}) {
        add_flags("flags-known", &Guest::compress, flag, flag);
        add_flags("flags-known", &Guest::decompress, flag, flag);
        add_flags("flags-known", &Guest::crc64, flag, flag);
    }
    for (const std::uint32_t flag :
         {op_flag::kCacheControl, op_flag::kReadAecs, op_flag::kReadSecondInput,
          op_flag::kWriteAecs, op_flag::kWriteAecsOnOverflow, op_flag::kCrc32c,
          op_flag::kAecsToggle}) {
        add_flags("flags-known", &Guest::crc64, flag, flag);
        add("flags-known", Status::kInvalidFlags,
            noop_with([flag](Descriptor& d) { set_flags(d, flag); }), {}, flag);
    }
    add_flags("block-on-fault-enabled", &Guest::compress, op_flag::kBlockOnFault, 2);
    add("record-request-with-address", Status::kInvalidFlags, noop_with([](Descriptor& d) {
            d.flags_opcode &= ~op_flag::kCompletionAddressValid;
            d.completion_addr = 0;
        }),
        {}, op_flag::kRequestCompletionRecord);
    add_flags("source2-read-mode", &Guest::decompress, op_flag::kReadSecondInput, 0x20000);
    add_flags("source2-read-mode", &Guest::compress, op_flag::kReadSecondInput, 0x30000);
    add_flags("source2-write-mode", &Guest::decompress_state, op_flag::kWriteSource2, 0xc0000);
    add_flags("source2-write-mode", &Guest::compress, op_flag::kWriteSource2, 0xc0000);
    add_flags("compress-overflow-write", &Guest::compress, op_flag::kWriteAecsOnOverflow, 0x80000);
    add_flags("aecs-toggle-used", &Guest::decompress, op_flag::kAecsToggle, 0x400000);
    add_flags("aecs-toggle-used", &Guest::statistics, op_flag::kAecsToggle, 0x400000);
    add_flags("statistics-without-aecs", &Guest::statistics, op_flag::kReadAecs, 0x10000);
    add_flags("statistics-without-aecs", &Guest::statistics, op_flag::kWriteAecs, 0x40000);
    add("compress-tables", Status::kInvalidFlags,
        changed(&Guest::compress,
                [](Descriptor& d) {
                    d.flags_opcode &= ~op_flag::kReadAecs;
                    d.src2_addr = 0;
                    d.src2_size = 0;
                }),
        {}, op_flag::kReadAecs);

    // Reserved fields.
    for (unsigned bit = 20; bit < 31; ++bit) {
        add("descriptor-reserved", Status::kReservedField,
            noop_with([bit](Descriptor& d) { d.pasid_priv |= 1U << bit; }));
    }
    add("completion-address-unused", Status::kReservedField,
        noop_with([](Descriptor& d) { d.flags_opcode = flags_opcode(0, Opcode::kNoop); }));
    add("interrupt-handle-unused", Status::kReservedField,
        noop_with([](Descriptor& d) { d.int_handle = 1; }));
    const std::vector<std::function<void(Descriptor&)>> fields{
        [](Descriptor& d) { d.src1_addr = 1; },  [](Descriptor& d) { d.dst_addr = 1; },
        [](Descriptor& d) { d.src1_size = 1; },  [](Descriptor& d) { d.op_flags = 1; },
        [](Descriptor& d) { d.src2_addr = 1; },  [](Descriptor& d) { d.max_dst_size = 1; },
        [](Descriptor& d) { d.src2_size = 1; },  [](Descriptor& d) { d.filter_flags = 1; },
        [](Descriptor& d) { d.num_inputs = 1; },
    };
    for (const auto& field : fields) {
        add("fields-unused", Status::kReservedField, noop_with(field));
        add("fields-unused", Status::kReservedField, [field](const Guest& setup) {
            Descriptor d = drain(setup);
            field(d);
            return d;
        });
    }
    for (const std::size_t field : {1U, 4U, 5U, 6U}) {
        add("crc64-fields-unused", Status::kReservedField, changed(&Guest::crc64, fields[field]));
    }
    add("inputs-unused", Status::kReservedField, changed(&Guest::compress, fields[8]));
    add("inputs-unused", Status::kReservedField, changed(&Guest::decompress, fields[8]));
    add("compress2-flags-known", Status::kReservedField, changed(&Guest::compress, fields[7]));
    add("compress2-flags-known", Status::kReservedField,
        changed(&Guest::compress, [](Descriptor& d) { d.filter_flags = 2; }));
    add("compress2-flags-known", Status::kReservedField, changed(&Guest::compress, fields[7]),
        generation2());
    add("source2-unused", Status::kReservedField, changed(&Guest::decompress, fields[4]));
    add("source2-unused", Status::kReservedField, changed(&Guest::decompress, fields[6]));
    add("source2-unused", Status::kReservedField, changed(&Guest::statistics, fields[4]));
    add("two-pass-destination-unused", Status::kReservedField, changed(&Guest::two_pass, fields[1]),
        generation2());
    add("two-pass-destination-unused", Status::kReservedField, changed(&Guest::two_pass, fields[5]),
        generation2());

    add("privilege", Status::kPrivilege, noop_with([](Descriptor& d) { d.pasid_priv = 1U << 31U; }),
        {.pasid_enabled = true});
    for (const std::uint64_t offset : {1U, 2U, 4U, 8U, 16U, 32U}) {
        add("completion-alignment", Status::kCompletionAlignment,
            noop_with([offset](Descriptor& d) { d.completion_addr += offset; }));
    }

    // Compress, decompress and CRC64 flags.
    const auto add_codec = [&add](std::string rule, Descriptor (Guest::*base)() const,
                                  std::uint16_t flags, Capabilities capabilities = {}) {
        add(std::move(rule), Status::kInvalidCodecFlags, with_codec_flags(base, flags),
            capabilities);
    };
    add_codec("compress-flags-known", &Guest::compress, 0x0200);
    add_codec("compress-flags-known", &Guest::compress, 0x8000);
    add_codec("compress-big-endian", &Guest::compress, 0x0020);
    add_codec("compress-index-mode", &Guest::compress, 0x0040);
    add_codec("compress-index-mode", &Guest::compress, 0x0100);
    add_codec("compress-dictionary", &Guest::compress, 0x0400);
    add_codec("compress-dictionary", &Guest::compress, 0x0800);
    for (std::uint16_t mode = 1; mode < 8; ++mode) {
        add_codec("header-generation", &Guest::compress, static_cast<std::uint16_t>(mode << 12));
    }
    for (const std::uint16_t mode : std::initializer_list<std::uint16_t>{1, 4, 5}) {
        add_codec("header-generation", &Guest::compress, static_cast<std::uint16_t>(mode << 12),
                  generation2());
    }
    add_codec("header-generation", &Guest::statistics, 0x3000, generation2());
    add("two-pass-write", Status::kInvalidCodecFlags,
        changed(&Guest::two_pass, [](Descriptor& d) { d.filter_flags = 0; }), generation2());
    add("two-pass-write", Status::kInvalidCodecFlags,
        changed(&Guest::two_pass,
                [](Descriptor& d) { d.flags_opcode ^= op_flag::kWriteAecs | op_flag::kReadAecs; }),
        generation2());
    add("tables-write", Status::kInvalidCodecFlags,
        changed(&Guest::compress, [](Descriptor& d) { d.filter_flags = 2; }), generation2());
    add("compress-flush", Status::kInvalidCodecFlags,
        changed(&Guest::compress, [](Descriptor& d) { d.op_flags = 0x4; }));
    add("decompress-enabled", Status::kInvalidCodecFlags,
        changed(&Guest::decompress, [](Descriptor& d) { d.op_flags = 0xe; }));
    add_codec("decompress-flags-known", &Guest::decompress, 0x2000);
    add_codec("decompress-flags-known", &Guest::decompress, 0x8000);
    add_codec("decompress-big-endian", &Guest::decompress, 0x0020);
    add_codec("decompress-index-mode", &Guest::decompress, 0x0400);
    add_codec("decompress-index-mode", &Guest::decompress, 0x1000);
    add_codec("ignore-end-bits-high", &Guest::decompress, 0x4000);
    add("ignore-end-bits", Status::kInvalidCodecFlags,
        changed(&Guest::decompress, [](Descriptor& d) {
            d.op_flags |= 0x40;
            d.src1_size = 0;
        }));
    add("ignore-end-bits", Status::kInvalidCodecFlags,
        changed(&Guest::decompress,
                [](Descriptor& d) {
                    d.op_flags |= 0x4040;  // 9 bits
                    d.src1_size = 1;
                }),
        generation2());
    add("decompress-flush", Status::kInvalidCodecFlags,
        changed(&Guest::decompress, [](Descriptor& d) { d.op_flags = 0xd; }));
    add("decompress-flush", Status::kInvalidCodecFlags,
        changed(&Guest::decompress_state, [](Descriptor& d) {
            d.op_flags = 0xd;
            d.flags_opcode ^= op_flag::kWriteAecs | op_flag::kWriteAecsOnOverflow;
        }));
    for (unsigned bit = 0; bit < 14; ++bit) {
        add_codec("crc64-flags-known", &Guest::crc64, static_cast<std::uint16_t>(1U << bit));
    }
    add("filter-flags-unused", Status::kInvalidFilterFlags, changed(&Guest::decompress, fields[7]));

    // Sizes.
    const std::uint32_t too_much = (1U << 21U) + 1;
    for (const auto base : {&Guest::compress, &Guest::decompress, &Guest::crc64}) {
        add("source-limit", Status::kInvalidSize,
            changed(base, [](Descriptor& d) { d.src1_size = too_much; }));
        add("source-limit", Status::kInvalidSize,
            changed(base, [](Descriptor& d) { d.src1_size = 33; }), {.max_transfer_size = 32});
        add("source-limit", Status::kInvalidSize,
            changed(base, [](Descriptor& d) { d.src1_size = (1U << 30U) + 1; }),
            {.max_transfer_size = 1ULL << 31U});
    }
    for (const auto base : {&Guest::compress, &Guest::decompress}) {
        add("destination-limit", Status::kInvalidSize,
            changed(base, [](Descriptor& d) { d.max_dst_size = too_much; }));
    }
    for (const auto base : {&Guest::statistics, &Guest::crc64}) {
        add("source-empty", Status::kInvalidSize,
            changed(base, [](Descriptor& d) { d.src1_size = 0; }));
    }
    for (const auto base : {&Guest::compress, &Guest::decompress, &Guest::decompress_state}) {
        add("buffers-empty", Status::kInvalidSize, changed(base, [](Descriptor& d) {
                d.src1_size = 0;
                d.max_dst_size = 0;
            }));
    }
    add("compress-destination-empty", Status::kInvalidSize,
        changed(&Guest::compress, [](Descriptor& d) { d.max_dst_size = 0; }));
    add("statistics-destination", Status::kInvalidSize,
        changed(&Guest::statistics, [](Descriptor& d) { d.max_dst_size = 1279; }));
    add("decompress-destination-empty", Status::kInvalidSize,
        changed(&Guest::decompress, [](Descriptor& d) { d.max_dst_size = 0; }));
    add("one-pass-limit", Status::kInvalidInputSize,
        changed(&Guest::one_pass, [](Descriptor& d) { d.src1_size = 4097; }), generation2());

    // AECS.
    for (const auto base : {&Guest::compress, &Guest::decompress_state}) {
        for (const std::uint32_t offset : {1U, 2U, 4U, 8U, 16U}) {
            add("aecs-alignment", Status::kAddressAlignment,
                changed(base, [offset](Descriptor& d) { d.src2_addr += offset; }));
            add("aecs-alignment", Status::kAddressAlignment,
                changed(base, [offset](Descriptor& d) { d.src2_size += offset; }));
        }
    }
    for (const std::uint32_t size : {0U, 288U, 1536U, 1600U, 3136U, 0x3000U}) {
        add("compress-aecs-size", Status::kInvalidSize,
            changed(&Guest::compress, [size](Descriptor& d) { d.src2_size = size; }));
    }
    for (const std::uint32_t size : {0U, 32U, 1056U, 1120U, 1216U, 5344U, 5408U, 10752U}) {
        add("decompress-aecs-size", Status::kInvalidSize,
            changed(&Guest::decompress_state, [size](Descriptor& d) { d.src2_size = size; }));
    }
    add("decompress-aecs-size", Status::kInvalidSize,
        changed(&Guest::decompress_state, [](Descriptor& d) { d.src2_size = 1088; }),
        generation2());

    // Overlaps.
    for (const auto base : {&Guest::compress, &Guest::decompress}) {
        add("overlap", Status::kOverlap,
            changed(base, [](Descriptor& d) { d.dst_addr = d.src1_addr + d.src1_size - 1; }));
        add("overlap", Status::kOverlap,
            changed(base, [](Descriptor& d) { d.src1_addr = d.dst_addr + d.max_dst_size - 1; }));
        add("overlap", Status::kOverlap,
            changed(base, [](Descriptor& d) { d.src1_addr = d.dst_addr; }));
        add("overlap", Status::kOverlap,
            changed(base, [](Descriptor& d) { d.completion_addr = d.dst_addr; }));
        add("overlap", Status::kOverlap,
            changed(base, [](Descriptor& d) { d.completion_addr = d.src1_addr; }));
    }
    add("overlap", Status::kOverlap,
        changed(&Guest::compress, [](Descriptor& d) { d.dst_addr = d.src2_addr + 1567; }));
    add("overlap", Status::kOverlap, changed(&Guest::decompress_state, [](Descriptor& d) {
            d.dst_addr = d.src2_addr + kTwoAreas - 1;  // the area that is written
        }));
    add("overlap", Status::kOverlap,
        changed(&Guest::decompress_state, [](Descriptor& d) { d.src1_addr = d.src2_addr + 5376; }));
    add("overlap", Status::kOverlap, changed(&Guest::statistics, [](Descriptor& d) {
            d.src1_addr = d.dst_addr + 1279;
            d.max_dst_size = 1 << 20;
        }));
    add("overlap", Status::kOverlap,
        changed(&Guest::crc64, [](Descriptor& d) { d.completion_addr = d.src1_addr; }));
    return all;
}

TEST(Rules, EachIsBrokenAloneAndReported) {
    std::set<std::string> seen;
    for (const Case& test : cases()) {
        Guest setup;
        const auto before = setup.memory.contents();
        const Outcome outcome = execute(test.make(setup), setup.memory, test.capabilities);
        const std::string what = test.rule + " / " + outcome.rule;
        EXPECT_EQ(outcome.status(), test.status) << what;
        EXPECT_TRUE(outcome.rule.starts_with(test.rule + ": ")) << what;
        EXPECT_EQ(outcome.rule.find('\n'), std::string::npos) << what;
        EXPECT_EQ(outcome.record.invalid_flags, test.invalid_flags) << what;
        EXPECT_EQ(outcome.record.error_code, 0) << what;
        EXPECT_EQ(outcome.record.output_size, 0U) << what;
        EXPECT_EQ(outcome.record.bytes_completed, 0U) << what;
        EXPECT_TRUE(setup.memory.accesses().empty()) << what;
        EXPECT_EQ(setup.memory.contents(), before) << what;
        seen.insert(test.rule);
    }
    for (const Rule& rule : rules()) {
        EXPECT_TRUE(seen.contains(std::string(rule.name))) << rule.name << " has no case";
    }
}

/// A misaligned record has no place to be written to, so that this is what is reported whatever
/// else is broken.
TEST(Rules, AMisalignedRecordIsReportedBeforeAllElse) {
    for (const Case& test : cases()) {
        Guest setup;
        Descriptor d = test.make(setup);
        if ((d.flags() & op_flag::kCompletionAddressValid) == 0) {
            continue;
        }
        d.completion_addr += 1;
        const Outcome outcome = execute(d, setup.memory, test.capabilities);
        EXPECT_EQ(outcome.status(), Status::kCompletionAlignment) << test.rule;
        EXPECT_EQ(outcome.record.invalid_flags, 0U) << test.rule;
        EXPECT_TRUE(setup.memory.accesses().empty()) << test.rule;
    }
}

TEST(Rules, HaveNamesOfTheirOwn) {
    std::set<std::string_view> names;
    for (const Rule& rule : rules()) {
        EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
        EXPECT_NE(describe(rule.status), "unknown status");
    }
}

TEST(Rules, CorrectDescriptorsPass) {
    const Guest setup;
    const auto passes = [](const Descriptor& d, const Capabilities& capabilities) {
        const auto rejected = check_rules(Request(d, capabilities));
        return rejected ? rejected->rule : std::string();
    };
    for (const Capabilities& capabilities : {Capabilities{}, generation2()}) {
        EXPECT_EQ(passes(setup.noop(), capabilities), "");
        EXPECT_EQ(passes(drain(setup), capabilities), "");
        EXPECT_EQ(passes(setup.compress(), capabilities), "");
        EXPECT_EQ(passes(setup.statistics(), capabilities), "");
        EXPECT_EQ(passes(setup.decompress(), capabilities), "");
        EXPECT_EQ(passes(setup.decompress_state(), capabilities), "");
        EXPECT_EQ(passes(setup.crc64(), capabilities), "");
    }
    EXPECT_EQ(passes(setup.one_pass(), generation2()), "");
    EXPECT_EQ(passes(setup.two_pass(), generation2()), "");

    // Block on fault where the work queue has it, traffic classes, and a privileged descriptor
    // where no PASID says otherwise.
    Descriptor d = setup.compress();
    set_flags(d, op_flag::kBlockOnFault | op_flag::kTrafficClasses);
    d.pasid_priv = 1U << 31U | 0xfffff;
    EXPECT_EQ(passes(d, {.block_on_fault = true}), "");
    EXPECT_EQ(passes(setup.compress(), {.pasid_enabled = true}), "");

    // The work queue's limit, whatever it is.
    d = setup.compress();
    d.src1_addr = 1ULL << 40U;
    d.src1_size = 3U << 20U;
    EXPECT_EQ(passes(d, {.max_transfer_size = 3U << 20U}), "");

    // Nothing to decompress; and with a state to go on from, a source that ends before the bits
    // that its end was to be without.
    d = setup.decompress();
    d.src1_size = 0;
    EXPECT_EQ(passes(d, {}), "");
    d = setup.decompress_state();
    d.op_flags |= 0x4040;
    for (const std::uint32_t size : {0U, 1U}) {
        d.src1_size = size;
        EXPECT_EQ(passes(d, generation2()), "");
    }

    // Buffers that touch but do not overlap.
    d = setup.compress();
    d.dst_addr = d.src1_addr + d.src1_size;
    EXPECT_EQ(passes(d, {}), "");
    // A destination that is not written to may be anywhere, also in the source.
    d = setup.decompress();
    d.op_flags = kLinuxVerifyFlags;
    d.dst_addr = d.src1_addr;
    EXPECT_EQ(passes(d, {}), "");
    // The end of the address space is no border for the comparison.
    d = setup.decompress();
    d.dst_addr = ~0ULL - 10;
    d.max_dst_size = 100;
    d.completion_addr = 0x80;
    EXPECT_EQ(passes(d, {}), "");
    d.completion_addr = 0x40;
    EXPECT_TRUE(passes(d, {}).starts_with("overlap: "));
}

/// What the memory lacks is found before anything is written.
TEST(PageFaults, ReportTheFirstPageThatIsNotThere) {
    struct Fault {
        Fault(std::function<void(Guest&, Descriptor&)> change, std::string broken, bool writing)
            : make(std::move(change)), rule(std::move(broken)), write(writing) {}

        std::function<void(Guest&, Descriptor&)> make;
        std::string rule;
        bool write;
    };
    const std::vector<Fault> faults{
        {[](Guest& s, Descriptor& d) {
             s.source->readable = false;
             d.src1_addr = s.source->address;
         },
         "source-mapped", false},
        {[](Guest& s, Descriptor&) { s.destination->writable = false; }, "destination-mapped",
         true},
        {[](Guest& s, Descriptor&) { s.aecs->readable = false; }, "aecs-read-mapped", false},
        {[](Guest& s, Descriptor& d) {
             set_flags(d, op_flag::kWriteAecs);
             s.aecs->writable = false;
         },
         "aecs-write-mapped", true},
    };
    for (const Fault& fault : faults) {
        Guest setup;
        Descriptor d = setup.compress();
        fault.make(setup, d);
        const auto before = setup.memory.contents();
        const Outcome outcome = execute(d, setup.memory, {});
        EXPECT_EQ(outcome.status(), fault.write ? Status::kPageFaultWrite : Status::kPageFault);
        EXPECT_TRUE(outcome.rule.starts_with(fault.rule + ": ")) << outcome.rule;
        EXPECT_NE(outcome.record.fault_addr, 0U);
        EXPECT_EQ(outcome.record.fault_addr % 4096, 0U);
        EXPECT_EQ(outcome.record.fault_info, 0);
        EXPECT_EQ(setup.memory.contents(), before);
    }

    // A source of which only the beginning is there; the second generation says that the address
    // is valid.
    Guest setup;
    auto& source = setup.memory.map(10000);
    Descriptor d = setup.decompress();
    d.src1_addr = source.address;
    d.src1_size = 16384;
    const Outcome outcome = execute(d, setup.memory, generation2());
    EXPECT_EQ(outcome.status(), Status::kPageFault);
    EXPECT_EQ(outcome.record.fault_addr, source.address + 8192);
    EXPECT_EQ(outcome.record.fault_info, 1);

    // A range that leaves the address space.
    d = setup.decompress();
    d.dst_addr = ~0ULL - 100;
    d.max_dst_size = 200;
    d.completion_addr = 0x1000;
    const Outcome wrapped = execute(d, setup.memory, {});
    EXPECT_EQ(wrapped.status(), Status::kPageFaultWrite);
    EXPECT_EQ(wrapped.record.fault_addr, ~0ULL & ~0xfffULL);
}

/// Memory that the guest takes away between the check and the access.
class FleetingMemory final : public DmaMemory {
  public:
    FleetingMemory(DmaMemory& memory, int lasts) : memory_(memory), lasts_(lasts) {}

    [[nodiscard]] bool read(std::uint64_t iova, std::span<std::byte> out) override {
        return used() && memory_.read(iova, out);
    }
    [[nodiscard]] bool write(std::uint64_t iova, std::span<const std::byte> in) override {
        return used() && memory_.write(iova, in);
    }
    [[nodiscard]] bool write_completion(std::uint64_t iova,
                                        std::span<const std::byte, 64> record) override {
        return memory_.write_completion(iova, record);
    }
    [[nodiscard]] bool mapped(std::uint64_t iova, std::uint64_t size, bool write) override {
        return memory_.mapped(iova, size, write);
    }

  private:
    bool used() { return lasts_-- > 0; }

    DmaMemory& memory_;
    int lasts_;
};

TEST(PageFaults, MemoryThatGoesAwayMeanwhile) {
    // COMPRESS reads its AECS and its source, and writes its destination and its AECS.
    for (int lasts = 0; lasts <= 4; ++lasts) {
        Guest setup;
        Descriptor d = setup.compress();
        set_flags(d, op_flag::kWriteAecs);
        FleetingMemory memory(setup.memory, lasts);
        const Outcome outcome = execute(d, memory, {});
        const Status expected = lasts == 4   ? Status::kSuccess
                                : lasts >= 2 ? Status::kPageFaultWrite
                                             : Status::kPageFault;
        EXPECT_EQ(outcome.status(), expected) << lasts << ": " << outcome.rule;
    }
}

}  // namespace
}  // namespace iaa::device::test
