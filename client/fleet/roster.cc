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

std::vector<int64_t> WeightsOf(std::span<const Roster::Entry> entries) {
  std::vector<int64_t> weights;
  for (const Roster::Entry& entry : entries) weights.push_back(entry.weight);
  return weights;
}

class Entries : public Balancer::Servers {
 public:
  Entries(const std::vector<Roster::Entry>& entries, Micros now) : entries_(entries), now_(now) {}

  double LatencyUs(size_t at) const final { return entries_[at].server->latency.At(now_); }
  int InFlight(size_t at) const final {
    return entries_[at].server->in_flight.load(std::memory_order_relaxed);
  }

 protected:
  ~Entries() = default;

  const std::vector<Roster::Entry>& entries_;
  const Micros now_;
};

}  // namespace

// The best servers that were not tried yet and have reported no limit for the tag.
class Roster::Fit final : public Entries {
 public:
  Fit(const Roster& roster, std::string_view tag, std::span<const ServerPtr> tried, Micros now)
      : Entries(roster.entries_, now),
        own_numbers_(*roster.own_numbers_),
        tag_(tag),
        tried_(tried) {}

  bool MayPick(size_t at) const override {
    const Server& server = *entries_[at].server;
    return server.limits.For(tag_, own_numbers_, now_) == ServerFitness::kFit &&
           !Contains(tried_, server);
  }

 private:
  const TagSet& own_numbers_;
  const std::string_view tag_;
  const std::span<const ServerPtr> tried_;
};

// If there is none: the best of the others, after examining all of them.
class Roster::Fittest final : public Entries {
 public:
  Fittest(const Roster& roster, std::string_view tag, std::span<const ServerPtr> tried, Micros now)
      : Entries(roster.entries_, now) {
    for (const Entry& entry : entries_) {
      const Server& server = *entry.server;
      ranks_.push_back(Contains(tried, server)
                           ? kNobody
                           : entry.rank(server.limits.For(tag, *roster.own_numbers_, now)));
      best_ = std::min(best_, ranks_.back());
    }
  }

  bool MayPick(size_t at) const override { return best_ != kNobody && ranks_[at] == best_; }

 private:
  std::vector<int> ranks_;
  int best_ = kNobody;
};

Roster::Roster(std::vector<Entry> entries, std::shared_ptr<const TagSet> own_numbers,
               Balancing balancing, std::atomic<uint64_t>& turn, Micros good_until)
    : entries_(std::move(entries)),
      best_(CountBest(entries_)),
      own_numbers_(std::move(own_numbers)),
      of_best_(MakeBalancer(balancing, WeightsOf(std::span(entries_).first(best_)), turn)),
      // A call that tries further servers does not use a turn.
      of_all_(MakeBalancer(balancing == Balancing::kRoundRobin ? Balancing::kRandom : balancing,
                           WeightsOf(entries_), turn)),
      good_until_(good_until) {}

ServerPtr Roster::Pick(std::string_view tag, std::span<const ServerPtr> tried, Micros now,
                       Entropy& entropy) const {
  size_t at = of_best_->Pick(Fit(*this, tag, tried, now), entropy);
  if (at == Balancer::kNone) at = of_all_->Pick(Fittest(*this, tag, tried, now), entropy);
  return at == Balancer::kNone ? nullptr : entries_[at].server;
}

}  // namespace firn::client
