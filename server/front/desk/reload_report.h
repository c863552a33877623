#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/units.h"

namespace firn::front {

// A file that was read again.
struct ReloadedFile {
  enum class Outcome { kUnchanged, kChanged, kRefused };

  std::string flag;  // the flag that names the file, such as "tls_cert"
  std::string path;
  Outcome outcome = Outcome::kUnchanged;  // kRefused: the earlier content stays in use

  std::string_view outcome_name() const {
    if (outcome == Outcome::kRefused) return "refused";
    return outcome == Outcome::kChanged ? "changed" : "unchanged";
  }
};

// The result of one reload (SIGHUP).
struct ReloadReport {
  WallMs at;
  std::vector<ReloadedFile> files{};
  std::vector<std::string> faults{};  // why files were refused; empty: every file was accepted
};

}  // namespace firn::front
