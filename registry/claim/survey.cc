#include "registry/claim/survey.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "registry/claim/claim_options.h"

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
    if (passed_.empty() && candidates_.empty()) {
      return wish_.worker.has_value() ? End("the wanted slot is not free") : ListRack();
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
    unanswered_ |= node.code() != Code::kNotFound;
    ++unreadable_;
    return;
  }
  Result<SlotRecord> record = ParseSlotRecord(node->data);
  if (!record.ok()) {
    ++unreadable_;
    alarms_.push_back(SlotText(slot) + " is skipped: " + record.status().message());
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
    if (wish_.worker.has_value()) return End("the wanted slot is live under another owner");
    return End(std::to_string(slots_.size()) + " slots of rack " + std::to_string(wish_.rack) +
               ": " + std::to_string(ahead_) + " in use, " + std::to_string(live_) +
               " live beyond their bound, " + std::to_string(unreadable_) + " unreadable");
  }
  for (; looked_at_ < end; ++looked_at_) AskLive(passed_[looked_at_]);
}

void Survey::AskLive(SurveyedSlot& slot) {
  coordinator_.Read(LivePath(slot.slot),
                    mailbox_.Expect<Result<Node>>([this, &slot](Result<Node> node) {
                      slot.live = node.ok();
                      unanswered_ |= !node.ok() && node.code() != Code::kNotFound;
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
