#include "tests/sim/segment/segment_operator.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "common/tag/tag_diff.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "tests/sim/segment/restore_judge.h"

namespace firn {
namespace {

TagDefinition TagOf(const std::string& name, const std::string& store, int64_t step,
                    TagBuffer buffer) {
  TagDefinition tag{.name = name, .strategy = "segment"};
  tag.store = store;
  tag.step = step;
  tag.step_max = step * 8;
  tag.buffer = buffer;
  return tag;
}

// Sets whether the tag uses the registry's ledger while its store is unreachable. Only tags of a
// database can.
void LetStandIn(TagDefinition& tag, bool stands_in) {
  const bool may = tag.store != "registry" && tag.buffer == TagBuffer::kDouble;
  tag.when_store_is_away = may && stands_in ? StoreAway::kLedger : StoreAway::kRefuse;
}

// A store that no server has configured.
constexpr char kNowhere[] = "nowhere";

// Returns whether no server can serve it.
bool IsUnservable(const TagDefinition& tag) {
  return tag.store == kNowhere || (tag.store == "database" && tag.buffer == TagBuffer::kNone);
}

void Correct(TagDefinition& tag) {
  if (tag.store == kNowhere) {
    tag.store = "registry";
    tag.when_store_is_away = StoreAway::kRefuse;
  } else if (tag.store == "database") {
    tag.buffer = TagBuffer::kDouble;
  }
}

// Zones whose clocks change at midnight, before it or after it, twice a year or never.
constexpr std::array kZones = {"UTC",
                               "Europe/Berlin",
                               "America/Sao_Paulo",
                               "Asia/Beirut",
                               "Africa/Cairo",
                               "America/Havana",
                               "Asia/Kathmandu",
                               "America/Asuncion",
                               "Pacific/Auckland",
                               "-04:30"};

void Obfuscate(TagDefinition& tag) {
  tag.plugins = {"obfuscate"};
  tag.obfuscate_width = 19;
  tag.obfuscate_key = "k1";
  tag.obfuscate_check = "c6a13b";
}

}  // namespace

void SegmentOperator::Connect() {
  store_.reset();
  registry_.reset();
  memory_.emplace(shared_.tree);
  registry_.emplace(*memory_, shared_.clock);
  store_.emplace(*registry_);
  Require(registry_->Connect(Milliseconds(1'000)).ok(), "no session");
}

void SegmentOperator::MakeCluster(bool ordered) {
  ordered_ = ordered;
  Connect();
  ClusterMeta meta;
  meta.uuid = kSimUuid;
  meta.era = Nonce::Draw(shared_.dice);
  meta.layout = "firn";
  serves_undefined_ = OneIn(4);
  if (serves_undefined_) {
    const Layout layout = Layout::Firn();
    meta.default_strategy = "snowflake";
    meta.ids_since = layout.epoch() + Milliseconds(int64_t{1} << 28);
    shared_.undefined_from = layout.PackUnchecked(0, layout.TickAt(meta.ids_since), 0);
  }
  if (serves_undefined_) shared_.oracle.Define();
  Require(registry_
              ->Multi({Write::Create(kMetaPath, FormatMeta(meta), Lifetime::kPersistent),
                       Write::Create(EraPath(meta.era), "", Lifetime::kPersistent),
                       Write::Create(kClockPath, "", Lifetime::kPersistent)})
              .status.ok(),
          "no root");
  const auto step = static_cast<int64_t>(1 + shared_.dice.Below(40));
  Create(TagOf("reg", "registry", step, TagBuffer::kDouble));
  TagDefinition data = TagOf("data", "database", step, TagBuffer::kDouble);
  LetStandIn(data, OneIn(2));
  Create(std::move(data));
  Create(TagOf("raw", "registry", step, TagBuffer::kNone));
  const bool keeps = IsOfSource(shared_.mutant);
  if (ordered_) Create(TagOf("order", keeps ? "keeping" : "registry", step, TagBuffer::kOwner));
  for (int i = 0; ordered_ && i < 4; ++i) shared_.names.emplace_back("order");  // more calls
  Create(DatedTag("day"));
  TagDefinition first{.name = "default", .strategy = "snowflake"};
  if (!serves_undefined_ && OneIn(2)) Obfuscate(first);
  first.disabled = OneIn(4);
  Create(std::move(first));
  shared_.names.emplace_back("never");
}

std::string SegmentOperator::AnyZone() { return kZones.at(shared_.dice.Below(kZones.size())); }

// Returns a dated tag with few digits, so that its periods are used up.
TagDefinition SegmentOperator::DatedTag(const std::string& name) {
  TagDefinition tag{.name = name, .strategy = "dated"};
  tag.digits = OneIn(3) ? 6 : OneIn(2) ? 4 : 3;
  tag.step = static_cast<int64_t>(1 + shared_.dice.Below(40));
  tag.step_max = tag.step * 8;
  tag.zone = AnyZone();
  if (OneIn(5)) tag.period = OneIn(2) ? Period::kMonth : Period::kYear;
  if (OneIn(3) && !serves_undefined_) tag.text = "D{period}-{count}";
  if (OneIn(3)) tag.period_grace = 60;
  return tag;
}

// Records the definition before it is written, because numbers may be issued as soon as it is.
void SegmentOperator::Define(const TagDefinition& tag) {
  shared_.oracle.Define(tag.name);
  shared_.periods.Define(tag);
}

WallMs SegmentOperator::BeforeMidnight() {
  const WallMs now = shared_.clock.Wall();
  WallMs next = WallMs(INT64_MAX);
  for (const auto& [name, tag] : last_) {
    const auto numbers = tag.Dated();
    if (!numbers || tag.period != Period::kDay) continue;
    const TimeZone zone = TimeZone::Load(tag.zone).value();
    next = std::min(next, numbers->EndOf(numbers->PeriodAt(now, zone), now, zone));
  }
  if (next == WallMs(INT64_MAX)) return now;
  return next - Milliseconds(static_cast<int64_t>(shared_.dice.Below(400)));
}

void SegmentOperator::Create(TagDefinition tag) {
  // Also before the write, because calls may arrive as soon as it is done.
  if (std::find(shared_.names.begin(), shared_.names.end(), tag.name) == shared_.names.end()) {
    shared_.names.push_back(tag.name);
  }
  Define(tag);
  const Status made = store_->Create(tag);
  Require(made.ok() || made.code() == Code::kConflict, "no tag");
  if (!made.ok()) return;
  shared_.trace("created tag " + tag.name);
  newest_ = tag.name;
  last_[tag.name] = std::move(tag);
}

// Creates a tag, sometimes with the name of a deleted tag and another form.
void SegmentOperator::CreateFresh() {
  const bool again = !deleted_.empty() && !OneIn(3);
  const std::string name = again ? std::exchange(deleted_, "") : "fresh" + std::to_string(fresh_++);
  if (const Result<StoredTag> back = store_->Read(name); back.ok()) {  // after a rollback
    last_[name] = back->tag();
    return;
  }
  TagDefinition tag = TagOf(name, OneIn(3) ? "database" : "registry",
                            static_cast<int64_t>(1 + shared_.dice.Below(40)), TagBuffer::kDouble);
  if (ordered_ && OneIn(3)) tag.buffer = TagBuffer::kOwner;
  if (OneIn(4)) tag = DatedTag(name);
  tag.start = 1;
  LetStandIn(tag, OneIn(2));
  if (OneIn(2)) EditForm(tag);
  Create(std::move(tag));
}

void SegmentOperator::Delete(const std::string& name) {
  const bool anyhow = shared_.mutant == SegmentMutant::kDeleteUsed;
  if (anyhow) DeleteAnyhow(name);
  if (!anyhow && !store_->Delete(name).ok()) return;
  shared_.trace("took away " + name);
  shared_.oracle.Delete(name);
  shared_.periods.Delete(name);
  ++shared_.deletions;
  taken_away_[name] = last_.at(name);
  last_.erase(name);
  deleted_ = name;
}

// Deletes a tag, even if its numbers were issued.
void SegmentOperator::DeleteAnyhow(const std::string& name) {
  const Result<StoredTag> stored = store_->Read(name);
  if (!stored.ok()) return;
  TagNode node = stored->node;
  node.tag.high = node.returned = 0;
  node.tag.disabled = node.deleted = true;
  registry_->Multi({Write::Set(TagPath(name), *WriteTagNode(node), Write::kAnyVersion)});
}

const TagDefinition& SegmentOperator::AnyTag() {
  if (last_.contains(newest_) && OneIn(2)) return last_.at(newest_);
  return std::next(last_.begin(), static_cast<ptrdiff_t>(shared_.dice.Below(last_.size())))->second;
}

void SegmentOperator::EditForm(TagDefinition& tag) {
  if (serves_undefined_) return;  // ids that were served under this name keep their form
  if (tag.strategy == "dated") {
    tag.text = tag.text.empty() ? "n{period}.{count}" : "";
  } else if (OneIn(2) && tag.strategy == "segment") {
    tag.text = tag.text.empty() ? "n{id:03}" : "";
  } else if (tag.HasPlugin("obfuscate")) {
    tag.plugins.clear();
    tag.obfuscate_width = 0;
    tag.obfuscate_key = tag.obfuscate_check = "";
  } else if (!IsRisingTag(tag.name)) {
    Obfuscate(tag);
  }
}

void SegmentOperator::EditRest(TagDefinition& tag) {
  if (OneIn(3)) {
    tag.disabled = !tag.disabled;
  } else if (tag.strategy == "dated" && OneIn(2)) {
    tag.zone = AnyZone();
  } else if (ordered_ && tag.name == "raw" && OneIn(2)) {
    tag.buffer = TagBuffer::kOwner;
  } else if (IsUnservable(tag) && OneIn(2)) {
    Correct(tag);
  } else if (tag.strategy == "segment" && !IsRisingTag(tag.name) && OneIn(4)) {
    EditIntoUnservable(tag);
  } else if (tag.HasLedger()) {
    tag.step = static_cast<int64_t>(1 + shared_.dice.Below(40));
    tag.step_max = tag.step * 8;
    if (OneIn(4)) tag.start = std::max<int64_t>(1, shared_.oracle.Highest(tag.name) + 1);
    if (OneIn(4) && !IsRisingTag(tag.name)) tag.store = OneIn(2) ? "database" : "registry";
    LetStandIn(tag, OneIn(2));
  }
}

// Edits a tag as with --force. Servers keep the earlier definition only if nothing but ranges
// changed.
void SegmentOperator::EditIntoUnservable(TagDefinition& tag) {
  if (tag.store == "database" && !OneIn(3)) {
    if (OneIn(4)) tag.when_store_is_away = StoreAway::kRefuse;
    if (tag.when_store_is_away == StoreAway::kRefuse) tag.buffer = TagBuffer::kNone;
  } else {
    tag.store = kNowhere;
  }
  if (OneIn(2)) tag.step_max = 8 * (tag.step = static_cast<int64_t>(1 + shared_.dice.Below(40)));
  if (OneIn(4)) tag.start = std::max<int64_t>(1, shared_.oracle.Highest(tag.name) + 1);
}

// In a mutant's world, makes more of the edits that expose the mutant. Returns whether it made one.
bool SegmentOperator::EditForMutant() {
  const std::string name = newest_;
  const bool known = last_.contains(name);
  switch (shared_.mutant) {
    case SegmentMutant::kEditStopsTag:
      EditData();
      return true;
    case SegmentMutant::kDeleteUsed:
      if (!deleted_.empty())
        CreateFresh();
      else if (known && name.starts_with("fresh"))
        Delete(name);
      return true;
    case SegmentMutant::kStartUnheeded:
      if (known && last_.at(name).HasLedger()) {
        TagDefinition after = last_.at(name);
        after.start = std::max<int64_t>(1, shared_.oracle.Highest(name) + 1);
        Change(name, after);
      }
      return true;
    default:
      return false;
  }
}

void SegmentOperator::EditData() {
  const auto data = last_.find("data");
  if (data == last_.end()) return;
  TagDefinition after = data->second;
  IsUnservable(after) ? Correct(after) : EditIntoUnservable(after);
  Change("data", after);
}

bool SegmentOperator::Edit(bool may_delete) {
  Connect();
  if (shared_.mutant != SegmentMutant::kNone && OneIn(2) && EditForMutant()) return true;
  const TagDefinition& tag = AnyTag();
  const uint64_t what = shared_.dice.Below(20);
  if (what == 0 && may_delete) {
    const WriteOutcome gone =
        registry_->Multi({Write::Erase(TagPath(tag.name), Write::kAnyVersion)});
    shared_.trace("deleted " + tag.name);
    return !gone.status.ok();
  }
  if (what < 6 && last_.size() < kTagsMax) return CreateFresh(), true;
  if (what == 6 && tag.name.starts_with("fresh")) return Delete(std::string(tag.name)), true;
  TagDefinition after = tag;
  what < 13 ? EditForm(after) : EditRest(after);
  Change(tag.name, after);
  return true;
}

// Writes an edit. A refused edit, or an edit of a frozen cluster, changes nothing.
void SegmentOperator::Change(const std::string& name, const TagDefinition& after) {
  const Result<StoredTag> stored = store_->Read(name);
  if (stored.ok() && CheckEdit(stored->tag(), WithLedgerOf(stored->tag(), after)).ok())
    Define(after);
  if (!stored.ok() || !store_->Edit(*stored, after).ok()) return;
  shared_.trace("edited tag " + after.name);
  last_[name] = after;
}

Result<Backup> SegmentOperator::ReadDocument() {
  Connect();
  FIRN_ASSIGN(const Backup backup, ReadBackup(*registry_, "/firn/sim", shared_.clock.Wall()));
  return ParseBackup(FormatBackup(backup));
}

bool SegmentOperator::TakeDocument() {
  const Result<Backup> document = ReadDocument();
  if (!document.ok()) {
    shared_.trace("no backup: " + document.status().message());
    return false;
  }
  document_ = *document;
  return true;
}

void SegmentOperator::TakeOlderDocument() {
  const Result<Backup> document = ReadDocument();
  if (!document.ok()) return;
  older_.push_back(*document);
  if (older_.size() > kOlderMax) older_.erase(older_.begin());
}

bool SegmentOperator::Restore(bool document, bool completely) {
  shared_.periods.NoteClock();
  shared_.registry_clock.SetRight();  // as the command requires
  shared_.periods.NoteClock();
  Connect();
  if (!before_) {
    before_ = store_->ReadAll().value();
    issued_.clear();
    for (const auto& [name, tag] : last_)
      if (shared_.oracle.Highest(name) > 0) issued_.insert(name);
  }
  const SegmentRestorer::Known known{
      last_, taken_away_, document ? std::optional(document_) : std::nullopt, older_, issued_};
  if (!restorer_.Restore(known, completely)) return false;
  Connect();
  Adopt(known);
  return before_.reset(), true;
}

void SegmentOperator::Adopt(const SegmentRestorer::Known& known) {
  RestoreSources from{last_,   taken_away_,        known.older, std::move(*before_),
                      issued_, restorer_.defined()};
  if (known.document) from.documents.push_back(*known.document);
  const TagListing listing = store_->ReadAll().value();
  // Other mutants must be caught by their own violations.
  if (shared_.mutant == SegmentMutant::kNone || shared_.mutant == SegmentMutant::kTagForgotten)
    CheckRestored(listing, from, shared_.oracle);
  std::map<std::string, TagDefinition> restored;
  for (const StoredTag& stored : listing.tags) {
    const std::string& name = stored.tag().name;
    if (!last_.contains(name) && !taken_away_.contains(name)) continue;
    Define(stored.tag());
    restored[name] = stored.tag();
    if (!stored.tag().Dated()) shared_.periods.Delete(name);
  }
  last_ = std::move(restored);
}

void SegmentOperator::CorrectAll() {
  Connect();
  for (auto& [name, tag] : last_) {
    const Result<StoredTag> stored = store_->Read(name);
    if (!stored.ok()) continue;
    TagDefinition after = stored->tag();
    after.disabled = false;
    if (IsUnservable(after)) Correct(after);
    if (after == stored->tag() || !store_->Edit(*stored, after).ok()) continue;
    tag.disabled = false;
    if (IsUnservable(tag)) Correct(tag);
  }
}

}  // namespace firn
