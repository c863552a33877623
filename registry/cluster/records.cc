#include "registry/cluster/records.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/hex.h"
#include "common/base/printed_command.h"
#include "common/id/layout.h"
#include "common/id/lease_name.h"
#include "common/json/json_object.h"
#include "common/time/civil_time.h"

namespace firn {
namespace {

constexpr int64_t kTimeMax = kRecordTimeMax.ms();
constexpr size_t kUuidBytes = 36;

// Checked first: another format may have other members.
Status CheckFormat(int64_t format) {
  if (format > ClusterMeta::kFormat) {
    return Invalid(Cat("the cluster uses format ", format, ", but this program supports only ",
                       ClusterMeta::kFormat, "; install a newer Firn"));
  }
  if (format >= ClusterMeta::kFormatOldest) return {};
  return Invalid(Cat("the cluster was made by Firn 0.1 (format ", format,
                     "), which is no longer supported; make another one, elsewhere, with ",
                     PrintCommand(PrintedCommand::kInit)));
}

// Empty for the lease of another claim, and for one that cannot be read: the claim does not depend
// on it.
std::optional<SlotLease> LeaseIn(const Json* member, const Nonce& holder) {
  if (member == nullptr) return std::nullopt;
  SlotLease lease;
  std::string nonce;
  JsonReader read(*member);
  read.Text("nonce", nonce).Text("name", lease.name, kLeaseNameMax).Text("server", lease.server);
  const bool counts = read.status().ok() && !holder.zero() && nonce == holder.text();
  return counts ? std::optional(std::move(lease)) : std::nullopt;
}

// Empty if a server that does not know the member has written the record since.
std::optional<SlotWriter> WriterIn(const Json* member, const std::string& of_record) {
  if (member == nullptr) return std::nullopt;
  std::string word;
  std::string nonce;
  std::string era;
  int64_t id_time = 0;
  JsonReader read(*member);
  read.Text("word", word)
      .Text("nonce", nonce)
      .Text("era", era)
      .Number("id_ms", id_time, 0, kTimeMax);
  const Result<Nonce> claim = Nonce::Parse(nonce);
  const Result<Nonce> data = Nonce::Parse(era);
  if (!read.status().ok() || !claim.ok() || !data.ok() || word != of_record) return std::nullopt;
  return SlotWriter{*claim, *data, WallMs(id_time)};
}

bool IsUuidDash(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

}  // namespace

std::string FormatMeta(const ClusterMeta& meta) {
  JsonWriter write;
  write.Number("format", meta.format)
      .Text("uuid", meta.uuid)
      .Text("era", meta.era.text())
      .Text("layout", meta.layout)
      .Number("rack_bits", meta.rack_bits)
      .Text("default_strategy", meta.default_strategy);
  if (meta.ids_since != WallMs()) write.Number("ids_since_ms", meta.ids_since.ms());
  write.Number("floor_ms", meta.floor.ms());
  if (meta.lease_share != ClusterMeta::kLeaseShare) write.Number("lease_share", meta.lease_share);
  return write.Flag("frozen", meta.frozen).Text("reason", meta.reason).Others(meta.others).Done();
}

Result<ClusterMeta> ParseMeta(std::string_view json) {
  constexpr std::string_view kNode = "the cluster's root node";
  JsonReader read(json, kRecordBytesMax);
  ClusterMeta meta;
  read.Number("format", meta.format, 1, INT32_MAX);
  FIRN_TRY(read.status().WithContext(kNode));
  FIRN_TRY(CheckFormat(meta.format).WithContext(kNode));
  std::string era;
  int64_t rack_bits = 0;
  int64_t ids_since = 0;
  int64_t floor = 0;
  read.Text("uuid", meta.uuid)
      .Text("era", era)
      .Text("layout", meta.layout)
      .Number("rack_bits", rack_bits, 0, 16)
      .Text("default_strategy", meta.default_strategy)
      .NumberIfAny("ids_since_ms", ids_since, 0, kTimeMax)
      .Number("floor_ms", floor, 0, kTimeMax)
      .NumberIfAny("lease_share", meta.lease_share, 0, 100)
      .Flag("frozen", meta.frozen)
      .Text("reason", meta.reason, ClusterMeta::kReasonBytesMax)
      .Others(meta.others);
  FIRN_TRY(read.status().WithContext(kNode));
  if (!IsUuid(meta.uuid)) return Corrupt("the cluster's root node: \"uuid\" is not a UUID");
  FIRN_ASSIGN(meta.era, Nonce::Parse(era));
  if (!IsDefaultStrategy(meta.default_strategy)) {
    return Corrupt("the cluster's root node: \"default_strategy\" is not a known strategy");
  }
  if (meta.era.zero()) return Corrupt("the cluster's root node: \"era\" is zero");
  meta.rack_bits = static_cast<int>(rack_bits);
  meta.ids_since = WallMs(ids_since);
  meta.floor = WallMs(floor);
  return meta;
}

LedgerLimit LimitOf(const ClusterMeta& meta) {
  if (meta.default_strategy.empty()) return {};
  const Result<Layout> layout = Layout::Parse(meta.layout);
  if (meta.ids_since == WallMs() || !layout.ok()) {
    return {0, "this cluster serves undefined tags, but the date of its first id is unknown; run " +
                   PrintCommand(PrintedCommand::kRestoreIdsSince)};
  }
  const Tick first = std::clamp(layout->TickAt(meta.ids_since), Tick(0), layout->last_tick());
  const auto end = static_cast<int64_t>(layout->time().Place(static_cast<uint64_t>(first.count())));
  return {end, Cat("numbers must end below ", end,
                   ": this cluster serves undefined tags, so ids issued since ",
                   FormatRfc3339(meta.ids_since), " may be in use under any name")};
}

Status LedgerLimit::CheckEnd(int64_t to) const { return to <= end ? Status() : Invalid(why); }

// Segment tags have ledgers, so each must be defined.
bool IsDefaultStrategy(std::string_view text) { return text.empty() || text == "snowflake"; }

std::string FormatSlotRecord(const SlotRecord& record) {
  JsonWriter write;
  write.Text("nonce", record.nonce.text())
      .Text("word", record.word.text())
      .Number("bound_ms", record.bound.ms())
      .Text("owner", record.owner)
      .Number("since_ms", record.since.ms())
      .Text("host", record.host)
      .Number("pid", record.pid)
      .Text("build", record.build)
      .Flag("retired", record.retired);
  if (record.lease.has_value() && !record.nonce.zero()) {
    write.Object("lease", JsonWriter()
                              .Text("nonce", record.nonce.text())
                              .Text("name", record.lease->name)
                              .Text("server", record.lease->server)
                              .Done());
  }
  if (record.writer.has_value()) {
    write.Object("writer", JsonWriter()
                               .Text("word", record.word.text())
                               .Text("nonce", record.writer->nonce.text())
                               .Text("era", record.writer->era.text())
                               .Number("id_ms", record.writer->id_time.ms())
                               .Done());
  }
  return write.Others(record.others).Done();
}

Result<SlotRecord> ParseSlotRecord(std::string_view json) {
  SlotRecord record;
  std::string nonce;
  std::string word;
  int64_t bound = 0;
  int64_t since = 0;
  JsonReader read(json, kRecordBytesMax);
  read.Text("nonce", nonce)
      .Text("word", word)
      .Number("bound_ms", bound, 0, kTimeMax)
      .Text("owner", record.owner)
      .Number("since_ms", since, 0, kTimeMax)
      .Text("host", record.host)
      .Number("pid", record.pid, 0)
      .Text("build", record.build)
      .Flag("retired", record.retired);
  const Json* const lease = read.Take("lease");
  const Json* const writer = read.Take("writer");
  read.Others(record.others);
  FIRN_TRY(read.status().WithContext("the slot's record"));
  FIRN_ASSIGN(record.nonce, Nonce::Parse(nonce));
  record.lease = LeaseIn(lease, record.nonce);
  record.writer = WriterIn(writer, word);
  FIRN_ASSIGN(record.word, Nonce::Parse(word));
  record.bound = WallMs(bound);
  record.since = WallMs(since);
  return record;
}

std::string FormatLiveMark(const LiveMark& mark) {
  return JsonWriter()
      .Text("endpoint", mark.endpoint)
      .Text("nonce", mark.nonce.text())
      .Number("format", mark.format)
      .Done();
}

Result<LiveMark> ParseLiveMark(std::string_view json) {
  LiveMark mark;
  std::string nonce;
  JsonReader read(json, kRecordBytesMax);
  read.Text("endpoint", mark.endpoint)
      .Text("nonce", nonce)
      .Number("format", mark.format, 1, INT32_MAX);
  FIRN_TRY(read.status().WithContext("the live node"));
  FIRN_ASSIGN(mark.nonce, Nonce::Parse(nonce));
  return mark;
}

std::string DrawUuid(Entropy& entropy) {
  const std::string digits = Nonce::Draw(entropy).text();
  std::string uuid;
  for (size_t i = 0, digit = 0; i < kUuidBytes; ++i) uuid += IsUuidDash(i) ? '-' : digits[digit++];
  uuid[14] = '4';
  uuid[19] = "89ab"[entropy.Below(4)];
  return uuid;
}

bool IsUuid(std::string_view text) {
  if (text.size() != kUuidBytes) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsUuidDash(i) ? text[i] != '-' : !IsLowerHex(text.substr(i, 1))) return false;
  }
  return true;
}

}  // namespace firn
