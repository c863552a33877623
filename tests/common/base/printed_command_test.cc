#include "common/base/printed_command.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

TEST(PrintedCommandTest, SeparatesAndQuotesArguments) {
  EXPECT_EQ(PrintCommand(PrintedCommand::kRestore), "firn restore");
  EXPECT_EQ(PrintCommand(PrintedCommand::kRestore, {"--uuid=u", "my tag=5", ""}),
            "firn restore --uuid=u 'my tag=5' ''");
}

TEST(PrintedCommandTest, OnlyTheFirstArgumentCompletesTheTemplatesLastWord) {
  EXPECT_EQ(PrintCommand(PrintedCommand::kRestoreWorkers, {"8"}), "firn restore --set=workers=8");
  EXPECT_EQ(PrintCommand(PrintedCommand::kRestore, {"--from=", "--set=order.high=5"}),
            "firn restore --from= --set=order.high=5");
}

}  // namespace
}  // namespace firn
