#include "registry/dir/dir_tree.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "registry/dir/dir_coordinator.h"
#include "tests/support/process.h"
#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

namespace fs = std::filesystem;

class DirTreeTest : public testing::Test {
 protected:
  DirTreeTest() { std::ofstream(Machine("this")) << "this\n"; }

  std::string Machine(const std::string& name) const { return folder / ("machine-" + name); }
  DirOptions Options(const std::string& path) const {
    return {.path = path,
            .time_limit = Milliseconds(1000),
            .adopt = false,
            .machine_id_file = Machine("this")};
  }
  std::unique_ptr<DirTree> Open() {
    auto opened = DirTree::Open(Options(place), SystemClock(), SystemEntropy());
    if (!opened.ok()) Die(opened.status().ToString());
    return std::move(*opened);
  }
  Status Refusal(const DirOptions& options) {
    return DirTree::Open(options, SystemClock(), SystemEntropy()).status();
  }
  // Creates a registry with a root and a node "/a".
  std::unique_ptr<DirTree> Made() {
    auto tree = Open();
    EXPECT_TRUE(tree->Multi({Create("/", "root"), Create("/a", "first")}).status.ok());
    return tree;
  }
  static Write Create(const std::string& path, const std::string& data) {
    return Write::Create(path, data, Lifetime::kPersistent);
  }
  void WriteFile(const std::string& path, const std::string& bytes) {
    std::ofstream(place + "/" + path) << bytes;
  }

  TempDir folder;
  std::string place = folder / "registry";
};

// --- the directory's identity -------------------------------------------------------------------

TEST_F(DirTreeTest, NodesAreReadableFiles) {
  Made();
  std::ifstream file(place + "/a/node");
  std::string head, data;
  std::getline(file, head);
  std::getline(file, data);
  EXPECT_TRUE(head.starts_with("firn-node ")) << head;
  EXPECT_EQ(data, "first");
}

TEST_F(DirTreeTest, RefusesACopyUntilItIsAdopted) {
  Made();
  const std::string copy = folder / "copy";
  fs::copy(place, copy, fs::copy_options::recursive);
  const Status refused = Refusal(Options(copy));
  EXPECT_EQ(refused.code(), Code::kCorrupt);
  EXPECT_NE(refused.message().find("copy"), std::string::npos) << refused;
  DirOptions adopt = Options(copy);
  adopt.adopt = true;
  EXPECT_TRUE(Refusal(adopt).ok());
  EXPECT_TRUE(Refusal(Options(copy)).ok());
}

TEST_F(DirTreeTest, RefusesToAdoptWhileAProcessUsesTheDeletedDirectory) {
  auto user = Made();
  fs::remove_all(place);
  DirOptions adopt = Options(place);
  adopt.adopt = true;
  const Status refused = Refusal(adopt);
  EXPECT_EQ(refused.code(), Code::kConflict);
  EXPECT_NE(refused.message().find("still uses the registry"), std::string::npos) << refused;
  user.reset();
  EXPECT_TRUE(Refusal(adopt).ok());
}

// The inode number may be the original's: ext4 reuses a deleted folder's number first.
TEST_F(DirTreeTest, RefusesACopyInTheOriginalsPlace) {
  Made();
  const Result<DirIdentity> original = Identify(place, "/nowhere");
  if (original->born_ns == kBirthUntold) GTEST_SKIP() << "the file system has no birth times";
  const std::string copy = folder / "copy";
  fs::copy(place, copy, fs::copy_options::recursive);
  fs::remove_all(place);
  fs::copy(copy, place, fs::copy_options::recursive);
  EXPECT_EQ(Refusal(Options(place)).code(), Code::kCorrupt);

  // Repeats the check with a directory that certainly has the original's inode number.
  fs::remove_all(place);
  Made();
  DirIdentity earlier = *Identify(place, Machine("this"));
  --earlier.born_ns;
  WriteFile(".firn/identity", RenderIdentity(earlier));
  EXPECT_NE(Refusal(Options(place)).message().find("created later"), std::string::npos);
}

TEST_F(DirTreeTest, AcceptsAMovedDirectory) {
  Made();
  fs::rename(place, folder / "elsewhere");
  EXPECT_TRUE(Refusal(Options(folder / "elsewhere")).ok());
}

TEST_F(DirTreeTest, RefusesAnotherMachine) {
  Made();
  std::ofstream(Machine("other")) << "other\n";
  DirOptions options = Options(place);
  options.machine_id_file = Machine("other");
  EXPECT_NE(Refusal(options).message().find("machine"), std::string::npos);
}

TEST_F(DirTreeTest, RefusesADirectoryWithOtherContents) {
  fs::create_directories(place);
  WriteFile("letters.txt", "dear");
  EXPECT_EQ(Refusal(Options(place)).code(), Code::kCorrupt);
}

TEST_F(DirTreeTest, RefusesAMissingOrDamagedIdentity) {
  Made();
  WriteFile(".firn/identity", "{}");
  EXPECT_EQ(Refusal(Options(place)).code(), Code::kCorrupt);
  fs::remove(place + "/.firn/identity");
  EXPECT_EQ(Refusal(Options(place)).code(), Code::kCorrupt);
}

TEST_F(DirTreeTest, DoesNotTrustADirectoryReplacedWhileOpen) {
  auto tree = Made();
  fs::rename(place, folder / "away");
  EXPECT_EQ(tree->Read("/").code(), Code::kUnavailable);
  EXPECT_EQ(Refusal(Options(place)).code(), Code::kConflict);  // while the first one is in use
  fs::remove_all(place);
  EXPECT_TRUE(Refusal(Options(folder / "other")).ok());
  fs::rename(folder / "other", place);
  EXPECT_EQ(tree->Read("/").code(), Code::kCorrupt);
  EXPECT_EQ(tree->Multi({Write::Set("/", "x", 0)}).status.code(), Code::kCorrupt);
}

// --- bad files ----------------------------------------------------------------------------------

TEST_F(DirTreeTest, ADamagedNodeIsCorruptAndDoesNotAffectOthers) {
  auto tree = Made();
  for (const std::string& bytes :
       {std::string(), std::string("firn-node "), std::string(1 << 20, 'x')}) {
    WriteFile("a/node", bytes);
    EXPECT_EQ(tree->Read("/a").code(), Code::kCorrupt);
    const WriteOutcome set = tree->Multi({Write::Check("/", 0), Write::Set("/a", "x", 0)});
    EXPECT_EQ(set.status.code(), Code::kCorrupt);
    EXPECT_EQ(set.failed, 1);
    EXPECT_EQ(tree->Read("/")->data, "root");
  }
}

TEST_F(DirTreeTest, IgnoresEntriesThatAreNotNodes) {
  auto tree = Made();
  fs::create_directories(place + "/empty");
  fs::create_directories(place + "/%zz");
  fs::create_directory_symlink(place, place + "/circle");
  WriteFile("a file", "x");
  WriteFile("%zz/node", "x");
  EXPECT_EQ(*tree->List("/"), std::vector<std::string>{"a"});
  EXPECT_EQ(tree->Read("/empty").code(), Code::kNotFound);
  EXPECT_TRUE(tree->Multi({Create("/empty", "now a node")}).status.ok());
  tree->Multi({Write::Create("/live", "", Lifetime::kEphemeral)});
  tree.reset();
  EXPECT_EQ(*Open()->List("/"), (std::vector<std::string>{"a", "empty"}));
}

TEST_F(DirTreeTest, AFolderWithOtherContentsStaysButIsNotANode) {
  auto tree = Made();
  WriteFile("a/notes", "x");
  EXPECT_TRUE(tree->Multi({Write::Erase("/a", 0)}).status.ok());
  EXPECT_EQ(*tree->List("/"), std::vector<std::string>());
  EXPECT_TRUE(fs::exists(place + "/a/notes"));
}

// --- crashes ------------------------------------------------------------------------------------

TEST_F(DirTreeTest, AJournalIsRepeatedBeforeAnythingElse) {
  auto tree = Made();
  const Node next{"second", {1, 5, WallMs(7), 0}};
  WriteFile(".firn/journal", RenderJournal({{"/a", RenderNode("a", next)},
                                            {"/b", RenderNode("b", next)},
                                            {"/none", std::nullopt}}));
  EXPECT_EQ(tree->Read("/a")->data, "second");
  NodeStat stat = tree->Read("/b")->stat;
  EXPECT_GT(std::exchange(stat.changed_zxid, 0), 0) << "the repetition counts as a change";
  EXPECT_EQ(stat, next.stat);
  EXPECT_FALSE(fs::exists(place + "/.firn/journal"));
}

TEST_F(DirTreeTest, ADamagedJournalStopsEverything) {
  auto tree = Made();
  WriteFile(".firn/journal", "firn-journal 0123\nput 2 1\n/ax");
  EXPECT_EQ(tree->Read("/").code(), Code::kCorrupt);
  EXPECT_EQ(tree->Multi({Write::Set("/", "x", 0)}).status.code(), Code::kCorrupt);
}

// Writes until it is killed. Keeps "/a" and "/b" equal, counts in "/c", and reports acknowledged
// writes.
[[noreturn]] void WriteForEver(DirTree& tree, int acknowledged) {
  for (int64_t n = tree.Read("/a")->stat.version;; ++n) {
    const std::string data = std::to_string(n);
    const bool both = tree.Multi({Write::Set("/a", data, n), Write::Set("/b", data, n),
                                  Write::Create("/live" + data, "", Lifetime::kEphemeral)})
                          .status.ok();
    const bool one = tree.Multi({Write::Check("/a", n + 1), Write::Set("/c", data, n)}).status.ok();
    if (!both || !one || write(acknowledged, &n, sizeof n) != sizeof n) _exit(2);
  }
}

TEST_F(DirTreeTest, AKilledWriterLeavesAReadableTreeWithoutPartialMultis) {
  Made()->Multi({Create("/b", ""), Create("/c", "")});
  SeededEntropy entropy(TestSeed());
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK), 0);
    const pid_t writer = fork();
    if (writer == 0) WriteForEver(*Open(), pipe_ends[1]);
    close(pipe_ends[1]);
    poll(nullptr, 0, static_cast<int>(2 + entropy.Below(20)));
    kill(writer, SIGKILL);
    int ending = 0;
    ASSERT_EQ(waitpid(writer, &ending, 0), writer);
    ASSERT_TRUE(WIFSIGNALED(ending)) << ending;
    int64_t acknowledged = -1;
    for (int64_t n; read(pipe_ends[0], &n, sizeof n) == sizeof n;) acknowledged = n;
    close(pipe_ends[0]);

    auto tree = Open();
    const auto a = tree->Read("/a"), b = tree->Read("/b"), c = tree->Read("/c");
    ASSERT_TRUE(a.ok() && b.ok() && c.ok()) << a.status() << b.status() << c.status();
    EXPECT_EQ(a->stat.version, b->stat.version);
    EXPECT_EQ(a->data == "first", b->data.empty());
    EXPECT_TRUE(b->stat.version == 0 || a->data == b->data);
    EXPECT_GE(c->stat.version, acknowledged + 1);
    EXPECT_LE(a->stat.version - c->stat.version, 1);
    EXPECT_EQ(*tree->List("/"), (std::vector<std::string>{"a", "b", "c"}));
    // Makes all three nodes equal again for the next writer.
    if (a->stat.version > c->stat.version) {
      ASSERT_TRUE(tree->Multi({Write::Set("/c", a->data, c->stat.version)}).status.ok());
    }
  }
}

// A writer that has forked a child, as servers do that fork before they serve; the child lives
// until the writing ends of `stay` are closed. A child closes its copies of unshared files when it
// first runs, so the writer waits for that.
[[noreturn]] void WriteWithAChild(DirTree& tree, int acknowledged, const int (&stay)[2]) {
  int runs[2];
  if (pipe2(runs, O_CLOEXEC) != 0) _exit(2);
  char none = 0;
  if (fork() == 0) {
    close(stay[1]);
    if (write(runs[1], "r", 1) != 1) _exit(1);
    _exit(read(stay[0], &none, 1) == 0 ? 0 : 1);
  }
  if (read(runs[0], &none, 1) != 1) _exit(2);
  WriteForEver(tree, acknowledged);
}

TEST_F(DirTreeTest, AKilledProcessWithLiveChildrenLeavesNoLockSessionOrName) {
  Made()->Multi({Create("/b", ""), Create("/c", "")});
  constexpr int kRounds = 8;  // a writer nearly always holds the lock
  for (int round = 0; round < kRounds; ++round) {
    int stay[2], pipe_ends[2];
    ASSERT_EQ(pipe2(stay, O_CLOEXEC) + pipe2(pipe_ends, O_CLOEXEC), 0);
    const pid_t writer = fork();
    if (writer == 0) WriteWithAChild(*Open(), pipe_ends[1], stay);
    int64_t acknowledged = 0;
    ASSERT_EQ(read(pipe_ends[0], &acknowledged, sizeof acknowledged), 8);
    kill(writer, SIGKILL);
    ASSERT_EQ(waitpid(writer, nullptr, 0), writer);

    const auto tree = DirTree::Open(Options(place), SystemClock(), SystemEntropy());
    ASSERT_TRUE(tree.ok()) << tree.status();
    EXPECT_EQ((*tree)->List("/")->size(), 3u) << "its ephemeral nodes still exist";
    EXPECT_EQ(DirWitness::StaleUser(place, 0).value_or(std::nullopt), getpid())
        << "its name is still in use";
    const int64_t a = (*tree)->Read("/a")->stat.version, c = (*tree)->Read("/c")->stat.version;
    if (a > c) {
      ASSERT_TRUE((*tree)->Multi({Write::Set("/c", "", c)}).status.ok());
    }
    for (const int end : {stay[0], stay[1], pipe_ends[0], pipe_ends[1]}) close(end);
  }
}

TEST_F(DirTreeTest, AFullDiskFailsWritesAndLeavesTheTreeUnchanged) {
  Made();
  const pid_t child = fork();
  if (child == 0) {
    auto tree = DirTree::Open(Options(place), SystemClock(), SystemEntropy());
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};  // no file may grow beyond it
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string large(100'000, 'x');
    const auto refused = [&](const std::vector<Write>& writes) {
      return (*tree)->Multi(writes).status.code() == Code::kUnavailable;
    };
    _exit(refused({Write::Set("/a", large, 0)}) &&
                  refused({Write::Set("/", "x", 0), Write::Set("/a", large, 0)}) &&
                  (*tree)->Read("/a")->data == "first" && (*tree)->Read("/")->data == "root"
              ? 0
              : 1);
  }
  int ending = 0;
  ASSERT_EQ(waitpid(child, &ending, 0), child);
  EXPECT_EQ(ending, 0);
  EXPECT_EQ(Open()->Read("/a")->data, "first");
}

// --- locks --------------------------------------------------------------------------------------

TEST_F(DirTreeTest, AHungLockHolderMakesOthersUnavailable) {
  auto tree = Made();
  const int held = open((place + "/.firn/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  EXPECT_EQ(tree->Read("/").code(), Code::kUnavailable);
  EXPECT_EQ(tree->Multi({Write::Set("/", "x", 0)}).status.code(), Code::kUnavailable);
  close(held);
  EXPECT_EQ(tree->Read("/")->data, "root");
}

TEST_F(DirTreeTest, AForkedChildNeitherWritesNorEndsItsParentsSession) {
  auto parent = DirCoordinator::Open(Options(place), SystemClock(), SystemEntropy());
  ASSERT_TRUE(parent.ok()) << parent.status();
  auto tree = Made();
  bool made = false;
  (*parent)->Multi({Write::Create("/live", "", Lifetime::kEphemeral)},
                   [&](const WriteOutcome& outcome) { made = outcome.status.ok(); });
  ASSERT_TRUE(Eventually(Milliseconds(5000), [&] { return (*parent)->Dispatch({}), made; }));
  const pid_t child = fork();
  if (child == 0) {
    Code code = Code::kOk;
    (*parent)->Multi({Write::Set("/", "child", 0)},
                     [&](const WriteOutcome& outcome) { code = outcome.status.code(); });
    (*parent)->Dispatch({});
    parent->reset();
    _exit(code == Code::kUnavailable ? 0 : 1);
  }
  int ending = 0;
  ASSERT_EQ(waitpid(child, &ending, 0), child);
  EXPECT_EQ(ending, 0);
  EXPECT_EQ(tree->Read("/live")->stat.ephemeral_owner, (*parent)->session());
  EXPECT_EQ(tree->Read("/")->data, "root");
}

}  // namespace
}  // namespace firn
