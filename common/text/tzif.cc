#include "common/text/tzif.h"

#include <algorithm>
#include <array>
#include <string>

namespace firn {
namespace {

constexpr size_t kHeaderBytes = 44;

// The counts in a file's header, in the order of the data blocks after it.
struct Counts {
  size_t utc_marks, standard_marks, leaps, changes, types, name_bytes;
};

}  // namespace

// Parses one file from front to back. Never reads beyond the end; compares sizes before use.
class TzifParser {
 public:
  explicit TzifParser(std::string_view bytes) : rest_(bytes) {}

  Result<std::shared_ptr<const Tzif>> Parse() {
    FIRN_ASSIGN(Counts counts, ReadHeader());
    if (version_ >= '2') {
      // The first block has the table in 32 bits; the 64-bit block after it is used.
      if (!Skip(BlockBytes(counts, 4))) return Torn();
      FIRN_ASSIGN(counts, ReadHeader());
    }
    const size_t time_bytes = version_ >= '2' ? 8 : 4;
    if (rest_.size() < BlockBytes(counts, time_bytes)) return Torn();
    FIRN_TRY(ReadBlock(counts, time_bytes));
    if (version_ >= '2') FIRN_TRY(ReadRule());
    return std::shared_ptr<const Tzif>(std::move(zone_));
  }

 private:
  static Status Torn() { return Corrupt("the zone file ends too early"); }

  bool Skip(size_t bytes) {
    if (rest_.size() < bytes) return false;
    rest_.remove_prefix(bytes);
    return true;
  }

  int64_t BigEndian(size_t at, size_t bytes) const {
    uint64_t value = (rest_[at] & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint8_t>(rest_[at + i]);
    return static_cast<int64_t>(value);
  }

  Result<Counts> ReadHeader() {
    if (rest_.size() < kHeaderBytes) return Torn();
    if (!rest_.starts_with("TZif")) return Corrupt("not a zone file");
    version_ = rest_[4];
    std::array<size_t, 6> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) {
      const int64_t number = BigEndian(20 + 4 * i, 4);
      // No count exceeds the size of its file, so the sums below cannot overflow.
      if (number < 0 || number > static_cast<int64_t>(TimeZone::kFileBytesMax)) return Torn();
      numbers[i] = static_cast<size_t>(number);
    }
    Skip(kHeaderBytes);
    return Counts{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]};
  }

  static size_t BlockBytes(const Counts& counts, size_t time_bytes) {
    return counts.changes * (time_bytes + 1) + counts.types * 6 + counts.name_bytes +
           counts.leaps * (time_bytes + 4) + counts.standard_marks + counts.utc_marks;
  }

  // The caller has checked that the block is complete.
  Status ReadBlock(const Counts& counts, size_t time_bytes) {
    if (counts.leaps != 0) return Corrupt("the zone file counts leap seconds");
    if (counts.types == 0 || counts.types > 256) return Corrupt("no or too many kinds of time");
    const size_t indices_at = counts.changes * time_bytes;
    const size_t types_at = indices_at + counts.changes;
    for (size_t i = 0; i < counts.changes; ++i) {
      const std::chrono::sys_seconds at{
          std::chrono::seconds(BigEndian(i * time_bytes, time_bytes))};
      const auto type = static_cast<uint8_t>(rest_[indices_at + i]);
      if (i > 0 && at <= zone_->changes_.back()) return Corrupt("changes are not in order");
      if (type >= counts.types) return Corrupt("a change to an unknown kind of time");
      zone_->changes_.push_back(at);
      zone_->type_after_.push_back(type);
    }
    const std::string_view names = rest_.substr(types_at + counts.types * 6, counts.name_bytes);
    for (size_t i = 0; i < counts.types; ++i) FIRN_TRY(ReadType(types_at + i * 6, names));
    Skip(BlockBytes(counts, time_bytes));
    return {};
  }

  Status ReadType(size_t at, std::string_view names) {
    const std::chrono::seconds offset(BigEndian(at, 4));
    const auto name_at = static_cast<uint8_t>(rest_[at + 5]);
    if (offset < std::chrono::hours(-25) || offset > std::chrono::hours(26)) {
      return Corrupt("an offset of more than a day");
    }
    const size_t name_end = names.find('\0', name_at);
    if (name_end == names.npos) return Corrupt("a name without an end");
    zone_->types_.push_back(
        {offset, rest_[at + 4] != 0, std::string(names.substr(name_at, name_end - name_at))});
    return {};
  }

  // "\n<rule>\n"; an empty rule does not specify later years.
  Status ReadRule() {
    if (rest_.size() < 2 || rest_.front() != '\n' || rest_.back() != '\n') return Torn();
    const std::string_view text = rest_.substr(1, rest_.size() - 2);
    if (text.empty()) return {};
    FIRN_ASSIGN(zone_->rule_, PosixTz::Parse(text));
    return {};
  }

  std::string_view rest_;
  char version_ = 0;
  std::shared_ptr<Tzif> zone_ = std::make_shared<Tzif>();
};

Result<std::shared_ptr<const Tzif>> Tzif::Parse(std::string_view bytes) {
  if (bytes.size() > TimeZone::kFileBytesMax) return Corrupt("too large for a zone file");
  return TzifParser(bytes).Parse();
}

const TimeZone::LocalType& Tzif::At(std::chrono::sys_seconds t) const {
  const auto after = std::upper_bound(changes_.begin(), changes_.end(), t);
  if (after == changes_.end() && rule_) return rule_->At(t);
  if (after == changes_.begin()) return types_[0];
  return types_[type_after_[static_cast<size_t>(after - changes_.begin()) - 1]];
}

}  // namespace firn
