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
  int exit_code = 0;   // instead of that of `wrong`, unless 0
  Status failed{};     // why the verb did only the part of its work that `text` shows
};

}  // namespace firn
