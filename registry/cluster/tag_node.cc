#include "registry/cluster/tag_node.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/faults.h"
#include "common/base/utf8.h"
#include "common/json/json.h"
#include "common/tag/tag_fields.h"
#include "common/tag/tag_name.h"

namespace firn {
namespace {

constexpr std::string_view kHigh = "high";
constexpr std::string_view kReturned = "returned";
constexpr std::string_view kStandIn = "stand_in";
constexpr std::string_view kDeleted = "deleted";

// --- values --------------------------------------------------------------------------------------

Status Take(const Json& json, std::string& value) {
  if (!json.is_string()) return Invalid("must be a string");
  value = json.text();
  return {};
}

Status Take(const Json& json, int64_t& value) {
  const std::optional<int64_t> number = json.whole();
  if (!number) return Invalid("is not a whole number of 63 bits");
  value = *number;
  return {};
}

Status Take(const Json& json, std::optional<int64_t>& value) {
  int64_t number = 0;
  FIRN_TRY(Take(json, number));
  value = number;
  return {};
}

Status Take(const Json& json, bool& value) {
  if (!json.is_boolean()) return Invalid("must be true or false");
  value = json.boolean();
  return {};
}

Status Take(const Json& json, TagBuffer& value) {
  const std::optional<TagBuffer> buffer =
      json.is_string() ? BufferNamed(json.text()) : std::nullopt;
  if (!buffer) return Invalid("must be double, none or owner");
  value = *buffer;
  return {};
}

Status Take(const Json& json, StoreAway& value) {
  if (json != "refuse" && json != "ledger") return Invalid("must be refuse or ledger");
  value = json == "ledger" ? StoreAway::kLedger : StoreAway::kRefuse;
  return {};
}

Status Take(const Json& json, std::vector<std::string>& value) {
  if (!json.is_array()) return Invalid("must be a list");
  std::vector<std::string> items;
  for (const Json& item : json) FIRN_TRY(Take(item, items.emplace_back()));
  value = std::move(items);
  return {};
}

Status Take(const Json& json, StandIn& value) {
  StandIn read;
  int64_t since = 0;
  const bool whole = json.is_object() && json.contains("store") && json.contains("picked");
  if (!whole) return Invalid("must be an object with \"store\" and \"picked\"");
  FIRN_TRY(Take(json.at("store"), read.store));
  FIRN_TRY(Take(json.at("picked"), read.picked));
  if (json.contains("since_ms")) FIRN_TRY(Take(json.at("since_ms"), since));
  if (!IsTagWord(read.store) || read.picked < 0 || since < 0)
    return Invalid("has a member that is out of range");
  read.since = WallMs(since);
  value = std::move(read);
  return {};
}

Status Take(const Json& json, Period& value) {
  const auto named = json.is_string() ? PeriodNamed(json.text()) : std::nullopt;
  if (!named) return Invalid("must be day, month or year");
  value = *named;
  return {};
}

template <typename T>
void Put(std::string_view key, const T& value, Json& json) {
  json[key] = value;
}
void Put(std::string_view key, const std::string& value, Json& json) {
  if (!value.empty()) json[key] = value;
}
void Put(std::string_view key, const std::optional<int64_t>& value, Json& json) {
  if (value) json[key] = *value;
}
void Put(std::string_view key, const Period& value, Json& json) { json[key] = PeriodName(value); }
void Put(std::string_view key, const TagBuffer& value, Json& json) {
  json[key] = BufferName(value);
}
// The default is not written, so that nodes of earlier versions keep their text.
void Put(std::string_view key, const StoreAway& value, Json& json) {
  if (value == StoreAway::kLedger) json[key] = "ledger";
}

void PutStandIn(const StandIn& value, Json& json) {
  if (value.store.empty()) return;
  Json member{{"store", value.store}, {"picked", value.picked}};
  if (value.since != WallMs()) member["since_ms"] = value.since.ms();
  json[kStandIn] = std::move(member);
}

// --- reading -------------------------------------------------------------------------------------

// Reads the fields of one object and collects the faults.
class Reader {
 public:
  explicit Reader(std::string_view name) { node_.tag.name = name; }

  void Member(const std::string& key, const Json& value);
  Result<TagNode> Finish();

 private:
  void Check(std::string_view key, const Status& status) {
    if (!status.ok()) faults_.Add(std::string(key) + ": " + status.message());
  }

  TagNode node_;
  Json others_ = Json::object();
  bool has_high_ = false;
  Faults faults_;
};

void Reader::Member(const std::string& key, const Json& value) {
  TagDefinition& tag = node_.tag;
  if (const TagField* field = FindTagField(key)) {
    Check(key, std::visit([&](auto member) { return Take(value, tag.*member); }, field->member));
  } else if (key == kHigh) {
    has_high_ = true;
    Check(key, Take(value, tag.high));
  } else if (key == kReturned) {
    Check(key, Take(value, node_.returned));
  } else if (key == kStandIn) {
    Check(key, Take(value, node_.stand_in));
  } else if (key == kDeleted) {
    Check(key, Take(value, node_.deleted));
  } else if (IsOptionKey(key) && value.is_string()) {
    tag.options[key] = value.text();
  } else {
    others_[key] = value;
  }
}

Result<TagNode> Reader::Finish() {
  if (!has_high_) faults_.Add("high: missing");
  if (node_.returned < 0) faults_.Add("returned: negative");
  for (const TagFault& fault : FaultsOf(node_.tag)) faults_.Add(fault.field + ": " + fault.what);
  if (const Status status = std::move(faults_).ToStatus(); !status.ok()) {
    return Corrupt(status.message());
  }
  // An earlier version, which does not know the member, may have enabled the tag.
  if (node_.tag.high > 0) node_.deleted = false;
  if (!others_.empty()) node_.others = JsonText(others_);
  return std::move(node_);
}

// Adds the unknown members that a reader kept, except members that the node now has.
Status PutOthers(const std::string& others, Json& json) {
  if (others.empty()) return {};
  const Result<Json> kept = ParseJson(others, kTagNodeBytesMax);
  if (!kept.ok())
    return Invalid("cannot parse the members of a later version: " + kept.status().message());
  for (const auto& [key, value] : kept->members()) {
    if (!json.contains(key)) json[key] = value;
  }
  return {};
}

std::string Shown(std::string_view name) {
  return "tag \"" + (IsPrintableUtf8(name) ? std::string(name) : EncodeTagName(name)) + "\"";
}

}  // namespace

std::string TagPath(std::string_view name) {
  return std::string(kTagsPath) + "/" + EncodeTagName(name);
}

Result<TagNode> ReadTagNode(std::string_view name, std::string_view data) {
  Result<Json> json = ParseJson(data, kTagNodeBytesMax);
  if (!json.ok()) return json.status().WithContext("its node");
  Reader reader(name);
  for (const auto& [key, value] : json->members()) reader.Member(key, value);
  Result<TagNode> node = reader.Finish();
  if (!node.ok()) return node.status().WithContext("its node");
  return node;
}

Result<std::string> WriteTagNode(const TagNode& node) {
  FIRN_TRY(CheckTag(node.tag));
  if (node.returned < 0)
    return Invalid(Shown(node.tag.name) + " has a negative number of returned numbers");
  Json json = Json::object();
  for (const TagField& field : TagFields()) {
    if (!Concerns(field, node.tag)) continue;
    std::visit([&](auto member) { Put(field.key, node.tag.*member, json); }, field.member);
  }
  for (const auto& [key, value] : node.tag.options) json[key] = value;
  json[kHigh] = node.tag.high;
  if (node.returned > 0) json[kReturned] = node.returned;
  PutStandIn(node.stand_in, json);
  if (node.deleted) json[kDeleted] = true;
  FIRN_TRY(PutOthers(node.others, json));
  std::string data = JsonText(json);
  if (data.size() > kTagNodeBytesMax) return Invalid(Shown(node.tag.name) + " is too large");
  return data;
}

}  // namespace firn
