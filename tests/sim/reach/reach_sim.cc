// Clients of firn:// and the cost of their requests, in virtual time (tests/sim/README.md).
//
//   reach_sim [--servers N] [--clients N] [--calls N] [--seed N] [--story NAME] [--curve]
//
// --calls: of each client in 100 seconds. Exits with 1 if a promise is broken.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "tests/sim/reach/reach_world.h"

namespace firn {
namespace {

constexpr std::array<std::string_view, 5> kStories{"quiet", "one_change", "rolling", "rack_dies",
                                                   "all_start"};
// The longest interval that a server may request, plus a fifth, plus a second until it has read.
constexpr double kKnownMaxS = 60 * 1.2 + 1;

struct Arguments {
  ReachSizes sizes;
  uint64_t seed = 1;
  std::string_view story{};
  bool curve = false;
};

struct Sums {
  Second most, all;

  explicit Sums(const std::vector<Second>& seconds) {
    for (const Second& one : seconds) {
      all.asked += one.asked;
      all.calls += one.calls;
      all.up += one.up;
      all.met_trouble += one.met_trouble;
      all.registry_reads += one.registry_reads;
      most.asked_most = std::max(most.asked_most, one.asked_most);
      most.bytes_most = std::max(most.bytes_most, one.bytes_most);
      most.calls_most = std::max(most.calls_most, one.calls_most);
      most.opened_most = std::max(most.opened_most, one.opened_most);
      most.registry_reads = std::max(most.registry_reads, one.registry_reads);
    }
  }
  double EachSecond(uint64_t sum) const {
    return static_cast<double>(sum) / static_cast<double>(std::max<size_t>(all.up, 1));
  }
};

void Tell(std::string_view name, const ReachWorld& world, const Arguments& arguments) {
  const Sums sums(world.seconds());
  const double servers = arguments.sizes.servers;
  std::printf("%s: %zu s, %ju changes\n", name.data(), world.seconds().size(),
              static_cast<uintmax_t>(world.changes()));
  std::printf("  list asked    %.2f a second at a server, at most %ju; bytes at most %ju\n",
              sums.EachSecond(sums.all.asked), static_cast<uintmax_t>(sums.most.asked_most),
              static_cast<uintmax_t>(sums.most.bytes_most));
  std::printf("  change known  median %.1f s, p99 %.1f s, max %.1f s\n",
              world.known().Quantile(0.5), world.known().Quantile(0.99), world.known().max_s());
  std::printf("  calls         %.2f a second at a server, at most %ju; %ju met one that is down\n",
              sums.EachSecond(sums.all.calls), static_cast<uintmax_t>(sums.most.calls_most),
              static_cast<uintmax_t>(sums.all.met_trouble));
  std::printf("  connections   %.0f at a server, at most %ju; opened in a second at most %ju\n",
              static_cast<double>(world.connections()) / servers,
              static_cast<uintmax_t>(world.connections_most()),
              static_cast<uintmax_t>(sums.most.opened_most));
  std::printf("  registry      %.0f reads a second, at most %ju\n",
              static_cast<double>(sums.all.registry_reads) /
                  static_cast<double>(std::max<size_t>(world.seconds().size(), 1)),
              static_cast<uintmax_t>(sums.most.registry_reads));
  if (!arguments.curve) return;
  for (int percent = 1; percent <= 100; ++percent) {
    std::printf("  known,%d,%.1f\n", percent, world.known().Quantile(percent / 100.0));
  }
}

// Checks the promises. Prints each broken one; returns false if there is any.
bool Kept(ReachStory story, const ReachWorld& world, const ReachSizes& sizes) {
  bool kept = true;
  const auto must = [&](bool holds, const char* what) {
    if (!holds) std::printf("  BROKEN: %s\n", what);
    kept = kept && holds;
  };
  const Sums sums(world.seconds());
  must(world.known().max_s() <= kKnownMaxS, "a change is known after at most one request");
  must(world.behind() == 0, "every client ends with the last list");
  must(world.lost_calls() == 0, "a call finds a server while one is up");
  // 20 per second, or each of its connections once per minute, with random variation.
  const double each = std::max(20.0, sizes.clients / 60.0 / sizes.servers);
  if (story != ReachStory::kAllStart) {
    must(sums.EachSecond(sums.all.asked) <= each * 1.5,
         "a server gets no more requests than it asked for");
  }
  return kept;
}

bool Read(int argc, char** argv, Arguments& arguments) {
  double calls = arguments.sizes.calls * 100;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--curve") {
      arguments.curve = true;
      continue;
    }
    if (++i == argc) return false;
    const char* const end = argv[i] + std::strlen(argv[i]);
    const auto number = [&](auto& into) { return std::from_chars(argv[i], end, into).ptr == end; };
    const bool known = name == "--servers"   ? number(arguments.sizes.servers)
                       : name == "--clients" ? number(arguments.sizes.clients)
                       : name == "--calls"   ? number(calls)
                       : name == "--seed"    ? number(arguments.seed)
                       : name == "--story"   ? (arguments.story = argv[i], true)
                                             : false;
    if (!known) return false;
  }
  arguments.sizes.calls = calls / 100;
  return arguments.sizes.servers > 0;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (!Read(argc, argv, arguments)) {
    std::printf(
        "reach_sim [--servers N] [--clients N] [--calls N] [--seed N] [--story NAME] "
        "[--curve]\n");
    return 2;
  }
  bool kept = true;
  for (size_t i = 0; i < kStories.size(); ++i) {
    if (!arguments.story.empty() && arguments.story != kStories[i]) continue;
    const auto story = static_cast<ReachStory>(i);
    ReachWorld world(arguments.sizes, story, arguments.seed);
    world.Run();
    Tell(kStories[i], world, arguments);
    kept = Kept(story, world, arguments.sizes) && kept;
  }
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) { return firn::Main(argc, argv); }
