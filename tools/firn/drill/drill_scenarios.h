#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace firn {

// A drill that starts its own cluster and deletes it at the end.
struct DrillScenario {
  std::string_view name;
  std::string_view summary;
  bool whole = true;  // whole servers, by tools/drill; false: the program <name>_drill_test
};
const std::vector<DrillScenario>& DrillScenarios();

struct DrillRun {
  std::string source{};  // source tree; empty: the one above this folder or this program
  std::string logs{};    // folder in which logs are kept; empty: none
  int rate = 0;          // calls per second; 0: the scenario's default
  int away_s = 0;        // duration of the fault; 0: the scenario's default
  bool quiet = false;    // sends the drills' output to stderr
};

// Runs a drill and returns its exit code. Its output goes to the terminal. kNotFound if there is no
// source tree, or its drills are not built.
Result<int> RunDrill(const DrillScenario& scenario, const DrillRun& how);

}  // namespace firn
