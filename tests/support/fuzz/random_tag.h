#pragma once

#include <string>
#include <string_view>

#include "common/tag/tag_definition.h"
#include "common/time/entropy.h"

namespace firn {

// A name of `least` to `most` characters, including all that files and paths must escape.
inline std::string RandomText(Entropy& entropy, uint64_t least, uint64_t most) {
  static constexpr std::string_view kPieces[] = {"a", "Z", "0",  " ",  ";",   "#", "=",
                                                 "[", "]", "\"", "\\", "'",   "/", ".",
                                                 "%", "+", "é",  "雪", "🧊"};
  std::string text;
  for (uint64_t i = least + entropy.Below(most - least + 1); i > 0; --i) {
    text += kPieces[entropy.Below(std::size(kPieces))];
  }
  return text;
}

inline std::string RandomTagName(Entropy& entropy) {
  return "n" + RandomText(entropy, 0, 30) + "n";
}

// Makes a tag with ranges dated; its step has at most nine digits.
inline void MakeDated(TagDefinition& tag, Entropy& entropy) {
  tag.strategy = "dated";
  tag.store = "registry";
  tag.buffer = TagBuffer::kDouble;
  tag.when_store_is_away = TagDefinition().when_store_is_away;
  tag.start.reset();
  tag.digits = 9;
  tag.period = static_cast<Period>(entropy.Below(3));
  tag.period_grace = static_cast<int64_t>(entropy.Below(100));
}

// Returns a definition that CheckTag accepts. Each field has its default value in about half of
// them.
inline TagDefinition RandomTag(Entropy& entropy) {
  const auto coin = [&] { return entropy.Below(2) == 0; };
  TagDefinition tag{.name = RandomTagName(entropy), .strategy = coin() ? "segment" : "snowflake"};
  tag.disabled = coin();
  if (coin()) tag.text = "{id}-" + RandomText(entropy, 0, 8);
  if (coin()) tag.zone = "Europe/Zurich";
  if (tag.strategy == "segment") {
    if (coin()) tag.store = "redis-1";
    if (coin()) tag.start = 1 + static_cast<int64_t>(entropy.Next() >> 1 >> 1);
    if (coin()) tag.step = 1 + static_cast<int64_t>(entropy.Below(100'000'000));
    if (coin()) tag.step_max = tag.step + static_cast<int64_t>(entropy.Below(1000));
    if (coin()) tag.hold_minutes = 1 + static_cast<int64_t>(entropy.Below(1440));
    if (coin()) tag.prefetch_at = 1 + static_cast<int64_t>(entropy.Below(99));
    if (coin()) tag.buffer = TagBuffer::kNone;
    if (tag.store != "registry" && tag.buffer == TagBuffer::kDouble && coin()) {
      tag.when_store_is_away = StoreAway::kLedger;
    }
    if (coin()) tag.high = static_cast<int64_t>(entropy.Next() >> 1);
    if (coin()) MakeDated(tag, entropy);
  }
  if (coin()) {
    tag.plugins.push_back("limit");
    tag.limit_per_second = 1 + static_cast<int64_t>(entropy.Below(1'000'000));
    tag.limit_burst = static_cast<int64_t>(entropy.Below(1000));
  }
  if (coin() && tag.strategy != "dated") {
    tag.plugins.push_back("obfuscate");
    tag.obfuscate_width = 6 + static_cast<int64_t>(entropy.Below(14));
    tag.obfuscate_key = "k2026";
    tag.obfuscate_check = "c6a13b";
  }
  if (coin()) {
    tag.plugins.push_back("geo");
    tag.options["geo.region"] = RandomText(entropy, 0, 20);
    tag.options["geo.depth"] = RandomText(entropy, 1, 3);
  }
  return tag;
}

}  // namespace firn
