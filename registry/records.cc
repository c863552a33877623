#include "registry/records.h"

#include "registry/flat_json.h"

namespace firn {
namespace {

constexpr int64_t kTimeMax = kRecordTimeMax.ms();
constexpr size_t kUuidBytes = 36;

bool IsUuidDash(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

}  // namespace

std::string FormatMeta(const ClusterMeta& meta) {
  return FlatJsonWriter()
      .Number("format", ClusterMeta::kFormat)
      .Text("uuid", meta.uuid)
      .Text("era", meta.era.text())
      .Text("layout", meta.layout)
      .Number("rack_bits", meta.rack_bits)
      .Number("floor_ms", meta.floor.ms())
      .Flag("frozen", meta.frozen)
      .Text("reason", meta.reason)
      .Done();
}

Result<ClusterMeta> ParseMeta(std::string_view json) {
  ClusterMeta meta;
  std::string era;
  int64_t format = 0;
  int64_t rack_bits = 0;
  int64_t floor = 0;
  const JsonField fields[] = {
      JsonField::Number("format", &format, ClusterMeta::kFormat, ClusterMeta::kFormat),
      JsonField::Text("uuid", &meta.uuid),
      JsonField::Text("era", &era),
      JsonField::Text("layout", &meta.layout),
      JsonField::Number("rack_bits", &rack_bits, 0, 16),
      JsonField::Number("floor_ms", &floor, 0, kTimeMax),
      JsonField::Flag("frozen", &meta.frozen),
      JsonField::Text("reason", &meta.reason, ClusterMeta::kReasonBytesMax),
  };
  FIRN_TRY(ReadFlatJson(json, kRecordBytesMax, fields).WithContext("the cluster's root node"));
  if (!IsUuid(meta.uuid)) return Corrupt("the cluster's root node: \"uuid\" is none");
  FIRN_ASSIGN(meta.era, Nonce::Parse(era));
  if (meta.era.zero()) return Corrupt("the cluster's root node: \"era\" is none");
  meta.rack_bits = static_cast<int>(rack_bits);
  meta.floor = WallMs(floor);
  return meta;
}

std::string FormatSlotRecord(const SlotRecord& record) {
  return FlatJsonWriter()
      .Text("nonce", record.nonce.text())
      .Number("bound_ms", record.bound.ms())
      .Text("owner", record.owner)
      .Number("since_ms", record.since.ms())
      .Text("host", record.host)
      .Number("pid", record.pid)
      .Text("build", record.build)
      .Flag("retired", record.retired)
      .Done();
}

Result<SlotRecord> ParseSlotRecord(std::string_view json) {
  SlotRecord record;
  std::string nonce;
  int64_t bound = 0;
  int64_t since = 0;
  const JsonField fields[] = {
      JsonField::Text("nonce", &nonce),        JsonField::Number("bound_ms", &bound, 0, kTimeMax),
      JsonField::Text("owner", &record.owner), JsonField::Number("since_ms", &since, 0, kTimeMax),
      JsonField::Text("host", &record.host),   JsonField::Number("pid", &record.pid, 0, INT64_MAX),
      JsonField::Text("build", &record.build), JsonField::Flag("retired", &record.retired),
  };
  FIRN_TRY(ReadFlatJson(json, kRecordBytesMax, fields).WithContext("the slot's record"));
  FIRN_ASSIGN(record.nonce, Nonce::Parse(nonce));
  record.bound = WallMs(bound);
  record.since = WallMs(since);
  return record;
}

std::string FormatLiveMark(const LiveMark& mark) {
  return FlatJsonWriter().Text("endpoint", mark.endpoint).Text("nonce", mark.nonce.text()).Done();
}

Result<LiveMark> ParseLiveMark(std::string_view json) {
  LiveMark mark;
  std::string nonce;
  const JsonField fields[] = {
      JsonField::Text("endpoint", &mark.endpoint),
      JsonField::Text("nonce", &nonce),
  };
  FIRN_TRY(ReadFlatJson(json, kRecordBytesMax, fields).WithContext("the live node"));
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
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (IsUuidDash(i) ? text[i] != '-' : !hex) return false;
  }
  return true;
}

}  // namespace firn
