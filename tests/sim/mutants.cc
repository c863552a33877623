#include "tests/sim/mutants.h"

#include <utility>

#include "registry/records.h"
#include "registry/slot.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

// The one place of a multi that sets a slot's record: check(meta), set(record), ...
constexpr size_t kRecord = 1;

bool SetsASlot(const std::vector<Write>& writes) {
  return writes.size() > kRecord && writes[kRecord].kind == Write::Kind::kSet;
}

// A claim changes the nonce, or sets the one that every claim of a stuck process has again.
bool Claims(const MemoryTree& tree, const std::vector<Write>& writes) {
  if (!SetsASlot(writes)) return false;
  const auto before = tree.Peek(writes[kRecord].path);
  return before.has_value() &&
         ParseSlotRecord(before->data)->nonce != ParseSlotRecord(writes[kRecord].data)->nonce;
}

// What an honest answer to `version` being set would have looked like.
void PretendVersion(WriteOutcome& outcome, int64_t version) {
  if (outcome.status.ok()) outcome.stats.at(kRecord).version = version + 1;
}

}  // namespace

std::optional<Mutant> ParseMutant(std::string_view name) {
  if (name == "none") return Mutant::kNone;
  for (const auto& [mutant, known] : kMutants) {
    if (known == name) return mutant;
  }
  return std::nullopt;
}

void SeamCoordinator::Multi(std::vector<Write> writes, WriteDone done) {
  const bool dies = (dies_in_ > 0 && --dies_in_ == 0) || (dies_at_claim_ && Claims(tree_, writes));
  if (dies && dies_before_) throw ProcessDies();
  Send(std::move(writes), std::move(done));
  if (dies) throw ProcessDies();
}

void SeamCoordinator::Send(std::vector<Write> writes, WriteDone done) {
  if (mutant_ == Mutant::kNone || !SetsASlot(writes)) {
    return inner_.Multi(std::move(writes), std::move(done));
  }
  const int64_t version = writes[kRecord].version;
  switch (mutant_) {
    case Mutant::kNoVersionCheck:
      writes[kRecord].version = Write::kAnyVersion;
      return inner_.Multi(std::move(writes), [done, version](WriteOutcome outcome) {
        PretendVersion(outcome, version);
        done(std::move(outcome));
      });
    case Mutant::kTimeoutIsSuccess: {
      const auto node = tree_.Peek(writes[kRecord].path);
      const NodeStat pretended{version + 1, node.has_value() ? node->stat.created_zxid : 0, {}, 0};
      return inner_.Multi(std::move(writes), [done, pretended](WriteOutcome outcome) {
        if (outcome.status.code() == Code::kUnknown) {
          outcome = {Status(), -1, {NodeStat(), pretended, NodeStat(), NodeStat()}};
        }
        done(std::move(outcome));
      });
    }
    case Mutant::kSetAgainOverForeign: {
      std::vector<Write> again = writes;
      return inner_.Multi(std::move(writes), [this, again, done, version](WriteOutcome outcome) {
        const auto node = tree_.Peek(again[kRecord].path);
        if (outcome.failed != static_cast<int>(kRecord) || !node.has_value()) {
          return done(std::move(outcome));
        }
        std::vector<Write> newer = again;
        newer[kRecord].version = node->stat.version;
        inner_.Multi(std::move(newer), [done, version](WriteOutcome second) {
          PretendVersion(second, version);
          done(std::move(second));
        });
      });
    }
    case Mutant::kFloorWithoutMetaCheck:
      // A check of the slot itself keeps the indices as they are.
      writes[0] = Write::Check(writes[kRecord].path, version);
      return inner_.Multi(std::move(writes), [done](WriteOutcome outcome) {
        if (outcome.failed == 0) outcome.failed = static_cast<int>(kRecord);
        done(std::move(outcome));
      });
    default:
      return inner_.Multi(std::move(writes), std::move(done));
  }
}

}  // namespace firn
