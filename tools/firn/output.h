#pragma once

#include <string>

#include "common/base/status.h"
#include "common/json/json.h"

namespace firn {

// What a verb has to say: for programs, and for people. `text` ends with a line feed unless empty.
struct Output {
  Json json;
  std::string text;
  bool wrong = false;  // the verb did its work and found something wrong
  Status failed{};     // it did some of its work, which is told, and this is why not the rest
};

}  // namespace firn
