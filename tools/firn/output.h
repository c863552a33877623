#pragma once

#include <string>

#include "common/json/json.h"

namespace firn {

// What a verb has to say: for programs, and for people. `text` ends with a line feed unless empty.
struct Output {
  Json json;
  std::string text;
  bool wrong = false;  // the verb did its work and found something wrong
};

}  // namespace firn
