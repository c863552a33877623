// Takes numbers of the tag `order` as an embedded program, for drills:
//   drill_segment_taker REGISTRY STATE_DIR INSTANCE JOURNAL THREADS PAUSE_MS
// It runs until it is killed. It prints a line for each call without a number.

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "common/time/clock.h"
#include "server/node/embedded.h"
#include "tests/drill/callers/segment_journal.h"

namespace firn {
namespace {

constexpr Milliseconds kWithin{30'000};

void Take(Embedded& ids, int journal, Milliseconds pause) {
  for (;;) {
    TakenNumber taken;
    taken.begin_ms = SystemClock().Boot().ms();
    const Result<int64_t> number = ids.Next("order");
    taken.end_ms = SystemClock().Boot().ms();
    taken.number = number.value_or(0);
    if (!number.ok()) {
      std::fprintf(stderr, "%s%s\n", kNoNumber, number.status().ToString().c_str());
    } else if (write(journal, &taken, sizeof taken) != sizeof taken)
      std::abort();
    if (pause.count() > 0) SleepFor(pause);
  }
}

int Main(char** argv) {
  EmbeddedOptions options;
  options.registry = argv[1];
  options.state_dir = argv[2];
  options.instance = static_cast<uint16_t>(std::atoi(argv[3]));
  options.ready_within = kWithin;
  options.issue_wait = kWithin;
  const int journal = open(argv[4], O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (journal < 0) return 1;
  Result<std::unique_ptr<Embedded>> ids = Embedded::Open(options);
  while (!ids.ok()) {
    std::fprintf(stderr, "%s\n", ids.status().ToString().c_str());
    ids = Embedded::Open(options);
  }
  std::vector<std::jthread> threads;
  for (int i = std::atoi(argv[5]); i > 0; --i) {
    threads.emplace_back([&] { Take(**ids, journal, Milliseconds(std::atoll(argv[6]))); });
  }
  return 0;
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) { return argc == 7 ? firn::Main(argv) : 2; }
