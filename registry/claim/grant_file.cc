#include "registry/claim/grant_file.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "registry/records.h"

namespace firn {
namespace {

constexpr std::string_view kMagic = "firn-grant";
constexpr std::string_view kNothing = "-";  // stands for an empty word
constexpr uint64_t kFormat = 1;
constexpr size_t kWords = 18;
constexpr uint64_t kCounterMax = INT64_MAX;  // never reached: after it the older record would count
constexpr size_t kBootIdBytesMax = 64;

// FNV-1a: tells torn and damaged records, not forgeries.
uint64_t CheckOf(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

template <typename Number>
void AppendNumber(std::string& line, Number value) {
  char digits[24];
  line.append(1, ' ').append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

template <typename Number>
bool ReadNumber(std::string_view word, Number& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() && value >= 0;
}

// Exactly kWords words with one blank between them, then only blanks up to the newline.
bool Split(std::string_view bytes, std::array<std::string_view, kWords>& words) {
  for (size_t i = 0; i < kWords; ++i) {
    const size_t end = bytes.find(' ');
    if (end == std::string_view::npos || end == 0) return false;
    words[i] = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
  }
  return bytes.find_first_not_of(' ') == bytes.size() - 1 && bytes.back() == '\n';
}

bool ReadTime(std::string_view word, WallMs& to) {
  int64_t ms = 0;
  if (!ReadNumber(word, ms) || ms > kRecordTimeMax.ms()) return false;
  to = WallMs(ms);
  return true;
}

bool IsBootId(std::string_view word) {
  return word.size() <= kBootIdBytesMax &&
         std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

std::string FormatGrantRecord(const GrantRecord& record) {
  const Grant& grant = record.grant;
  std::string line;
  line.reserve(GrantFile::kRecordBytes);
  line.append(kMagic);
  AppendNumber(line, kFormat);
  AppendNumber(line, record.counter);
  line.append(1, ' ').append(grant.nonce.text());
  AppendNumber(line, grant.slot.rack);
  AppendNumber(line, grant.slot.worker);
  AppendNumber(line, grant.machine.value());
  AppendNumber(line, grant.bound.ms());
  AppendNumber(line, grant.limit.ms());
  AppendNumber(line, grant.version);
  AppendNumber(line, grant.created_zxid);
  AppendNumber(line, grant.meta_version);
  line.append(1, ' ').append(grant.uuid.empty() ? kNothing : grant.uuid);
  line.append(1, ' ').append(record.identity.boot_id.empty() ? kNothing : record.identity.boot_id);
  AppendNumber(line, record.identity.device);
  AppendNumber(line, record.identity.inode);
  AppendNumber(line, record.identity.born_ns);
  AppendNumber(line, CheckOf(line));
  line.append(1, ' ');
  if (line.size() >= GrantFile::kRecordBytes) Die("a grant record does not fit");
  line.append(GrantFile::kRecordBytes - 1 - line.size(), ' ');
  line += '\n';
  return line;
}

Result<GrantRecord> ParseGrantRecord(std::string_view bytes) {
  if (bytes.size() != GrantFile::kRecordBytes) return Corrupt("a grant record has 512 bytes");
  if (bytes.find_first_not_of(' ') == std::string_view::npos) return NotFound("no grant record");
  std::array<std::string_view, kWords> words;
  if (!Split(bytes, words)) return Corrupt("the grant record is torn or of another format");
  uint64_t format = 0;
  uint64_t check = 0;
  if (words[0] != kMagic || !ReadNumber(words[1], format) || format != kFormat) {
    return Corrupt("the grant record is of another format");
  }
  const auto body = bytes.substr(0, static_cast<size_t>(words.back().data() - bytes.data()) - 1);
  if (!ReadNumber(words.back(), check) || check != CheckOf(body)) {
    return Corrupt("the grant record's checksum is wrong");
  }
  GrantRecord record;
  Grant& grant = record.grant;
  FIRN_ASSIGN(grant.nonce, Nonce::Parse(words[3]));
  if (words[12] != kNothing) grant.uuid = words[12];
  if (words[13] != kNothing) record.identity.boot_id = words[13];
  uint32_t machine = 0;
  const bool good =
      ReadNumber(words[2], record.counter) && record.counter < kCounterMax &&
      ReadNumber(words[4], grant.slot.rack) && ReadNumber(words[5], grant.slot.worker) &&
      ReadNumber(words[6], machine) && ReadTime(words[7], grant.bound) &&
      ReadTime(words[8], grant.limit) && ReadNumber(words[9], grant.version) &&
      ReadNumber(words[10], grant.created_zxid) && ReadNumber(words[11], grant.meta_version) &&
      (grant.uuid.empty() || IsUuid(grant.uuid)) && IsBootId(words[13]) &&
      ReadNumber(words[14], record.identity.device) &&
      ReadNumber(words[15], record.identity.inode) &&
      ReadNumber(words[16], record.identity.born_ns);
  grant.machine = MachineId(machine);
  if (!good) return Corrupt("the grant record holds something absurd");
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
  // The older record first: whatever interrupts this leaves a void record as the newest one.
  for (int i = 0; i < 2; ++i) FIRN_TRY(Write(Grant{}, durability));
  return {};
}

}  // namespace firn
