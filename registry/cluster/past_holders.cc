#include "registry/cluster/past_holders.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "registry/cluster/flat_json.h"

namespace firn {
namespace {

constexpr std::string_view kHolders = "holders";

Status BadHolder(size_t i) {
  return Corrupt("the slot's past: holder " + std::to_string(i) + " cannot be read");
}

std::string HolderText(const PastHolder& holder) {
  return FlatJsonWriter()
      .Text("owner", holder.owner)
      .Text("host", holder.host)
      .Number("pid", holder.pid)
      .Number("first_ms", holder.first.ms())
      .Number("end_ms", holder.end.ms())
      .Done();
}

bool TakeText(const nlohmann::json& json, const char* name, std::string& to) {
  const auto member = json.find(name);
  if (member == json.end() || !member->is_string()) return false;
  to = member->get<std::string>();
  return to.size() <= JsonField::kTextBytesMax;
}

bool TakeNumber(const nlohmann::json& json, const char* name, int64_t& to) {
  const auto member = json.find(name);
  if (member == json.end() || !member->is_number_integer()) return false;
  if (member->is_number_unsigned() && member->get<uint64_t>() > INT64_MAX) return false;
  to = member->get<int64_t>();
  return to >= 0;
}

// Members that are not asked for are somebody's who came later.
bool TakeHolder(const nlohmann::json& json, PastHolder& holder) {
  int64_t first = 0;
  int64_t end = 0;
  const bool whole = json.is_object() && TakeText(json, "owner", holder.owner) &&
                     TakeText(json, "host", holder.host) && TakeNumber(json, "pid", holder.pid) &&
                     TakeNumber(json, "first_ms", first) && TakeNumber(json, "end_ms", end);
  holder.first = WallMs(first);
  holder.end = WallMs(end);
  return whole && holder.end <= kRecordTimeMax;
}

}  // namespace

PastHolder HolderIn(const SlotRecord& record) {
  return {record.owner, record.host, record.pid, record.since, record.bound};
}

PastHolder PastHolder::Until(WallMs successor) const {
  PastHolder ended = *this;
  ended.end = std::min(end, successor);
  return ended;
}

Result<PastHolders> PastHolders::Parse(std::string_view json) {
  if (json.size() > kBytesMax) return Corrupt("the slot's past is too long");
  const auto object = nlohmann::json::parse(json.begin(), json.end(), nullptr, false);
  if (!object.is_object() || !object.contains(kHolders) || !object.at(kHolders).is_array()) {
    return Corrupt("the slot's past is not a list of holders");
  }
  PastHolders past;
  for (const nlohmann::json& member : object.at(kHolders)) {
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
  if (holder.end <= holder.first) return;
  if (holders_.size() == kHoldersMax) holders_.erase(holders_.begin());
  holders_.push_back(std::move(holder));
}

std::string PastPath(Slot slot) { return SlotPath(slot) + "/past"; }

}  // namespace firn
