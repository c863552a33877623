#pragma once

#include <string>
#include <vector>

#include "tests/support/threads/interleaving.h"

namespace firn {

struct NamedScenario {
  std::string name;
  Scenario scenario;
  InterleavingLimits limits{.preemptions = 2, .stale_reads = 1};
};

// Concurrent operations on the issuing path, small enough for a search through all thread orders.
std::vector<NamedScenario> SequenceScenarios();
std::vector<NamedScenario> SnowflakeScenarios();
std::vector<NamedScenario> CursorScenarios();

}  // namespace firn
