#pragma once

#include <string>

#include "common/base/status.h"
#include "common/json/json.h"

namespace firn {

// The output of a verb, as JSON and as text. `text` ends with a line feed unless empty.
struct Output {
  Json json;
  std::string text;
  bool wrong = false;  // the verb did its work and found something wrong
  int exit_code = 0;   // unless 0, replaces the exit code of `wrong`
  Status failed{};     // why the verb stopped early; `text` shows the part that it did
};

}  // namespace firn
