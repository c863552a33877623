#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/node/embedded.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {

// Embedded issuers of one host that share a directory registry.
class EmbeddedFixture : public testing::Test {
 protected:
  EmbeddedOptions Options(uint16_t instance = 1) {
    return {.registry = "dir://" + (folder_ / "registry"),
            .state_dir = folder_ / "state",
            .instance = instance,
            .ready_within = kPatience,
            .issue_wait = kPatience};
  }

  std::unique_ptr<Embedded> Open(uint16_t instance = 1) {
    auto opened = Embedded::Open(Options(instance));
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }

  int Firn(const std::vector<std::string>& words) {
    return RunFirn(words, {"--registry=" + Options().registry}).exit_code;
  }

  TempDir folder_;
};

}  // namespace firn
