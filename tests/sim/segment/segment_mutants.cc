#include "tests/sim/segment/segment_mutants.h"

#include <memory>
#include <utility>

#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/cluster/tag_node.h"
#include "registry/cluster/tag_store.h"
#include "registry/owners/owner_records.h"

namespace firn {
namespace {

// Returns an answer as if the multi had been applied to the existing node: version V + 1.
WriteOutcome AsIfDone(const MemoryTree& tree, const std::vector<Write>& writes) {
  WriteOutcome told;
  for (const Write& write : writes) {
    NodeStat& stat = told.stats.emplace_back();
    const std::optional<Node> node = tree.Peek(write.path);
    if (write.kind != Write::Kind::kSet || !node) continue;
    stat = node->stat;
    stat.version = write.version + 1;
  }
  return told;
}

bool LowersTheLedger(const MemoryTree& tree, const Write& set) {
  const std::optional<Node> node = tree.Peek(set.path);
  if (!node) return false;
  const Result<TagNode> there = ReadTagNode("t", node->data);
  const Result<TagNode> wanted = ReadTagNode("t", set.data);
  return there.ok() && wanted.ok() && wanted->returned > there->returned;
}

bool IsOfStandIn(const Write& set) {
  const Result<TagNode> wanted = ReadTagNode("t", set.data);
  return wanted.ok() && wanted->stand_in.since != WallMs();
}

// Returns the definition of `form` with the ledger of `ledger`; `ledger` if one is not a tag.
std::string Mixed(const std::string& form, const std::string& ledger) {
  Result<TagNode> mixed = ReadTagNode("t", form);
  const Result<TagNode> moved = ReadTagNode("t", ledger);
  if (!mixed.ok() || !moved.ok()) return ledger;
  mixed->tag.high = moved->tag.high;
  mixed->returned = moved->returned;
  mixed->stand_in = moved->stand_in;
  return WriteTagNode(*mixed).value_or(ledger);
}

std::string WithoutLimit(const std::string& root) {
  Result<ClusterMeta> meta = ParseMeta(root);
  if (!meta.ok()) return root;
  meta->ids_since = kRecordTimeMax - Milliseconds(1);
  return FormatMeta(*meta);
}

std::string WithShortWindow(const std::string& beat) {
  Result<Beat> shortened = ParseBeat(beat);
  if (!shortened.ok()) return beat;
  shortened->window = Beat::kWindowMin;
  return FormatBeat(*shortened);
}

}  // namespace

Write* TagSet(std::vector<Write>& writes) {
  for (Write& write : writes) {
    const bool tag = write.path.starts_with(std::string(kTagsPath) + "/");
    if (tag && write.kind == Write::Kind::kSet) return &write;
  }
  return nullptr;
}

// Distinguishes readers by the watch: ledgers read without one, followers with one.
void LedgerSeam::Read(const std::string& path, ReadDone done, Changed changed) {
  if (path == kMetaPath && mutant_ == SegmentMutant::kLimitUnheeded) {
    const auto lie = [done = std::move(done)](Result<Node> node) {
      if (node.ok()) node->data = WithoutLimit(node->data);
      done(std::move(node));
    };
    return inner().Read(path, lie, std::move(changed));
  }
  if (mutant_ == SegmentMutant::kTakeoverEarly && path.starts_with(std::string(kBeatsPath) + "/")) {
    const auto lie = [done = std::move(done)](Result<Node> node) {
      if (node.ok()) node->data = WithShortWindow(node->data);
      done(std::move(node));
    };
    return inner().Read(path, lie, std::move(changed));
  }
  const bool tag = path.starts_with(std::string(kTagsPath) + "/");
  if (!tag || mutant_ != SegmentMutant::kOldFormServed) {
    return inner().Read(path, std::move(done), std::move(changed));
  }
  const bool watches = changed != nullptr;
  inner().Read(
      path,
      [this, path, watches, done = std::move(done)](Result<Node> node) {
        if (node.ok() && watches) served_[path] = node->data;
        const auto served = served_.find(path);
        if (node.ok() && !watches && served != served_.end()) {
          node->data = Mixed(served->second, node->data);
        }
        done(std::move(node));
      },
      std::move(changed));
}

// Recognises the write of the clock node, which is set for the time in its answer.
void LedgerSeam::TellTime(WriteDone& done) {
  const bool leads = inner().session() % 2 == 0;
  const std::optional<Node> before = tree_.Peek(kClockPath);
  done = [leads, before, mutant = mutant_, done = std::move(done)](WriteOutcome told) {
    if (told.status.ok() && mutant == SegmentMutant::kClockOfServer) {
      const Milliseconds off = std::chrono::hours(leads ? 2 : -2);
      told.stats.front().modified += off;
    } else if (told.status.ok() && before) {
      told.stats.front().modified = before->stat.modified;
    }
    done(std::move(told));
  };
}

void LedgerSeam::Multi(std::vector<Write> writes, WriteDone done) {
  const bool lies =
      mutant_ == SegmentMutant::kClockOfServer || mutant_ == SegmentMutant::kClockOfLastWrite;
  if (lies && writes.front().path == kClockPath) TellTime(done);
  Write* const set = TagSet(writes);
  if (set == nullptr) return inner().Multi(std::move(writes), std::move(done));
  if (const auto there = tree_.Peek(set->path); there && mutant_ == SegmentMutant::kOldFormServed) {
    set->data = Mixed(there->data, set->data);
  }
  if (mutant_ == SegmentMutant::kStandInUnwritten && IsOfStandIn(*set)) {
    inner().Sync(set->path, [told = AsIfDone(tree_, writes),
                             done = std::move(done)](const Status&) { done(told); });
    return;
  }
  const auto asked = std::make_shared<std::vector<Write>>(writes);
  const bool blind = mutant_ == SegmentMutant::kSetOverForeign ||
                     (mutant_ == SegmentMutant::kTornGiveBack && LowersTheLedger(tree_, *set));
  if (blind) set->version = Write::kAnyVersion;
  inner().Multi(std::move(writes), [this, asked, blind, done = std::move(done)](WriteOutcome told) {
    const bool unknown = told.status.code() == Code::kUnknown;
    const bool lie =
        (blind && told.status.ok()) || (unknown && mutant_ == SegmentMutant::kUnknownKept);
    done(lie ? AsIfDone(tree_, *asked) : std::move(told));
  });
}

void KeepingSource::Take(const TagDefinition& tag, int64_t size, TakeDone done) {
  if (const Range kept = std::exchange(kept_[tag.name], {}); !kept.empty()) return done(kept);
  if (mutant_ != SegmentMutant::kRangesReserved) return source_.Take(tag, size, std::move(done));
  source_.Take(tag, 2 * size, [this, name = tag.name, done = std::move(done)](Result<Range> range) {
    if (range.ok() && range->size() > 1) {
      const int64_t middle = range->begin + range->size() / 2;
      kept_[name] = {middle, std::exchange(range->end, middle)};
    }
    done(std::move(range));
  });
}

void KeepingSource::GiveBack(const TagDefinition& tag, Range tail, GiveBackDone done) {
  if (mutant_ == SegmentMutant::kRangesReserved) return done(Conflict("a range is reserved"));
  if (mutant_ == SegmentMutant::kTailsKept) {
    kept_[tag.name] = tail;
    return done({});
  }
  source_.GiveBack(tag, tail, [this, name = tag.name, tail, done = std::move(done)](Status status) {
    if (status.ok()) kept_[name] = tail;
    done(std::move(status));
  });
}

}  // namespace firn
