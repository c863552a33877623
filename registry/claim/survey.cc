#include "registry/claim/survey.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "common/time/civil_time.h"
#include "registry/claim/claim_options.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

// A worker's number as a node's name: digits, no leading zero, one of the rack's.
std::optional<uint32_t> WorkerNamed(const std::string& name, uint32_t workers) {
  uint32_t worker = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), worker);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  if (worker >= workers || std::to_string(worker) != name) return std::nullopt;
  return worker;
}

// Whether a failure says how one node is, and not how the registry is.
bool TellsOfNode(Code code) { return code == Code::kNotFound || code == Code::kCorrupt; }

std::string HowItStands(const SlotRecord& record, const SlotWish& wish) {
  const std::string until = FormatRfc3339(record.bound);
  const std::string holder =
      record.owner + " (" + record.host + ", process " + std::to_string(record.pid) + ")";
  switch (FitnessOf(record, wish)) {
    case Fitness::kAhead:
      if (record.nonce.zero()) return "was given back by " + holder + " and is free at " + until;
      return "is held by " + holder + " until " + until + ", longer if that lives";
    case Fitness::kPassed:
      return "is still live under " + holder + ", whose bound passed at " + until;
    case Fitness::kPoison:
      return "has a bound more than a day ahead, " + until + ": firn restore takes it out of use";
    case Fitness::kRetired:
      return "was taken out of use by firn restore for ever";
    case Fitness::kNeverUsed:
      break;
  }
  return "is free";
}

// The first `count` in an order of our own.
template <typename Item>
void ShuffleFirst(std::vector<Item>& items, size_t count, Entropy& entropy) {
  for (size_t i = std::min(count, items.size()); i > 1; --i) {
    std::swap(items[i - 1], items[entropy.Below(i)]);
  }
}

}  // namespace

Fitness FitnessOf(const SlotRecord& record, const SlotWish& wish) {
  if (record.retired) return Fitness::kRetired;
  if (record.never_used()) return Fitness::kNeverUsed;
  const WallMs now = record.owner == wish.owner ? std::max(wish.now, wish.id_time) : wish.now;
  if (record.bound <= now) return Fitness::kPassed;
  if (record.bound - now > kPoisonAhead) return Fitness::kPoison;
  const bool released = record.nonce.zero() && record.bound - now <= wish.released_ahead;
  return released ? Fitness::kPassed : Fitness::kAhead;
}

std::string WhyNotFree(Slot slot, const Result<Node>& node, const SlotWish& wish) {
  const std::string name = "the wanted slot, " + SlotText(slot) + ", ";
  if (node.code() == Code::kNotFound) {
    return name +
           "has no record: the cluster was made with fewer workers, take a lower one, or make more "
           "with "
           "firn restore --workers=" +
           std::to_string(slot.worker + 1);
  }
  if (!node.ok()) return name + "cannot be read: " + node.status().message();
  const Result<SlotRecord> record = ParseSlotRecord(node->data);
  if (!record.ok()) return name + "cannot be read: " + record.status().message();
  return name + HowItStands(*record, wish);
}

Survey::Survey(Coordinator& coordinator, Entropy& entropy, SlotWish wish)
    : coordinator_(coordinator), entropy_(entropy), wish_(std::move(wish)) {
  if (wish_.worker.has_value()) {
    ReadFirst({wish_.rack, *wish_.worker});
  } else if (wish_.hinted.has_value()) {
    ReadFirst(*wish_.hinted);
  } else {
    ListRack();
  }
}

void Survey::ReadFirst(Slot slot) {
  coordinator_.Read(SlotPath(slot), mailbox_.Expect<Result<Node>>([this, slot](Result<Node> node) {
    Keep(slot, node);
    if (wish_.worker.has_value()) wanted_ = WhyNotFree(slot, node, wish_);
    if (passed_.empty() && candidates_.empty()) {
      return wish_.worker.has_value() ? End(wanted_) : ListRack();
    }
    CheckLives();
  }));
}

void Survey::ListRack() {
  passed_.clear();
  looked_at_ = ahead_ = live_ = unreadable_ = 0;
  alarms_.clear();
  coordinator_.List(
      RackPath(wish_.rack),
      mailbox_.Expect<Result<std::vector<std::string>>>(
          [this](const Result<std::vector<std::string>>& names) { OnListed(names); }));
}

void Survey::OnListed(const Result<std::vector<std::string>>& names) {
  if (!names.ok()) return End("the rack's slots cannot be listed: " + names.status().message());
  for (const std::string& name : *names) {
    const auto worker = WorkerNamed(name, wish_.workers);
    if (worker.has_value()) slots_.push_back({wish_.rack, *worker});
  }
  if (slots_.empty()) return End("rack " + std::to_string(wish_.rack) + " has no slots");
  ShuffleFirst(slots_, slots_.size(), entropy_);
  ReadBatch();
}

void Survey::ReadBatch() {
  const size_t end = std::min(slots_.size(), next_ + kBatch);
  awaited_ = end - next_;
  for (; next_ < end; ++next_) {
    const Slot slot = slots_[next_];
    coordinator_.Read(SlotPath(slot),
                      mailbox_.Expect<Result<Node>>([this, slot](Result<Node> node) {
                        Keep(slot, node);
                        if (--awaited_ == 0) OnBatch();
                      }));
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
    alarms_.push_back("a slot is skipped: " + RestsUnguarded("the record of " + SlotText(slot)));
    return;
  }
  const SurveyedSlot surveyed{slot, node->stat.version, node->stat.created_zxid, *record, false};
  switch (FitnessOf(*record, wish_)) {
    case Fitness::kNeverUsed:
      if (candidates_.size() < kCandidatesMax) candidates_.push_back(surveyed);
      return;
    case Fitness::kPassed:
      passed_.push_back(surveyed);
      return;
    case Fitness::kAhead:
      ++ahead_;
      if (!earliest_.has_value() || record->bound < *earliest_) earliest_ = record->bound;
      return;
    case Fitness::kPoison:
      alarms_.push_back(SlotText(slot) + " is skipped: its bound lies more than a day ahead");
      return;
    case Fitness::kRetired:
      return;
  }
}

void Survey::Skip(Slot slot, const Status& why) {
  alarms_.push_back(SlotText(slot) + " is skipped: " + why.message());
}

void Survey::OnBatch() {
  if (!candidates_.empty()) return End({});
  if (next_ < slots_.size()) return ReadBatch();
  std::stable_sort(passed_.begin(), passed_.end(),
                   [](const auto& a, const auto& b) { return a.record.bound < b.record.bound; });
  // Strictly the oldest first, everybody would try the same few.
  ShuffleFirst(passed_, std::max(kBatch, passed_.size() / 2), entropy_);
  CheckLives();
}

void Survey::CheckLives() {
  if (!candidates_.empty()) return End({});
  const size_t end = std::min(passed_.size(), looked_at_ + kCandidatesMax);
  awaited_ = end - looked_at_;
  if (awaited_ == 0) {
    if (wish_.worker.has_value()) return End(wanted_);
    return End(std::to_string(slots_.size()) + " slots of rack " + std::to_string(wish_.rack) +
               ": " + std::to_string(ahead_) +
               " held, or left by dead processes, up to a bound that lies ahead, " +
               std::to_string(live_) + " live beyond their bound, " + std::to_string(unreadable_) +
               " unreadable");
  }
  for (; looked_at_ < end; ++looked_at_) AskLive(passed_[looked_at_]);
}

void Survey::AskLive(SurveyedSlot& slot) {
  coordinator_.Read(LivePath(slot.slot),
                    mailbox_.Expect<Result<Node>>([this, &slot](Result<Node> node) {
                      slot.live = node.ok() || node.code() == Code::kCorrupt;
                      unanswered_ |= !node.ok() && !TellsOfNode(node.code());
                      if (--awaited_ == 0) OnLives();
                    }));
}

void Survey::OnLives() {
  if (unanswered_) return End("the registry does not answer");
  live_ = 0;
  for (size_t i = 0; i < looked_at_ && candidates_.size() < kCandidatesMax; ++i) {
    if (Hindered(passed_[i])) {
      ++live_;
    } else {
      candidates_.push_back(passed_[i]);
    }
  }
  if (!candidates_.empty()) return End({});
  if (slots_.empty() && !wish_.worker.has_value()) return ListRack();
  CheckLives();
}

bool Survey::Hindered(const SurveyedSlot& slot) const {
  return slot.live && slot.record.owner != wish_.owner &&
         wish_.now - slot.record.bound < kLiveGrace;
}

void Survey::End(std::string reason) {
  done_ = true;
  reason_ = std::move(reason);
  if (unanswered_ && candidates_.empty()) reason_ = "the registry does not answer";
}

}  // namespace firn
