#include "registry/claim/survey.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/printed_command.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_options.h"
#include "registry/claim/lease_share.h"
#include "registry/cluster/reserved.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

// Parses a node name as a worker of the rack: digits without a leading zero.
std::optional<uint32_t> WorkerNamed(const std::string& name, uint32_t workers) {
  const auto worker = ParseIndex<uint32_t>(name);
  return worker.has_value() && *worker < workers ? worker : std::nullopt;
}

// Whether a failure concerns one node only, and not the whole registry.
bool TellsOfNode(Code code) { return code == Code::kNotFound || code == Code::kCorrupt; }

std::string Describe(const SlotRecord& record, const SlotQuery& query) {
  const std::string until = FormatRfc3339(record.bound);
  const std::string holder = Cat(record.owner, " (", record.host, ", process ", record.pid, ")");
  switch (StateOfSlot(record, query)) {
    case SlotState::kAhead:
      if (record.nonce.zero()) return "was released by " + holder + " and is free at " + until;
      return "is held by " + holder + " until " + until + ", or longer if it is renewed";
    case SlotState::kPassed:
      return "is still live under " + holder + ", whose bound passed at " + until;
    case SlotState::kPoison:
      return "has a bound more than a day ahead (" + until + "); firn restore retires it";
    case SlotState::kRetired:
      if (IsReserved(record)) return "is " + record.owner;
      return "was permanently retired by firn restore";
    case SlotState::kNeverUsed:
      break;
  }
  return "is free";
}

// Shuffles the first `count` items.
template <typename Item>
void ShuffleFirst(std::vector<Item>& items, size_t count, Entropy& entropy) {
  for (size_t i = std::min(count, items.size()); i > 1; --i) {
    std::swap(items[i - 1], items[entropy.Below(i)]);
  }
}

}  // namespace

SlotState StateOfSlot(const SlotRecord& record, const SlotQuery& query) {
  if (record.retired) return SlotState::kRetired;
  if (record.never_used()) return SlotState::kNeverUsed;
  const WallMs now = record.owner == query.owner ? std::max(query.now, query.id_time) : query.now;
  if (record.bound <= now) return SlotState::kPassed;
  if (record.bound - now > kPoisonAhead) return SlotState::kPoison;
  const bool released = record.nonce.zero() && record.bound - now <= query.released_ahead;
  return released ? SlotState::kPassed : SlotState::kAhead;
}

std::string WhyNotFree(Slot slot, const Result<Node>& node, const SlotQuery& query) {
  const std::string name = "the requested slot (" + SlotText(slot) + ") ";
  if (node.code() == Code::kNotFound) {
    return Cat(name,
               "has no record because the cluster has fewer workers; choose a lower one, or add "
               "workers with ",
               PrintCommand(PrintedCommand::kRestoreWorkers, {std::to_string(slot.worker + 1)}));
  }
  if (!node.ok()) return name + "cannot be read: " + node.status().message();
  const Result<SlotRecord> record = ParseSlotRecord(node->data);
  if (!record.ok()) return name + "cannot be read: " + record.status().message();
  return name + Describe(*record, query);
}

namespace {

// One survey; a local variable of its task.
class Survey {
 public:
  Survey(AsyncRegistry& registry, Entropy& entropy, const SlotQuery& query)
      : async_registry_(registry), entropy_(entropy), query_(query) {}

  Task<> LookAt(Slot slot);
  Task<> ReadRackSlots();
  bool found() const { return !found_.candidates.empty(); }
  // The requested or hinted slot is free by its record, but its `live` could not be read.
  bool cut_short() const { return unanswered_ && !passed_.empty(); }
  Surveyed Take();

 private:
  // The slots of a rack, in the order of reading.
  struct Parts {
    std::vector<Slot> others{};
    std::vector<Slot> for_leases{};
  };
  Parts Split(const std::vector<std::string>& names);
  Task<> ReadPart(std::vector<Slot> slots);
  void OrderPassed();
  Task<> TakePassed();
  void Keep(Slot slot, const Result<Node>& node);
  void Skip(Slot slot, const Status& why);
  bool Hindered(const SurveyedSlot& slot) const;
  std::string WhyNone() const;

  AsyncRegistry& async_registry_;
  Entropy& entropy_;
  const SlotQuery& query_;
  Surveyed found_;
  size_t slots_ = 0;  // of the rack, that may be taken
  std::vector<SurveyedSlot> passed_;
  std::vector<SurveyedSlot> unused_;  // for a lease only, which prefers used slots
  size_t ahead_ = 0;
  size_t live_ = 0;
  size_t unreadable_ = 0;
  size_t kept_out_ = 0;  // reserved or retired
  bool unanswered_ = false;
};

Task<> Survey::LookAt(Slot slot) {
  const std::string path = SlotPath(slot);
  Result<Node> node = co_await async_registry_.Read(path);
  Keep(slot, node);
  if (query_.worker.has_value()) found_.reason = WhyNotFree(slot, node, query_);
  co_await TakePassed();
}

Task<> Survey::ReadRackSlots() {
  passed_.clear();
  ahead_ = live_ = unreadable_ = kept_out_ = 0;
  found_.alarms.clear();
  const std::string rack = RackPath(query_.rack);
  Result<std::vector<std::string>> names = co_await async_registry_.List(rack);
  if (!names.ok()) {
    found_.reason = Cat("the rack's slots cannot be listed: ", names.status().message());
    co_return;
  }
  const Parts parts = Split(*names);
  slots_ = parts.for_leases.size() + (query_.for_lease ? 0 : parts.others.size());
  if (!query_.for_lease) co_await ReadPart(parts.others);
  if (!found()) co_await ReadPart(parts.for_leases);
  found_.reason = WhyNone();
  found_.none_free = !found() && !unanswered_;
}

Survey::Parts Survey::Split(const std::vector<std::string>& names) {
  std::vector<uint32_t> workers;
  for (const std::string& name : names) {
    const auto worker = WorkerNamed(name, query_.workers);
    if (worker.has_value()) workers.push_back(*worker);
  }
  std::sort(workers.begin(), workers.end());
  const size_t leased = SlotsForLeases(workers.size(), query_.lease_share);
  Parts parts;
  for (size_t i = 0; i < workers.size(); ++i) {
    const bool upper = i >= workers.size() - leased;
    (upper ? parts.for_leases : parts.others).push_back({query_.rack, workers[i]});
  }
  ShuffleFirst(parts.others, parts.others.size(), entropy_);
  ShuffleFirst(parts.for_leases, parts.for_leases.size(), entropy_);
  return parts;
}

Task<> Survey::ReadPart(std::vector<Slot> slots) {
  passed_.clear();
  for (size_t from = 0; from < slots.size() && !found(); from += kSurveyBatch) {
    std::vector<std::string> paths;
    for (size_t i = from; i < std::min(slots.size(), from + kSurveyBatch); ++i) {
      paths.push_back(SlotPath(slots[i]));
    }
    Readings batch = co_await async_registry_.ReadAll(paths);
    for (const auto& [which, node] : batch) Keep(slots[from + which], node);
    if (!query_.for_lease) continue;
    OrderPassed();
    co_await TakePassed();
    passed_.clear();
  }
  if (found()) co_return;
  if (query_.for_lease) {
    found_.candidates = std::move(unused_);
    co_return;
  }
  OrderPassed();
  co_await TakePassed();
}

// Older bounds first, and the older half at random: if all claimants took the oldest first, they
// would compete for the same few.
void Survey::OrderPassed() {
  std::stable_sort(passed_.begin(), passed_.end(),
                   [](const auto& a, const auto& b) { return a.record.bound < b.record.bound; });
  ShuffleFirst(passed_, std::max(kSurveyBatch, passed_.size() / 2), entropy_);
}

// Takes the first slots whose bound has passed and that have no other live holder.
Task<> Survey::TakePassed() {
  for (size_t from = 0; from < passed_.size() && !found(); from += kCandidatesMax) {
    std::vector<std::string> paths;
    const size_t end = std::min(passed_.size(), from + kCandidatesMax);
    for (size_t i = from; i < end; ++i) paths.push_back(LivePath(passed_[i].slot));
    Readings lives = co_await async_registry_.ReadAll(paths);
    for (const auto& [which, node] : lives) {
      passed_[from + which].live = node.ok() || node.code() == Code::kCorrupt;
      unanswered_ |= !node.ok() && !TellsOfNode(node.code());
    }
    if (unanswered_) co_return;
    for (size_t i = from; i < end; ++i) {
      if (Hindered(passed_[i])) {
        ++live_;
      } else {
        found_.candidates.push_back(passed_[i]);
      }
    }
  }
}

void Survey::Keep(Slot slot, const Result<Node>& node) {
  if (!node.ok()) {
    unanswered_ |= !TellsOfNode(node.code());
    ++unreadable_;
    if (node.code() == Code::kCorrupt) Skip(slot, node.status());
    return;
  }
  Result<SlotRecord> record = ParseSlotRecord(node->data);
  if (!record.ok()) {
    ++unreadable_;
    return Skip(slot, record.status());
  }
  if (node->stat.version == kUnguardedVersion) {
    ++unreadable_;
    found_.alarms.push_back(
        Cat(SlotText(slot), " is skipped: ", UnguardedVersionFault("its record")));
    return;
  }
  const SurveyedSlot surveyed{slot, node->stat.version, node->stat.created_zxid, *record, false};
  switch (StateOfSlot(*record, query_)) {
    case SlotState::kNeverUsed: {
      std::vector<SurveyedSlot>& unused = query_.for_lease ? unused_ : found_.candidates;
      if (unused.size() < kCandidatesMax) unused.push_back(surveyed);
      return;
    }
    case SlotState::kPassed:
      passed_.push_back(surveyed);
      return;
    case SlotState::kAhead:
      ++ahead_;
      found_.earliest = std::min(found_.earliest.value_or(record->bound), record->bound);
      return;
    case SlotState::kPoison:
      found_.alarms.push_back(
          Cat(SlotText(slot), " is skipped: its bound is more than a day ahead"));
      return;
    case SlotState::kRetired:
      ++kept_out_;
      return;
  }
}

void Survey::Skip(Slot slot, const Status& why) {
  found_.alarms.push_back(Cat(SlotText(slot), " is skipped: ", why.message()));
}

bool Survey::Hindered(const SurveyedSlot& slot) const {
  return slot.live && slot.record.owner != query_.owner &&
         query_.now - slot.record.bound < kLiveGrace;
}

std::string Survey::WhyNone() const {
  const std::string_view which = query_.for_lease ? " slots for leases" : " slots";
  if (slots_ == 0) return Cat("rack ", query_.rack, " has no", which);
  return Cat("of ", slots_, which, " of rack ", query_.rack, ", ", ahead_,
             " have a bound ahead (held, or left by dead processes), ", live_,
             " are live past their bound, ", kept_out_, " are reserved or retired, ", unreadable_,
             " are unreadable",
             query_.for_lease ? "; request another rack, or repeat the request later" : "");
}

Surveyed Survey::Take() {
  if (unanswered_ && !found()) found_.reason = "the registry does not answer";
  return std::move(found_);
}

}  // namespace

Task<Surveyed> SurveySlots(AsyncRegistry* registry, Entropy* entropy, SlotQuery query) {
  Survey survey(*registry, *entropy, query);
  const bool only_one = query.worker.has_value();
  if (only_one || query.hinted.has_value()) {
    const Slot first = only_one ? Slot{query.rack, *query.worker} : *query.hinted;
    co_await survey.LookAt(first);
    if (only_one || survey.found() || survey.cut_short()) co_return survey.Take();
  }
  co_await survey.ReadRackSlots();
  co_return survey.Take();
}

}  // namespace firn
