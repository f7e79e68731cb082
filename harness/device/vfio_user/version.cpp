// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/version.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "device/vfio_user/protocol.h"

namespace iaa::device::vfio_user {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxJson = 4096;
/// A transfer limit below this would turn a buffer of 2 MB into thousands of messages.
constexpr std::uint64_t kMinTransfer = 4096;

struct Proposal {
    std::uint64_t max_transfer = kDefaultMaxTransfer;
    std::uint64_t max_dma_maps = kDefaultMaxDmaMaps;
    bool write_multiple = false;
};

std::optional<std::uint64_t> number(const json& capabilities, const char* name,
                                    std::uint64_t fallback, std::string& problem) {
    const auto found = capabilities.find(name);
    if (found == capabilities.end()) return fallback;
    if (!found->is_number_unsigned()) {
        problem = fmt::format("capability {} is not an unsigned number", name);
        return std::nullopt;
    }
    return found->get<std::uint64_t>();
}

std::optional<Proposal> parse(std::string_view text, std::string& problem) {
    Proposal proposal;
    const json document = json::parse(text, nullptr, false);
    if (!document.is_object()) {
        problem = "the version data is not a JSON object";
        return std::nullopt;
    }
    const auto found = document.find("capabilities");
    if (found == document.end()) return proposal;
    if (!found->is_object()) {
        problem = "\"capabilities\" is not a JSON object";
        return std::nullopt;
    }
    const auto transfer = number(*found, "max_data_xfer_size", kDefaultMaxTransfer, problem);
    const auto maps = number(*found, "max_dma_maps", kDefaultMaxDmaMaps, problem);
    const auto fds = number(*found, "max_msg_fds", 1, problem);
    const auto pages = number(*found, "pgsizes", kDefaultPageSizes, problem);
    if (!transfer || !maps || !fds || !pages) return std::nullopt;
    if (*transfer < kMinTransfer) {
        problem = fmt::format("max_data_xfer_size {} is below {}", *transfer, kMinTransfer);
        return std::nullopt;
    }
    proposal.max_transfer = *transfer;
    proposal.max_dma_maps = *maps;
    const auto multiple = found->find("write_multiple");
    if (multiple != found->end()) {
        if (!multiple->is_boolean()) {
            problem = "capability write_multiple is not a boolean";
            return std::nullopt;
        }
        proposal.write_multiple = multiple->get<bool>();
    }
    return proposal;
}

/// The longest of the replies that fits; empty where none does.
std::string reply_text(const Limits& agreed, bool write_multiple, std::size_t room) {
    json capabilities = {{"max_msg_fds", kMaxMessageFds}};
    if (write_multiple) capabilities["write_multiple"] = true;
    json full = capabilities;
    full["max_data_xfer_size"] = agreed.max_transfer;
    full["max_dma_maps"] = agreed.max_dma_maps;
    const std::array<json, 4> candidates = {full, capabilities,
                                            json{{"max_msg_fds", kMaxMessageFds}}, json::object()};
    for (const json& candidate : candidates) {
        std::string text = json{{"capabilities", candidate}}.dump();
        if (text.size() + 1 <= room) return text;
    }
    return room >= 3 ? "{}" : "";
}

}  // namespace

std::optional<Negotiation> negotiate(std::span<const std::byte> request, const Limits& own,
                                     std::string& problem) {
    const auto major = load<std::uint16_t>(request, 0);
    const auto minor = load<std::uint16_t>(request, 2);
    if (!major || !minor) {
        problem = "the request has no version";
        return std::nullopt;
    }
    if (*major != kMajorVersion) {
        problem = fmt::format("the client speaks version {}.{}, this server {}.{}", *major, *minor,
                              kMajorVersion, kMinorVersion);
        return std::nullopt;
    }
    Proposal proposal;
    const auto data = request.subspan(2 * sizeof(std::uint16_t));
    if (!data.empty()) {
        const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
        if (text.size() > kMaxJson || text.find('\0') != text.size() - 1) {
            problem = fmt::format(
                "the version data is not a text of at most {} bytes that ends in NUL", kMaxJson);
            return std::nullopt;
        }
        const auto parsed = parse(text.substr(0, text.size() - 1), problem);
        if (!parsed) return std::nullopt;
        proposal = *parsed;
    }

    Negotiation result;
    result.limits.max_transfer = std::min(proposal.max_transfer, own.max_transfer);
    result.limits.max_dma_maps = std::min(proposal.max_dma_maps, own.max_dma_maps);
    const std::string text = reply_text(result.limits, proposal.write_multiple, data.size());
    result.payload.resize(2 * sizeof(std::uint16_t) + (text.empty() ? 0 : text.size() + 1));
    std::memcpy(result.payload.data(), &kMajorVersion, sizeof(kMajorVersion));
    const std::uint16_t agreed_minor = std::min(*minor, kMinorVersion);
    std::memcpy(result.payload.data() + sizeof(kMajorVersion), &agreed_minor, sizeof(agreed_minor));
    if (!text.empty())
        std::memcpy(result.payload.data() + 2 * sizeof(std::uint16_t), text.c_str(),
                    text.size() + 1);
    return result;
}

}  // namespace iaa::device::vfio_user
