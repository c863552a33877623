// A server's files on disk and in memory: restored, replaced, or on the wrong file system.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/id/layout.h"
#include "tests/server/program/running_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

namespace fs = std::filesystem;

class StateFilesTest : public testing::Test {
 protected:
  static WallMs StampOf(int64_t id) {
    return Layout::Firn().StartOf(Layout::Firn().Unpack(id)->tick);
  }
  // Returns an id that is at least `later` after another.
  static int64_t IdAfter(const RunningServer& server, int64_t id, Milliseconds later) {
    int64_t next = 0;
    EXPECT_TRUE(Eventually(kPatience, [&] {
      next = server.TakeId();
      return StampOf(next) >= StampOf(id) + later;
    }));
    return next;
  }

  using Contents = std::map<std::string, std::string>;
  static Contents FilesIn(const std::string& folder) {
    Contents found;
    if (!fs::exists(folder)) return found;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      std::ostringstream text;
      text << file.rdbuf();
      found[entry.path()] = text.str();
    }
    return found;
  }
  // Overwrites the existing files, as a disk appears whose last writes were lost.
  static void PutBack(const Contents& files) {
    for (const auto& [path, text] : files) {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      file << text;
      ASSERT_TRUE(file.flush()) << path;
    }
  }

  // A cluster whose ids run half an hour ahead of the wall clock, as after a restore.
  std::string LeadingCluster() {
    const std::string place = "dir://" + (dir_ / "registry");
    const Finished made = RunFirn({"init", "--brand-new", "--force", "--workers=2",
                                   "--timeout_ms=60000", "--registry=" + place});
    EXPECT_EQ(made.exit_code, 0) << made.out << made.err;
    return place;
  }

  TempDir dir_;
};

TEST_F(StateFilesTest, LostLastWritesOfAStateFolderRepeatNoId) {
  RunningServer server(dir_ / "state", {"--registry=" + LeadingCluster()});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  const int64_t first = server.TakeId();
  ASSERT_TRUE(server.KeepsItsHint());
  const Contents early = FilesIn(dir_ / "state");
  const int64_t last = IdAfter(server, first, Milliseconds(3'000));
  server.Kill();
  PutBack(early);
  server.StartAgain();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_GT(server.TakeId(), last) << server.log();
  EXPECT_NE(server.log().find("inherited: "), std::string::npos) << server.log();
}

TEST_F(StateFilesTest, AServerWithADamagedFileOfLeasesClaimsNothingUntilItIsDeleted) {
  RunningServer server(dir_ / "state", {"--registry=" + LeadingCluster()});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  const int64_t last = server.TakeId();
  ASSERT_TRUE(server.KeepsItsHint());
  server.Kill();
  std::vector<fs::path> damaged;
  for (const auto& [path, text] : FilesIn(dir_ / "state")) {
    if (fs::path(path).extension() != ".properties") continue;
    damaged.push_back(fs::path(path).replace_extension(".leases"));
    std::ofstream(damaged.back()) << "firn-leases 1 ";
  }
  ASSERT_FALSE(damaged.empty());
  server.StartAgain();
  const std::string why = "cannot read the bounds of earlier leases: " + damaged.front().string();
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return server.Admin("/v1/status").body.find(why) != std::string::npos;
  })) << server.log();
  EXPECT_EQ(server.Get("/genid").status, 503);
  EXPECT_NE(server.log().find("delete the file and restart the server"), std::string::npos);
  server.Kill();
  for (const fs::path& path : damaged) fs::remove(path);
  server.StartAgain();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_GT(server.TakeId(), last);
}

TEST_F(StateFilesTest, WithoutATmpfsAKilledServerClaimsAgainAndReportsIt) {
  const TempDir disk(kDiskDir);
  RunningServer server(dir_ / "state",
                       {"--registry=" + LeadingCluster(), "--grant_dir=" + disk.path().string()});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  const int64_t first = server.TakeId();
  EXPECT_NE(server.Admin("/v1/status").body.find("is not on a tmpfs"), std::string::npos);
  EXPECT_NE(server.log().find("is not on a tmpfs"), std::string::npos) << server.log();
  server.Kill();
  server.StartAgain();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_GT(server.TakeId(), first);
  EXPECT_EQ(server.log().find("inherited: "), std::string::npos) << server.log();
}

// Otherwise a file per state folder would fill the memory until the next boot.
TEST_F(StateFilesTest, AReleasedClaimLeavesNoGrantFile) {
  RunningServer server(dir_ / "state", {"--registry=" + LeadingCluster()});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  const int64_t first = server.TakeId();
  const std::string folder = server.grant_dir() + "/firn-" + std::to_string(geteuid());
  server.Kill();
  EXPECT_EQ(FilesIn(folder).size(), 1u) << "the next start resumes from it";
  server.StartAgain();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  server.process().Signal(SIGTERM);
  ASSERT_EQ(server.process().Wait(kPatience), 0) << server.log();
  EXPECT_TRUE(FilesIn(folder).empty());
  server.StartAgain();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_GT(server.TakeId(), first);
}

// --- a grant that can be neither written nor removed ---------------------------------------------

// Files of another process cannot grow, and no file in a folder can be removed.
class StuckGrant {
 public:
  StuckGrant(pid_t process, const std::string& folder) : process_(process), folder_(folder) {
    ok_ = Limit(0) && Protect(true);
  }
  ~StuckGrant() {
    Limit(RLIM_INFINITY);
    Protect(false);
  }
  bool ok() const { return ok_; }

 private:
  bool Limit(rlim_t bytes) const {
    rlimit limit{};
    if (prlimit(process_, RLIMIT_FSIZE, nullptr, &limit) != 0) return false;
    limit.rlim_cur = std::min(bytes, limit.rlim_max);
    return prlimit(process_, RLIMIT_FSIZE, &limit, nullptr) == 0;
  }
  bool Protect(bool on) const {
    const Result<FileHandle> folder = FileHandle::Open(folder_, O_RDONLY | O_DIRECTORY);
    int flags = on ? FS_IMMUTABLE_FL : 0;
    return folder.ok() && ioctl(folder->fd(), FS_IOC_SETFLAGS, &flags) == 0;
  }

  const pid_t process_;
  const std::string folder_;
  bool ok_ = false;
};

TEST_F(StateFilesTest, ReportsAGrantThatCannotBeRemovedAndRecovers) {
  RunningServer server(dir_ / "state", {});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  ASSERT_GT(server.TakeId(), 0);
  const std::string folder = server.grant_dir() + "/firn-" + std::to_string(geteuid());
  {
    const StuckGrant stuck(server.process().pid(), folder);
    if (!stuck.ok()) GTEST_SKIP() << "no limits and immutable folders here";
    ASSERT_TRUE(Eventually(kPatience, [&] { return server.Admin("/readyz").status == 503; }));
    RunningServer::Answer refused;
    ASSERT_TRUE(
        Eventually(kPatience, [&] { return (refused = server.Get("/genid")).status != 200; }));
    EXPECT_NE(refused.body.find("the grant file in memory can be neither written nor removed"),
              std::string::npos)
        << refused.body;
    const std::string status = server.Admin("/v1/status").body;
    EXPECT_NE(status.find(folder), std::string::npos) << status;
    EXPECT_NE(status.find("File too large"), std::string::npos) << status;
  }
  EXPECT_TRUE(Eventually(kPatience, [&] { return server.Admin("/readyz").status == 200; }));
  EXPECT_GT(server.TakeId(), 0);
}

// --- files that are not regular, and limits that are too low -------------------------------------

class ServerStartTest : public StateFilesTest {
 protected:
  std::vector<std::string> Command(const std::vector<std::string>& flags) const {
    std::vector<std::string> command = {
        BuiltProgram("firn-server"), "--listen=127.0.0.1:7609", "--advertise=127.0.0.1:7609",
        "--state_dir=" + (dir_ / "state"), "--grant_dir=" + memory_.path().string()};
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
  }
  std::string Fifo(const std::string& path) const {
    fs::remove(path);
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0) << path;
    return path;
  }
  void RefusesToStart(std::vector<std::string> command, const std::string& words,
                      int exit_code = 2) {
    const Finished ended = RunToEnd(command, kPatience);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    EXPECT_NE(ended.err.find(words), std::string::npos) << ended.err;
  }

  TempDir memory_{kMemoryDir};
};

TEST_F(ServerStartTest, RefusesFifosInTheStateFolderByName) {
  const std::string stem = dir_ / "state/firn:7609:2130706433";
  fs::create_directory(dir_ / "state");
  for (const std::string& path : {stem + ".properties", stem + ".lock"}) {
    RefusesToStart(Command({}), Fifo(path) + " is a FIFO");
    fs::remove(path);
  }
  RefusesToStart(Command({"--registry=static:1000", "--static_first_start"}),
                 Fifo(stem + ".grant") + " is a FIFO");
}

TEST_F(ServerStartTest, RefusesFifosNamedByFlags) {
  const std::string fifo = Fifo(dir_ / "fifo");
  for (const char* flag :
       {"stores_file", "registry_auth_file", "tinyid_token_file", "history_file", "flagfile"}) {
    RefusesToStart(Command({std::string("--") + flag + "=" + fifo}), fifo);
  }
  RefusesToStart(Command({"--tls_cert=" + fifo, "--tls_key=" + fifo}), fifo + " is a FIFO");
}

TEST_F(ServerStartTest, NamesTheLimitOfDescriptorsOrThreadsThatIsTooLow) {
  auto with = [&](const std::string& limit) {
    std::vector<std::string> command = {"prlimit", limit};
    for (auto& word : Command({})) command.push_back(std::move(word));
    return command;
  };
  RefusesToStart(with("--nofile=16:16"), "16 open files (ulimit -n)");
  // No thread has space for such a stack. Exit code 1: the service manager restarts the server,
  // because a shortage of memory or threads may pass.
  RefusesToStart(with("--stack=1099511627776"), "(ulimit -s)", 1);
#ifdef FIRN_PLAIN_BUILD  // sanitizers need more address space than there is memory
  RefusesToStart(with("--as=62914560"), "(ulimit -v)", 1);
#endif
}

TEST_F(ServerStartTest, EndsOnASignalWhileItWaitsForItsRegistry) {
  fs::create_directories(dir_ / "registry/.firn");
  const auto lock = FileHandle::Open(dir_ / "registry/.firn/lock", O_RDWR | O_CREAT);
  ASSERT_TRUE(lock.ok());
  ASSERT_EQ(flock(lock->fd(), LOCK_EX), 0);
  RunningServer server(dir_ / "state", {"--registry=dir://" + (dir_ / "registry")});
  ASSERT_TRUE(Eventually(kPatience, [&] { return !FilesIn(dir_ / "state").empty(); }));
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(kPatience), 0) << server.log();
  EXPECT_NE(server.log().find("stopped by a signal during its start"), std::string::npos)
      << server.log();
}

}  // namespace
}  // namespace firn
