#include "server/lease/kept_lease.h"

#include <array>

#include "common/base/cat.h"
#include "common/base/parse.h"

namespace firn {
namespace {

constexpr std::string_view kNoTurn = "-";
constexpr std::string_view kLowered = "lowered", kNotLowered = "-";

}  // namespace

// The client's name is the last, since it may contain spaces.
std::string FormatKeptLease(const KeptLease& lease) {
  if (lease.client.find('\n') != lease.client.npos) return {};
  return Cat(lease.number, " ", lease.id, " ", lease.meta_version, " ", lease.base.ms(), " ",
             lease.until.count(), " ", lease.turn.empty() ? kNoTurn : lease.turn, " ",
             lease.turn_clock.ms(), " ", lease.lowered ? kLowered : kNotLowered, " ", lease.name,
             " ", lease.client);
}

std::optional<KeptLease> ParseKeptLease(std::string_view text) {
  std::array<std::string_view, 9> words;
  for (std::string_view& word : words) {
    const size_t at = text.find(' ');
    if (at == text.npos) return std::nullopt;
    word = text.substr(0, at);
    text.remove_prefix(at + 1);
  }
  const auto number = ParseNumber<uint64_t>(words[0]);
  const auto meta_version = ParseNumber<int64_t>(words[2]);
  const auto base = ParseNumber<int64_t>(words[3]);
  const auto until = ParseNumber<int64_t>(words[4]);
  const auto clock = ParseNumber<int64_t>(words[6]);
  const bool lowered = words[7] == kLowered;
  if (!number || !meta_version || !base || !until || !clock) return std::nullopt;
  if (!lowered && words[7] != kNotLowered) return std::nullopt;
  return KeptLease{.number = *number,
                   .id = std::string(words[1]),
                   .name = std::string(words[8]),
                   .client = std::string(text),
                   .meta_version = *meta_version,
                   .base = WallMs(*base),
                   .until = Tick(*until),
                   .turn = words[5] == kNoTurn ? std::string() : std::string(words[5]),
                   .turn_clock = WallMs(*clock),
                   .lowered = lowered};
}

}  // namespace firn
