// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "vfio_user/fixture.h"

namespace iaa::test {
namespace {

constexpr std::uint32_t kNone = VFIO_IRQ_SET_DATA_NONE;
constexpr std::uint32_t kBool = VFIO_IRQ_SET_DATA_BOOL;
constexpr std::uint32_t kEventfd = VFIO_IRQ_SET_DATA_EVENTFD;
constexpr std::uint32_t kMask = VFIO_IRQ_SET_ACTION_MASK;
constexpr std::uint32_t kUnmask = VFIO_IRQ_SET_ACTION_UNMASK;
constexpr std::uint32_t kTrigger = VFIO_IRQ_SET_ACTION_TRIGGER;

class IrqTest : public ServerTest {
  protected:
    void SetUp() override { start_negotiated(); }

    int set(std::uint32_t flags, std::uint32_t start, std::uint32_t count,
            std::initializer_list<int> bools = {}, std::span<const int> fds = {},
            std::uint32_t index = VFIO_PCI_MSIX_IRQ_INDEX) {
        const vu::IrqSet fixed{
            .argsz = static_cast<std::uint32_t>(sizeof(vu::IrqSet) + bools.size()),
            .flags = flags,
            .index = index,
            .start = start,
            .count = count};
        std::vector<std::byte> payload(vu::bytes_of(fixed).begin(), vu::bytes_of(fixed).end());
        for (const int value : bools) payload.push_back(static_cast<std::byte>(value));
        return client->call(vu::Command::kDeviceSetIrqs, payload, fds).error();
    }

    /// How often a vector has been signalled since it was last asked for.
    std::uint64_t fired(std::uint32_t vector) { return take(client->irq_fd(vector)); }
    static std::uint64_t take(int fd) {
        std::uint64_t count = 0;
        return ::read(fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
    }
    static UniqueFd event() { return UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }
};

TEST_F(IrqTest, EveryVectorReachesItsEventfd) {
    client->attach_irqs(kVectors);
    for (std::uint32_t i = 0; i < kVectors; ++i) host().trigger_msix(i);
    host().trigger_msix(7);
    host().trigger_msix(kVectors);  // no such vector
    host().trigger_msix(UINT32_MAX);
    for (std::uint32_t i = 0; i < kVectors; ++i) EXPECT_EQ(fired(i), i == 7 ? 2U : 1U) << i;
}

TEST_F(IrqTest, WithoutAnEventfdTheInterruptIsDropped) {
    host().trigger_msix(0);
    client->attach_irqs(1);
    EXPECT_EQ(fired(0), 0U);
}

TEST_F(IrqTest, AnEventfdCanBeReplacedAndTakenAway) {
    client->attach_irqs(4);
    const UniqueFd other = event();
    const std::array<int, 1> fds = {other.get()};
    EXPECT_EQ(set(kEventfd | kTrigger, 2, 1, {}, fds), 0);
    host().trigger_msix(2);
    EXPECT_EQ(fired(2), 0U);
    EXPECT_EQ(take(other.get()), 1U);

    EXPECT_EQ(set(kEventfd | kTrigger, 1, 2), 0);  // without an fd: de-assign 1 and 2
    for (std::uint32_t i = 0; i < 4; ++i) host().trigger_msix(i);
    EXPECT_EQ(fired(0), 1U);
    EXPECT_EQ(fired(1), 0U);
    EXPECT_EQ(take(other.get()), 0U);
    EXPECT_EQ(fired(3), 1U);
}

TEST_F(IrqTest, CountZeroDisablesAll) {
    client->attach_irqs(4);
    EXPECT_EQ(set(kNone | kMask, 1, 1), 0);
    EXPECT_EQ(set(kNone | kTrigger, 0, 0), 0);
    for (std::uint32_t i = 0; i < 4; ++i) host().trigger_msix(i);
    for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(fired(i), 0U);
    client->attach_irqs(4);
    host().trigger_msix(1);
    EXPECT_EQ(fired(1), 1U) << "the mask outlived the interrupt";
}

TEST_F(IrqTest, AMaskedVectorIsDeliveredOnceWhenUnmasked) {
    client->attach_irqs(4);
    EXPECT_EQ(set(kNone | kMask, 1, 2), 0);
    host().trigger_msix(1);
    host().trigger_msix(1);
    host().trigger_msix(0);
    EXPECT_EQ(fired(1), 0U);
    EXPECT_EQ(fired(0), 1U);
    EXPECT_EQ(set(kNone | kUnmask, 0, 4), 0);
    EXPECT_EQ(fired(1), 1U);
    EXPECT_EQ(fired(2), 0U);
    EXPECT_EQ(set(kNone | kUnmask, 0, 4), 0);
    EXPECT_EQ(fired(1), 0U);
    host().trigger_msix(1);
    EXPECT_EQ(fired(1), 1U);
}

TEST_F(IrqTest, BooleansChoose) {
    client->attach_irqs(4);
    EXPECT_EQ(set(kBool | kMask, 0, 4, {1, 0, 0, 255}), 0);
    for (std::uint32_t i = 0; i < 4; ++i) host().trigger_msix(i);
    EXPECT_EQ(fired(0) + fired(3), 0U);
    EXPECT_EQ(fired(1) + fired(2), 2U);
    EXPECT_EQ(set(kBool | kUnmask, 2, 2, {0, 1}), 0);
    EXPECT_EQ(fired(0), 0U);
    EXPECT_EQ(fired(3), 1U);
    EXPECT_EQ(set(kBool | kTrigger, 1, 2, {0, 1}), 0);
    EXPECT_EQ(fired(1), 0U);
    EXPECT_EQ(fired(2), 1U);
}

TEST_F(IrqTest, TheClientCanTriggerToo) {
    client->attach_irqs(2);
    EXPECT_EQ(set(kNone | kTrigger, 0, 2), 0);
    EXPECT_EQ(fired(0), 1U);
    EXPECT_EQ(fired(1), 1U);
}

TEST_F(IrqTest, MaskingIsTold) {
    client->attach_irqs(1);
    const UniqueFd masked = event();
    const UniqueFd unmasked = event();
    const std::array<int, 1> mask_fd = {masked.get()};
    const std::array<int, 1> unmask_fd = {unmasked.get()};
    EXPECT_EQ(set(kEventfd | kMask, 0, 1, {}, mask_fd), 0);
    EXPECT_EQ(set(kEventfd | kUnmask, 0, 1, {}, unmask_fd), 0);
    EXPECT_EQ(set(kNone | kUnmask, 0, 1), 0);
    EXPECT_EQ(take(unmasked.get()), 0U) << "it was not masked";
    EXPECT_EQ(set(kNone | kMask, 0, 1), 0);
    EXPECT_EQ(take(masked.get()), 1U);
    EXPECT_EQ(set(kNone | kUnmask, 0, 1), 0);
    EXPECT_EQ(take(unmasked.get()), 1U);
    EXPECT_EQ(set(kEventfd | kMask, 0, 1), 0);
    EXPECT_EQ(set(kNone | kMask, 0, 1), 0);
    EXPECT_EQ(take(masked.get()), 0U);
}

TEST_F(IrqTest, EveryFieldIsChecked) {
    EXPECT_EQ(set(kNone | kTrigger, 0, kVectors + 1), EINVAL);
    EXPECT_EQ(set(kNone | kTrigger, kVectors, 1), EINVAL);
    EXPECT_EQ(set(kNone | kTrigger, 1, UINT32_MAX), EINVAL);
    EXPECT_EQ(set(kNone | kTrigger, UINT32_MAX, 2), EINVAL);
    EXPECT_EQ(set(kNone | kTrigger, 1, 0), EINVAL);
    EXPECT_EQ(set(kNone | kMask, 0, 0), EINVAL);
    EXPECT_EQ(set(kEventfd | kTrigger, 0, 0), EINVAL);
    EXPECT_EQ(set(kBool | kMask, 0, 4, {1, 1, 1}), EINVAL);
    EXPECT_EQ(set(0, 0, 1), EINVAL);
    EXPECT_EQ(set(kNone, 0, 1), EINVAL);
    EXPECT_EQ(set(kTrigger, 0, 1), EINVAL);
    EXPECT_EQ(set(kNone | kBool | kTrigger, 0, 1, {1}), EINVAL);
    EXPECT_EQ(set(kNone | kMask | kUnmask, 0, 1), EINVAL);
    EXPECT_EQ(set(kNone | kTrigger | (1U << 6), 0, 1), EINVAL);
    EXPECT_EQ(set(kNone | kTrigger, 0, 1, {}, {}, VFIO_PCI_NUM_IRQS), EINVAL);
    EXPECT_EQ(set(kNone | kTrigger, 0, 1, {}, {}, VFIO_PCI_INTX_IRQ_INDEX), EINVAL);
    EXPECT_EQ(set(kNone | kTrigger, 0, 0, {}, {}, VFIO_PCI_INTX_IRQ_INDEX), 0);

    vu::IrqSet bad{
        .argsz = sizeof(bad) - 1, .flags = kNone | kTrigger, .index = 2, .start = 0, .count = 1};
    EXPECT_EQ(client->call(vu::Command::kDeviceSetIrqs, vu::bytes_of(bad)).error(), EINVAL);
    bad.argsz = sizeof(bad) + 1;
    EXPECT_EQ(client->call(vu::Command::kDeviceSetIrqs, vu::bytes_of(bad)).error(), EINVAL);
    EXPECT_EQ(client->call(vu::Command::kDeviceSetIrqs, std::vector<std::byte>(19)).error(),
              EINVAL);
}

TEST_F(IrqTest, EventfdsMustBeEventfdsAndOneForEach) {
    client->attach_irqs(4);
    const UniqueFd a = event();
    const UniqueFd b = event();
    const GuestMemory file(4096);
    const std::array<int, 2> two = {a.get(), b.get()};
    const std::array<int, 2> one_bad = {a.get(), file.fd()};
    EXPECT_EQ(set(kEventfd | kTrigger, 0, 3, {}, two), EINVAL);
    EXPECT_EQ(set(kEventfd | kTrigger, 0, 1, {}, two), EINVAL);
    EXPECT_EQ(set(kEventfd | kTrigger, 0, 2, {}, one_bad), EINVAL);
    EXPECT_EQ(set(kNone | kTrigger, 0, 2, {}, two), EINVAL);
    auto [left, right] = socket_pair();
    const std::array<int, 1> socket = {left.get()};
    EXPECT_EQ(set(kEventfd | kTrigger, 0, 1, {}, socket), EINVAL);
    for (std::uint32_t i = 0; i < 4; ++i) fired(i);
    for (std::uint32_t i = 0; i < 4; ++i) host().trigger_msix(i);
    for (std::uint32_t i = 0; i < 4; ++i)
        EXPECT_EQ(fired(i), 1U) << "a refused message changed " << i;
}

TEST_F(IrqTest, AFullEventfdDoesNotBlock) {
    // Blocking, and one short of the largest count: a plain write of 1 would wait for a reader.
    const UniqueFd full(::eventfd(0, EFD_CLOEXEC));
    const std::uint64_t most = UINT64_MAX - 1;
    ASSERT_EQ(::write(full.get(), &most, sizeof(most)), static_cast<ssize_t>(sizeof(most)));
    const std::array<int, 1> fds = {full.get()};
    ASSERT_EQ(set(kEventfd | kTrigger, 0, 1, {}, fds), 0);
    host().trigger_msix(0);
    EXPECT_GE(take(full.get()), most);
}

// The counter is shared, and so is whether a write to it waits: the client fills it, blocking,
// while the device signals.
TEST_F(IrqTest, AnEventfdThatFillsUpMeanwhileDoesNotBlock) {
    const UniqueFd fd = event();
    const std::array<int, 1> fds = {fd.get()};
    ASSERT_EQ(set(kEventfd | kTrigger, 0, 1, {}, fds), 0);
    std::atomic<bool> filled{false};
    std::jthread filler([&] {
        for (int round = 0; round < 20'000; ++round) {
            (void)::fcntl(fd.get(), F_SETFL, O_RDWR | O_NONBLOCK);
            const std::uint64_t most = UINT64_MAX - 1;
            while (::write(fd.get(), &most, sizeof(most)) < 0) (void)take(fd.get());
            (void)::fcntl(fd.get(), F_SETFL, O_RDWR);
            std::this_thread::yield();
        }
        filled = true;
    });
    while (!filled) host().trigger_msix(0);
    host().trigger_msix(0);
    EXPECT_GE(take(fd.get()), UINT64_MAX - 1);  // full, or one short of it
}

}  // namespace
}  // namespace iaa::test
