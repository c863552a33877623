#include "registry/state/grant_file.h"

#include <algorithm>
#include <array>

#include "common/base/cat.h"
#include "common/base/fnv.h"
#include "common/base/parse.h"
#include "registry/cluster/records.h"

namespace firn {
namespace {

constexpr std::string_view kMagic = "firn-grant";
constexpr std::string_view kNothing = "-";  // replaces an empty word
constexpr uint64_t kFormat = 2;
constexpr uint64_t kOfflineFormat = 3;  // with one more word, before the check
constexpr size_t kWords = 26;
constexpr uint64_t kCounterMax = INT64_MAX;  // never reached: it has no successor
constexpr size_t kBootIdBytesMax = 64;

template <typename Number>
void AppendNumber(std::string& line, Number value) {
  line += Cat(' ', value);
}

template <typename Number>
bool ReadSigned(std::string_view word, Number& value) {
  const std::optional<Number> number = ParseNumber<Number>(word);
  value = number.value_or(value);
  return number.has_value();
}

template <typename Number>
bool ReadNumber(std::string_view word, Number& value) {
  return ReadSigned(word, value) && value >= 0;
}

// A node's version: 32 bits, which wrap, so it may be negative.
bool ReadVersion(std::string_view word, int64_t& version) {
  int32_t value = 0;
  if (!ReadSigned(word, value)) return false;
  version = value;
  return true;
}

using Words = std::array<std::string_view, kWords + 1>;

// Words with one blank between them, then only blanks up to the newline. Returns how many there
// are; 0: too many, or other text.
size_t Split(std::string_view bytes, Words& words) {
  for (size_t count = 0;;) {
    const size_t text = bytes.find_first_not_of(' ');
    if (text != std::string_view::npos && bytes.substr(text) == "\n") return count;
    const size_t end = bytes.find(' ');
    if (end == std::string_view::npos || end == 0 || count == words.size()) return 0;
    words[count++] = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
  }
}

bool ReadTime(std::string_view word, WallMs& to) {
  int64_t ms = 0;
  if (!ReadNumber(word, ms) || ms > kRecordTimeMax.ms()) return false;
  to = WallMs(ms);
  return true;
}

bool ReadOffline(std::string_view word, std::vector<OfflineHolder>& holders) {
  while (!word.empty()) {
    const std::string_view one = word.substr(0, word.find(','));
    const size_t colon = one.find(':');
    OfflineHolder holder;
    if (holders.size() == kOfflineHoldersMax || colon == std::string_view::npos ||
        !ReadTime(one.substr(0, colon), holder.first) ||
        !ReadNumber(one.substr(colon + 1), holder.pid)) {
      return false;
    }
    holders.push_back(holder);
    word.remove_prefix(std::min(one.size() + 1, word.size()));
  }
  return true;
}

std::string OfflineText(const std::vector<OfflineHolder>& holders) {
  std::string text;
  for (const OfflineHolder& holder : holders) {
    text += Cat(text.empty() ? "" : ",", holder.first.ms(), ":", holder.pid);
  }
  return text;
}

bool IsBootId(std::string_view word) {
  return word.size() <= kBootIdBytesMax &&
         std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

void AddOfflineHolder(std::vector<OfflineHolder>& holders, OfflineHolder holder) {
  // The previous holder has issued nothing.
  if (!holders.empty() && holders.back().first >= holder.first) holders.pop_back();
  if (holders.size() == kOfflineHoldersMax) {
    holders.pop_back();
    holders.back().pid = 0;
  }
  holders.push_back(holder);
}

std::string FormatGrantRecord(const GrantRecord& record) {
  const Grant& grant = record.grant;
  const auto& [boot_id, file, lock] = record.identity;
  std::string line;
  line.reserve(GrantFile::kRecordBytes);
  line.append(kMagic);
  AppendNumber(line, grant.offline.empty() ? kFormat : kOfflineFormat);
  AppendNumber(line, record.counter);
  for (const Nonce& random : {grant.nonce, grant.word, grant.pending_word}) {
    line.append(1, ' ').append(random.text());
  }
  for (const uint32_t number : {grant.slot.rack, grant.slot.worker, grant.machine.value()}) {
    AppendNumber(line, number);
  }
  for (const int64_t number : {grant.bound.ms(), grant.limit.ms(), grant.version,
                               grant.created_zxid, grant.meta_version}) {
    AppendNumber(line, number);
  }
  line.append(1, ' ').append(grant.uuid.empty() ? kNothing : grant.uuid);
  AppendNumber(line, grant.clocks.id_time.ms());
  AppendNumber(line, grant.clocks.boot.ms());
  AppendNumber(line, grant.clocks.time_namespace);
  line.append(1, ' ').append(boot_id.empty() ? kNothing : boot_id);
  for (const uint64_t number :
       {file.device, file.inode, file.born_ns, lock.device, lock.inode, lock.born_ns}) {
    AppendNumber(line, number);
  }
  if (!grant.offline.empty()) line.append(1, ' ').append(OfflineText(grant.offline));
  AppendNumber(line, Fnv1a(line));
  line.append(1, ' ');
  if (line.size() >= GrantFile::kRecordBytes) Die("a grant record does not fit");
  line.append(GrantFile::kRecordBytes - 1 - line.size(), ' ');
  line += '\n';
  return line;
}

Result<GrantRecord> ParseGrantRecord(std::string_view bytes) {
  if (bytes.size() != GrantFile::kRecordBytes) return Corrupt("a grant record has 1024 bytes");
  if (bytes.find_first_not_of(' ') == std::string_view::npos) return NotFound("no grant record");
  Words words;
  const size_t count = Split(bytes, words);
  if (count < kWords) return Corrupt("the grant record is torn or of another format");
  uint64_t format = 0;
  uint64_t check = 0;
  const bool offline = count > kWords;
  if (words[0] != kMagic || !ReadNumber(words[1], format) ||
      format != (offline ? kOfflineFormat : kFormat)) {
    return Corrupt("the grant record is of another format");
  }
  const std::string_view last = words[count - 1];
  const auto body = bytes.substr(0, static_cast<size_t>(last.data() - bytes.data()) - 1);
  if (!ReadNumber(last, check) || check != Fnv1a(body)) {
    return Corrupt("the grant record's checksum is wrong");
  }
  GrantRecord record;
  Grant& grant = record.grant;
  auto& [boot_id, file, lock] = record.identity;
  FIRN_ASSIGN(grant.nonce, Nonce::Parse(words[3]));
  FIRN_ASSIGN(grant.word, Nonce::Parse(words[4]));
  FIRN_ASSIGN(grant.pending_word, Nonce::Parse(words[5]));
  if (words[14] != kNothing) grant.uuid = words[14];
  if (words[18] != kNothing) boot_id = words[18];
  uint32_t machine = 0;
  int64_t boot_ms = 0;
  const bool good =
      ReadNumber(words[2], record.counter) && record.counter < kCounterMax &&
      ReadNumber(words[6], grant.slot.rack) && ReadNumber(words[7], grant.slot.worker) &&
      ReadNumber(words[8], machine) && ReadTime(words[9], grant.bound) &&
      ReadTime(words[10], grant.limit) && ReadVersion(words[11], grant.version) &&
      ReadNumber(words[12], grant.created_zxid) && ReadVersion(words[13], grant.meta_version) &&
      (grant.uuid.empty() || IsUuid(grant.uuid)) && ReadTime(words[15], grant.clocks.id_time) &&
      ReadNumber(words[16], boot_ms) && ReadNumber(words[17], grant.clocks.time_namespace) &&
      IsBootId(words[18]) && ReadNumber(words[19], file.device) &&
      ReadNumber(words[20], file.inode) && ReadNumber(words[21], file.born_ns) &&
      ReadNumber(words[22], lock.device) && ReadNumber(words[23], lock.inode) &&
      ReadNumber(words[24], lock.born_ns) && (!offline || ReadOffline(words[25], grant.offline));
  grant.machine = MachineId(machine);
  grant.clocks.boot = BootMs(boot_ms);
  if (!good) return Corrupt("the grant record has a value out of its range");
  return record;
}

Result<GrantFile::Found> GrantFile::Read() {
  FIRN_ASSIGN(const std::string bytes, folder_.ReadGrant());
  if (bytes.size() != StateFolder::kGrantBytes) return Corrupt("the grant file has a wrong size");
  const std::string_view both = bytes;
  const Result<GrantRecord> records[] = {ParseGrantRecord(both.substr(0, kRecordBytes)),
                                         ParseGrantRecord(both.substr(kRecordBytes))};
  const bool second =
      records[1].ok() && (!records[0].ok() || (*records[1]).counter > (*records[0]).counter);
  const Result<GrantRecord>& newest = records[second];
  const Result<GrantRecord>& other = records[!second];
  if (!newest.ok()) {
    return other.code() == Code::kCorrupt ? other.status() : newest.status();
  }
  counter_ = (*newest).counter;
  next_ = second ? 0 : 1;
  if ((*newest).grant.nonce.zero()) return NotFound("the grant file is void");
  return Found{(*newest).grant, (*newest).identity, other.code() == Code::kCorrupt};
}

Status GrantFile::Write(const Grant& grant, StateFolder::Durability durability) {
  const GrantRecord record{counter_ + 1, grant, folder_.grant_identity()};
  FIRN_TRY(folder_.WriteGrant(next_ * kRecordBytes, FormatGrantRecord(record), durability));
  ++counter_;
  next_ = 1 - next_;
  return {};
}

Status GrantFile::Void(StateFolder::Durability durability) {
  // The older record first: after an interruption the newest record is void.
  for (int i = 0; i < 2; ++i) FIRN_TRY(Write(Grant{}, durability));
  return {};
}

}  // namespace firn
