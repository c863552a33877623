#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace firn {

// A drill that starts a cluster of its own and throws it away.
struct DrillScenario {
  std::string_view name;
  std::string_view summary;
  bool whole = true;  // of whole servers, by tools/drill; else a test program, <name>_drill_test
};
const std::vector<DrillScenario>& DrillScenarios();

struct DrillRun {
  std::string source{};  // the source tree; empty: that above this folder, or above this program
  std::string logs{};    // where logs are left; empty: nowhere
  int rate = 0;          // calls a second; 0: as the scenario has it
  int away_s = 0;        // how long what is taken away stays away; 0: likewise
  bool quiet = false;    // what the drills print goes to stderr
};

// Runs one, and waits for its end; what it prints goes to the terminal. Its exit code. kNotFound,
// in words, where there is no source tree, or its drills are not built.
Result<int> RunDrill(const DrillScenario& scenario, const DrillRun& how);

}  // namespace firn
