#include "registry/cluster/past_holders.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/json/json_object.h"

namespace firn {
namespace {

constexpr std::string_view kHolders = "holders";

Status BadHolder(size_t i) {
  return Corrupt(Cat("the slot's past: holder ", i, " cannot be read"));
}

std::string HolderText(const PastHolder& holder) {
  JsonWriter write;
  write.Text("owner", holder.owner)
      .Text("host", holder.host)
      .Number("pid", holder.pid)
      .Number("first_ms", holder.first.ms())
      .Number("end_ms", holder.end.ms());
  if (holder.perhaps > holder.end) write.Number("perhaps_ms", holder.perhaps.ms());
  if (!holder.nonce.zero()) write.Text("nonce", holder.nonce.text());
  if (holder.version.has_value()) write.Number("version", *holder.version);
  return write.Done();
}

// Other members belong to later versions and are ignored.
bool TakeHolder(const Json& json, PastHolder& holder) {
  int64_t first = 0;
  int64_t end = 0;
  JsonReader read(json);
  read.Text("owner", holder.owner)
      .Text("host", holder.host)
      .Number("pid", holder.pid, 0)
      .Number("first_ms", first, 0)
      .Number("end_ms", end, 0, kRecordTimeMax.ms());
  int64_t perhaps = 0;
  read.NumberIfAny("perhaps_ms", perhaps, 0, kRecordTimeMax.ms());
  if (read.Find("nonce") != nullptr) {
    std::string nonce;
    read.Text("nonce", nonce);
    holder.nonce = Nonce::Parse(nonce).value_or(Nonce());
  }
  if (read.Find("version") != nullptr) {
    read.Number("version", holder.version.emplace(), INT32_MIN, INT32_MAX);
  }
  holder.perhaps = WallMs(perhaps);
  holder.first = WallMs(first);
  holder.end = WallMs(end);
  return read.status().ok();
}

}  // namespace

PastHolder HolderIn(const SlotRecord& record, const Nonce& era, std::optional<int64_t> version) {
  PastHolder holder{.owner = record.owner,
                    .host = record.host,
                    .pid = record.pid,
                    .first = record.since,
                    .end = record.bound,
                    .nonce = record.claim(),
                    .version = version};
  if (record.writer.has_value() && record.writer->era != era) {
    holder.perhaps = std::exchange(holder.end, std::clamp(record.writer->id_time, record.since,
                                                          std::max(record.since, record.bound)));
  }
  return holder;
}

PastHolder PastHolder::Until(WallMs successor) const {
  PastHolder ended = *this;
  ended.end = std::min(end, successor);
  ended.perhaps = std::min(perhaps, successor);
  return ended;
}

Result<PastHolders> PastHolders::Parse(std::string_view json) {
  const Result<Json> object = ParseJson(json, kBytesMax, kValuesMax);
  if (!object.ok()) return object.status().WithContext("the slot's past");
  const Json& list = object->at(kHolders);
  if (!list.is_array()) {
    return Corrupt("the slot's past is not a list of holders");
  }
  PastHolders past;
  for (const Json& member : list) {
    PastHolder holder;
    if (!TakeHolder(member, holder)) return BadHolder(past.holders_.size());
    past.Add(std::move(holder));
  }
  return past;
}

std::string PastHolders::Text() const {
  std::string text = "{\"holders\":[";
  for (size_t i = 0; i < holders_.size(); ++i) {
    if (i != 0) text += ',';
    text += HolderText(holders_[i]);
  }
  return text += "]}";
}

void PastHolders::Add(PastHolder holder) {
  if (!holder.is_needed()) return;
  if (holders_.size() == kHoldersMax) {
    const auto unused = std::ranges::find_if(holders_, &PastHolder::is_empty);
    holders_.erase(unused == holders_.end() ? holders_.begin() : unused);
  }
  holders_.push_back(std::move(holder));
}

std::string PastPath(Slot slot) { return SlotPath(slot) + "/past"; }

}  // namespace firn
