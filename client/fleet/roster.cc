#include "client/fleet/roster.h"

#include <algorithm>
#include <climits>
#include <utility>

namespace firn::client {
namespace {

constexpr int kNobody = INT_MAX;

bool Contains(std::span<const ServerPtr> servers, const Server& server) {
  return std::ranges::any_of(servers, [&](const ServerPtr& one) { return one.get() == &server; });
}

size_t CountBest(const std::vector<Roster::Entry>& entries) {
  return static_cast<size_t>(std::ranges::count_if(
      entries, [&](const Roster::Entry& entry) { return entry.rank() == entries.front().rank(); }));
}

std::vector<double> WeightsOf(std::span<const Roster::Entry> entries) {
  std::vector<double> weights;
  for (const Roster::Entry& entry : entries) {
    weights.push_back(static_cast<double>(entry.weight));
  }
  return weights;
}

// The entries of a roster; those for which `may` is true may be picked.
template <typename May>
class Choice {
 public:
  Choice(const std::vector<Roster::Entry>& entries, Micros now, May may)
      : entries_(entries), now_(now), may_(std::move(may)) {}

  bool MayPick(size_t at) const { return may_(at); }
  double LatencyUs(size_t at) const { return entries_[at].server->latency.At(now_); }
  int InFlight(size_t at) const {
    return entries_[at].server->in_flight.load(std::memory_order_relaxed);
  }

 private:
  const std::vector<Roster::Entry>& entries_;
  const Micros now_;
  const May may_;
};

}  // namespace

Roster::Roster(std::vector<Entry> entries, std::shared_ptr<const TagSet> own_numbers,
               Micros good_until)
    : entries_(std::move(entries)),
      best_(CountBest(entries_)),
      own_numbers_(std::move(own_numbers)),
      of_best_(WeightsOf(std::span(entries_).first(best_))),
      of_all_(WeightsOf(entries_)),
      good_until_(good_until) {}

ServerPtr Roster::Pick(std::string_view tag, std::span<const ServerPtr> tried, Micros now,
                       Entropy& entropy) const {
  const auto limit = [&](const Entry& entry) {
    return entry.server->limits.For(tag, *own_numbers_, now);
  };
  // The best servers that were not tried yet and have reported no limit for the tag.
  const auto healthy = [&](size_t at) {
    return limit(entries_[at]) == ServerHealth::kHealthy && !Contains(tried, *entries_[at].server);
  };
  const size_t one_of_best = of_best_.Pick(Choice(entries_, now, healthy), entropy);
  if (one_of_best != TwoChoices::kNone) return entries_[one_of_best].server;
  // Otherwise, the best of the others, after examining all of them.
  std::vector<int> ranks;
  for (const Entry& entry : entries_) {
    ranks.push_back(Contains(tried, *entry.server) ? kNobody : entry.rank(limit(entry)));
  }
  const int best = ranks.empty() ? kNobody : std::ranges::min(ranks);
  if (best == kNobody) return nullptr;
  const auto best_ones = [&](size_t at) { return ranks[at] == best; };
  return entries_[of_all_.Pick(Choice(entries_, now, best_ones), entropy)].server;
}

}  // namespace firn::client
