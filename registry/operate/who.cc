#include "registry/operate/who.h"

#include <utility>

#include "common/base/cat.h"
#include "common/id/layout.h"
#include "common/id/rack_split.h"
#include "common/time/civil_time.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/records.h"
#include "registry/cluster/reserved.h"

namespace firn {
namespace {

// The current and past holders of a slot.
struct SlotStory {
  std::optional<SlotRecord> record;
  std::optional<PastHolder> recorded;  // the holding in the record
  PastHolders past;
  std::string trouble;  // why the story is incomplete
};

Result<SlotStory> ReadStory(BlockingCoordinator& registry, Slot slot, const Nonce& era) {
  SlotStory story;
  const std::vector<Result<Node>> nodes = registry.ReadAll({SlotPath(slot), PastPath(slot)});
  for (const Result<Node>& node : nodes) {
    if (!node.ok() && node.code() != Code::kNotFound) return node.status();
  }
  if (nodes[0].ok()) {
    Result<SlotRecord> record = ParseSlotRecord(nodes[0]->data);
    if (record.ok()) {
      story.recorded = HolderIn(*record, era);
      story.record = std::move(*record);
    } else {
      story.trouble = record.status().message();
    }
  } else {
    story.trouble = "the slot has no record";
  }
  if (!nodes[1].ok()) return story;
  Result<PastHolders> past = PastHolders::Parse(nodes[1]->data);
  if (past.ok()) {
    story.past = std::move(*past);
  } else {
    story.trouble = past.status().message();
  }
  return story;
}

// Claims use whole ticks only, so the id's whole tick lies within one of them.
bool Covers(const PastHolder& holder, WallMs tick, Milliseconds length) {
  return holder.first <= tick && tick + length <= holder.end;
}

std::string BeforeALoss(const std::string& owner) {
  return "unknown: " + owner +
         " held that machine id before, but the registry then lost data and was restored";
}

// `floor` is that of the last restore. Up to it, earlier claims may have been renewed by writes
// that the registry has lost.
std::string WhyUnknown(const SlotStory& story, WallMs tick, WallMs floor) {
  std::vector<PastHolder> all = story.past.holders();
  if (story.recorded) all.push_back(*story.recorded);
  for (const PastHolder& holder : all) {
    if (tick < holder.end || tick >= holder.perhaps) continue;
    return BeforeALoss(holder.owner);
  }
  if (!story.trouble.empty()) return "unknown: " + story.trouble;
  if (!story.record.has_value() || story.record->never_used()) {
    return "unknown: no server of this cluster has ever claimed that machine id";
  }
  if (tick >= story.record->bound) {
    const bool held = !story.record->nonce.zero() && story.record->since < floor;
    if (held && tick < floor) return BeforeALoss(story.record->owner);
    return "no process: that time has not been granted yet";
  }
  const std::vector<PastHolder>& holders = story.past.holders();
  const WallMs from = holders.empty() ? story.record->since : holders.front().first;
  if (tick < from) return "unknown: the recorded holders of that machine id begin later";
  return "no process: the machine id was not held at that time";
}

// Whether the record of a holder at that tick may have been lost.
bool MayBeLost(const SlotStory& story, WallMs tick) {
  if (!story.record.has_value() || story.record->never_used()) return true;
  if (story.record->owner == kRestoredOwner) return true;
  const std::vector<PastHolder>& holders = story.past.holders();
  return tick < (holders.empty() ? story.record->since : holders.front().first);
}

Issuers Judge(Explanation id, Slot slot, const SlotStory& story, Milliseconds tick_length,
              WallMs floor) {
  Issuers found{.id = std::move(id), .slot = slot, .holders = {}, .unknown = {}};
  const WallMs tick = found.id.time;
  for (const PastHolder& holder : story.past.holders()) {
    if (Covers(holder, tick, tick_length)) found.holders.push_back(holder);
  }
  if (story.recorded && Covers(*story.recorded, tick, tick_length)) {
    found.holders.push_back(*story.recorded);
    found.present = !story.record->nonce.zero();
  }
  if (found.holders.empty()) found.unknown = WhyUnknown(story, tick, floor);
  return found;
}

}  // namespace

Result<std::vector<Issuers>> FindIssuers(BlockingCoordinator& registry,
                                         const std::vector<int64_t>& ids) {
  FIRN_ASSIGN(const MetaAsRead meta, ReadMeta(registry));
  FIRN_ASSIGN(const Layout layout, Layout::Parse(meta.meta.layout));
  FIRN_ASSIGN(const RackSplit split, RackSplit::Make(layout, meta.meta.rack_bits));
  WallMs began;
  if (meta.meta.floor > WallMs()) {
    const Result<Node> era = registry.Read(EraPath(meta.meta.era));
    if (era.ok()) began = era->stat.modified;  // the node is never set
  }
  std::vector<Issuers> found;
  for (const int64_t id : ids) {
    Result<Explanation> explained = Explain(id, layout, split);
    if (!explained.ok()) return explained.status().WithContext(std::to_string(id));
    const Slot slot{.rack = explained->rack, .worker = explained->worker};
    FIRN_ASSIGN(const SlotStory story, ReadStory(registry, slot, meta.meta.era));
    found.push_back(
        Judge(std::move(*explained), slot, story, Milliseconds(layout.tick_ms()), meta.meta.floor));
    Issuers& last = found.back();
    if (began == WallMs() || !last.holders.empty() || !MayBeLost(story, last.id.time)) continue;
    last.unknown = Cat("unknown: the records of machine ids begin at ", FormatRfc3339(began),
                       ", when the cluster was created or restored");
  }
  return found;
}

}  // namespace firn
