#include "tests/support/process.h"

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/temp_dir.h"

namespace firn {
namespace {

TEST(ProcessTest, ReportsHowAProgramEnded) {
  EXPECT_EQ(Process({"sh", "-c", "exit 7"}).Wait(kPatience), 7);
  EXPECT_EQ(Process({"sh", "-c", "kill -9 $$"}).Wait(kPatience), 137);
  EXPECT_EQ(Process({"no-such-program-here"}).Wait(kPatience), 127);
}

TEST(ProcessTest, KeepsBothStreamsApart) {
  const Finished finished = RunToEnd({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(finished.out, "out\n");
  EXPECT_EQ(finished.err, "err\n");
}

TEST(ProcessTest, EndsWithItsObject) {
  pid_t pid = 0;
  {
    Process sleeper({"sleep", "1000"});
    pid = sleeper.pid();
    EXPECT_TRUE(sleeper.Running());
  }
  EXPECT_FALSE(std::filesystem::exists("/proc/" + std::to_string(pid)));
}

#ifdef __SANITIZE_ADDRESS__
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void*,
                                                                           size_t),
                                                         void (*freed)(const volatile void*));

pid_t allowed = 0;  // the process that may allocate; 0: every process

void ExitIfNotAllowed(const volatile void* /*block*/, size_t /*size*/) {
  if (allowed != 0 && getpid() != allowed) _exit(99);
}

TEST(ProcessTest, TheChildAllocatesNothingBeforeItRunsTheProgram) {
  ASSERT_NE(
      __sanitizer_install_malloc_and_free_hooks(ExitIfNotAllowed, [](const volatile void*) {}), 0);
  const TempDir dir;
  allowed = getpid();
  Process program({"true"}, {.directory = dir.path(),
                             .environment = {{"FIRN_A", std::string(500, 'a')}, {"FIRN_B", "b"}},
                             .output_file = dir / "out"});
  allowed = 0;
  EXPECT_EQ(program.Wait(kPatience), 0);
}
#endif

TEST(ProcessTest, AddsToItsOwnEnvironment) {
  setenv("FIRN_OLD", "kept", 1);
  setenv("FIRN_NEW", "replaced", 1);
  Process program({"sh", "-c", R"([ "$FIRN_OLD,$FIRN_NEW,$FIRN_X" = "kept,new,a=b" ])"},
                  {.environment = {{"FIRN_NEW", "new"}, {"FIRN_X", "a=b"}}});
  EXPECT_EQ(program.Wait(kPatience), 0);
}

TEST(ProcessTest, WritesItsOutputToAFile) {
  const TempDir dir;
  Process writer({"sh", "-c", "while :; do echo x; sleep 0.01; done"},
                 {.output_file = dir / "out"});
  const auto size = [&] { return std::filesystem::file_size(dir / "out"); };
  ASSERT_TRUE(Eventually(kPatience, [&] { return std::filesystem::exists(dir / "out"); }));
  ASSERT_TRUE(Eventually(kPatience, [&] { return size() > 0; }));
  const auto before = size();
  EXPECT_TRUE(Eventually(kPatience, [&] { return size() > before; }));
}

TEST(FreePortTest, HoldsThePortAgainstOtherPrograms) {
  const std::string port = std::to_string(FreePort());
  const std::string file = "/tmp/firn-ports-" + std::to_string(getuid()) + "/" + port;
  EXPECT_EQ(RunToEnd({"flock", "--nonblock", file, "true"}).exit_code, 1);
}

TEST(FreePortTest, ReturnsAnotherPortEachTime) {
  std::set<int> ports;
  for (int i = 0; i < 50; ++i) ports.insert(FreePort());
  EXPECT_EQ(ports.size(), 50u);
}

TEST(TempDirTest, IsDeletedAtTheEnd) {
  std::filesystem::path path;
  {
    const TempDir dir;
    path = dir.path();
    EXPECT_TRUE(std::filesystem::is_directory(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace firn
