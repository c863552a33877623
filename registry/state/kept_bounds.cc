#include "registry/state/kept_bounds.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "registry/cluster/records.h"

namespace firn {
namespace {

constexpr std::string_view kFirstWords = "firn-leases 1 ";
constexpr std::string_view kNoCluster = "-";

// Removes the text up to the next `end`, and returns it without the `end`.
std::optional<std::string_view> TakeUpTo(char end, std::string_view& text) {
  const size_t at = text.find(end);
  if (at == text.npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

// Removes and returns the text before the next space, or all of it.
std::string_view TakeWord(std::string_view& text) {
  if (const auto word = TakeUpTo(' ', text)) return *word;
  return std::exchange(text, {});
}

Result<KeptBound> ParseLine(std::string_view line) {
  std::array<std::string_view, 5> words{};
  for (std::string_view& word : words) word = TakeWord(line);
  const auto rack = ParseNumber<uint32_t>(words[0]);
  const auto worker = ParseNumber<uint32_t>(words[1]);
  const Result<Nonce> era = Nonce::Parse(words[2]);
  const auto created = ParseNumber<int64_t>(words[3]);
  const auto bound = ParseNumber<int64_t>(words[4]);
  if (!rack || !worker || !era.ok() || !created || !bound || *bound < 0 ||
      *bound > kRecordTimeMax.ms()) {
    return Corrupt(Cat("a line is not a slot with its bound: ", line));
  }
  KeptBound kept{{*rack, *worker}, *era, *created, WallMs(*bound)};
  if (line.empty()) return kept;
  const Result<Nonce> claim = Nonce::Parse(TakeWord(line));
  const auto version = ParseNumber<int64_t>(TakeWord(line));
  if (!claim.ok() || claim->zero() || !version) {
    return Corrupt(Cat("a line has no claim with its version: ", line));
  }
  kept.claim = *claim;
  kept.version = *version;
  kept.lease = line;
  return kept;
}

}  // namespace

WallMs KeptBounds::highest() const {
  WallMs highest;
  for (const KeptBound& one : bounds) highest = std::max(highest, one.bound);
  return highest;
}

std::string FormatKeptBounds(const KeptBounds& kept) {
  std::string text = Cat(kFirstWords, kept.uuid.empty() ? kNoCluster : kept.uuid,
                         kept.boot.empty() ? "" : " ", kept.boot, "\n");
  for (const KeptBound& one : kept.bounds) {
    text += Cat(one.slot.rack, " ", one.slot.worker, " ", one.era.text(), " ", one.created_zxid,
                " ", one.bound.ms());
    if (!one.claim.zero()) {
      text += Cat(" ", one.claim.text(), " ", one.version, one.lease.empty() ? "" : " ", one.lease);
    }
    text += '\n';
  }
  return Cat(text, "end ", kept.bounds.size(), "\n");
}

Result<KeptBounds> ParseKeptBounds(std::string_view text) {
  KeptBounds kept;
  std::optional<std::string_view> line = TakeUpTo('\n', text);
  if (!line || !line->starts_with(kFirstWords)) {
    return Corrupt(Cat("its first line does not begin with '", kFirstWords, "'"));
  }
  line->remove_prefix(kFirstWords.size());
  if (const std::string_view uuid = TakeWord(*line); uuid != kNoCluster) kept.uuid = uuid;
  kept.boot = *line;
  while ((line = TakeUpTo('\n', text))) {
    if (*line == Cat("end ", kept.bounds.size()) && text.empty()) return kept;
    FIRN_ASSIGN(const KeptBound one, ParseLine(*line));
    kept.bounds.push_back(one);
  }
  return Corrupt("its last line is missing or does not match the number of bounds");
}

}  // namespace firn
