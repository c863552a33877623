#include "tests/sim/sim_sizes.h"

#include <algorithm>

namespace firn {
namespace {

constexpr int kHostsMax = 5;
constexpr uint64_t kSlotsMax = 6;

template <typename Weights>
void Vary(Weights& weights, SeededEntropy& dice) {
  for (uint64_t& weight : weights) weight = dice.Below(3) == 0 ? 0 : dice.Below(8);
  weights[dice.Below(weights.size())] += 1;
}

template <typename Weights>
size_t PickByWeight(const Weights& weights, SeededEntropy& dice) {
  uint64_t sum = 0;
  for (const uint64_t weight : weights) sum += weight;
  uint64_t chosen = dice.Below(sum);
  size_t picked = 0;
  while (chosen >= weights[picked]) chosen -= weights[picked++];
  return picked;
}

constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kDayMs = 24 * kHourMs;
constexpr int64_t kYearMs = 365 * kDayMs;

// Returns a layout that ends during the seed. Servers claim until a day before its end.
std::string EndingLayout(SeededEntropy& dice) {
  const int64_t left_ms = kDayMs + static_cast<int64_t>(dice.Below(10 * kHourMs));
  const int64_t epoch_ms = kSimStart.ms() + left_ms - (int64_t{1} << 30);
  return "time:30 machine:10 sequence:12 epoch:" + std::to_string(epoch_ms);
}

}  // namespace

Milliseconds DrawOff(SeededEntropy& dice) {
  static constexpr int64_t kFarthest[] = {10 * kHourMs, 10 * kHourMs, 5 * kDayMs, 90 * kYearMs};
  const int64_t farthest = kFarthest[dice.Below(4)];
  const auto off = static_cast<int64_t>(dice.Below(static_cast<uint64_t>(farthest)));
  // Clocks without a battery begin in 1970, so the time is never earlier.
  return Milliseconds(dice.Below(2) == 0 ? off : -std::min(off, kSimStart.ms()));
}

SimSizes SimSizes::Draw(SeededEntropy& dice) {
  static constexpr int64_t kWindowsMs[] = {20'000, 20'000, 60'000, 600'000};
  static constexpr const char* kLayouts[] = {"firn",
                                             "time:31s machine:10 sequence:22 epoch:2024-01-01",
                                             "time:41 machine:10 sequence:3 epoch:2024-01-01"};
  const auto below = [&dice](uint64_t n) { return static_cast<int>(dice.Below(n)); };
  SimSizes sizes;
  sizes.hosts = below(kHostsMax) + 1;
  sizes.slots = dice.Below(3) == 0 ? 1 : static_cast<uint32_t>(dice.Below(kSlotsMax)) + 1;
  // Some seeds have every kind of fault. Others have some kinds often and other kinds never,
  // because many kinds together can hide the combined effect of two.
  sizes.weights = {4, 6, 4, 5, 3, 5, 6, 5, 4, 8, 2};
  if (dice.Below(2) == 0) Vary(sizes.weights, dice);
  sizes.registry_weights = {4, 6, 4, 2, 2, 2, 1, 3, 2};
  if (dice.Below(2) == 0) Vary(sizes.registry_weights, dice);
  sizes.session_ends_in = 1 + dice.Below(4);
  sizes.steps = 2'000 + below(20'000);
  sizes.fault_every = 20 + dice.Below(600);
  sizes.start_every = 1 + dice.Below(dice.Below(3) == 0 ? 2'000 : 60);
  sizes.window = Milliseconds(kWindowsMs[dice.Below(4)]);
  sizes.probation = Milliseconds(dice.Below(4) != 0 ? 0 : dice.Below(2) == 0 ? 2'000 : 30'000);
  sizes.layout = kLayouts[dice.Below(3)];
  sizes.rack_bits = dice.Below(2) == 0 ? 0 : below(3);
  sizes.off_one_in = dice.Below(2) == 0 ? 0 : 1 + dice.Below(6);
  sizes.wraps = dice.Below(4) == 0;
  sizes.copies = dice.Below(6) == 0;
  sizes.generations = sizes.copies && sizes.steps % 5 < 3;
  sizes.strict = dice.Below(10) == 0;
  sizes.probes = sizes.steps % 2 == 0;
  sizes.tags = !sizes.copies && sizes.steps % 4 == 0;
  sizes.strides = dice.Below(12) == 0;
  sizes.steady = !sizes.strides && !sizes.strict && sizes.window <= Milliseconds(60'000) &&
                 sizes.steps % 3 == 0;
  if (sizes.strides) {
    sizes.window = Milliseconds(600'000);
    if (dice.Below(2) == 0) sizes.layout = EndingLayout(dice);
  }
  sizes.rates = {.refused = below(30),
                 .request_lost = below(60),
                 .answer_lost = below(120),
                 .late = below(120),
                 .delayed = below(500),
                 .notice_lost = 0,
                 .delay_max = Milliseconds(10 + below(2'000)),
                 .late_max = Milliseconds(100 + below(30'000)),
                 .time_limit = Milliseconds(200 + below(3'000))};
  if (dice.Below(4) == 0) sizes.rates = {};  // faults of the registry can hide other faults
  return sizes;
}

Fault SimSizes::Pick(SeededEntropy& dice) const {
  return static_cast<Fault>(PickByWeight(weights, dice));
}

RegistryFault SimSizes::PickForRegistry(SeededEntropy& dice) const {
  return static_cast<RegistryFault>(PickByWeight(registry_weights, dice));
}

std::string SimSizes::text() const {
  return std::to_string(hosts) + " hosts, " + std::to_string(racks()) + " racks of " +
         std::to_string(slots) + " slots, window " + std::to_string(window.count()) +
         " ms, a fault in " + std::to_string(fault_every) + " steps" + (strict ? ", strict" : "") +
         (wraps ? ", versions wrap" : "") + (copies ? ", copies" : "") +
         (generations ? " that know it" : "") + ", layout " + layout;
}

}  // namespace firn
