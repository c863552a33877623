#include "tests/support/temp_dir.h"

#include <cstdlib>
#include <iostream>

#include "common/base/status.h"

namespace firn {

TempDir::TempDir(const std::filesystem::path& below) {
  std::string name = below / "firn-test-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) Die("cannot make a temporary directory " + name);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;  // a remaining directory does not fail the test
  if (!keep_) std::filesystem::remove_all(path_, ignored);
}

void TempDir::Keep() {
  if (!keep_) std::cerr << "files are kept in " << path_.string() << "\n";
  keep_ = true;
}

}  // namespace firn
