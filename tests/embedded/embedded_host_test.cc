// The parts that a host program provides to an embedded issuer, and the parts of the process that
// the issuer leaves unchanged.

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/id/rack_split.h"
#include "common/log/log.h"
#include "server/node/embedded.h"
#include "tests/embedded/embedded_fixture.h"
#include "tests/support/memory_store.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

std::string Content(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

class EmbeddedHostTest : public EmbeddedFixture {};

// Refuses calls for more than one id.
class Single final : public Plugin {
 public:
  std::string_view name() const override { return "single"; }
  int order() const override { return 50; }
  std::optional<Refusal> Before(const Request& request) override {
    if (request.count == 1) return std::nullopt;
    return Refusal{Reason::kRejected, "one at a time", 0, false};
  }
};

class CountingHandler final : public RejectionHandler {
 public:
  void OnRefusal(const Request&, const Refusal& refusal) override { last = refusal.message; }
  std::string last;
};

TEST_F(EmbeddedHostTest, AcceptsAProgramsPluginsAndRefusalHandler) {
  Open().reset();
  ASSERT_EQ(Firn({"tags", "create", "order", "strategy=segment", "plugins=single", "--force"}), 0);
  const auto handler = std::make_shared<CountingHandler>();
  EmbeddedOptions options = Options();
  options.extensions.plugins["single"] = [](const TagDefinition&) -> std::shared_ptr<Plugin> {
    return std::make_shared<Single>();
  };
  options.extensions.rejections = handler;
  const auto ids = Embedded::Open(options);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*(*ids)->Next("order"), 1);
  EXPECT_EQ((*ids)->NextRuns("order", 2).code(), Code::kDenied);
  EXPECT_EQ(handler->last, "one at a time");
}

// A part that a host program provides, and the reason why Open refuses it.
struct Faulty {
  Extensions own;
  std::string says;
};

std::vector<Faulty> AllFaulty() {
  const auto plugin = [](const TagDefinition&) { return std::shared_ptr<Plugin>(); };
  const auto strategy = [](const TagDefinition&) { return std::shared_ptr<Strategy>(); };
  const auto memory = [] { return std::make_unique<MemoryStore>(); };
  using Store = std::unique_ptr<RangeStore>;
  return {
      {{.plugins = {{"limit", plugin}}}, "own plugin: 'limit' is already registered"},
      {{.plugins = {{"Limit 2", plugin}}}, "own plugin: 'Limit 2' is not a valid name"},
      {{.plugins = {{"single", nullptr}}}, "own plugin: 'single' has no maker function"},
      {{.strategies = {{"dated", strategy}}}, "own strategy: 'dated' is already registered"},
      {{.strategies = {{"voucher", nullptr}}}, "own strategy: 'voucher' has no maker function"},
      {{.stores = {{"own", memory}}}, "own store 'own': its name() returns 'memory'"},
      {{.stores = {{"My store", memory}}}, "own store 'My store': a store's name begins with a-z"},
      {{.stores = {{"own", nullptr}}}, "own store 'own': its maker is null"},
      {{.stores = {{"own", [] { return Store(); }}}}, "own store 'own': its maker returned null"},
      {{.stores = {{"own", []() -> Store { throw std::runtime_error("no disk"); }}}},
       "own store 'own': its maker threw: no disk"},
      {{.stores = {{"own", []() -> Store { throw 1; }}}}, "own store 'own': its maker threw"},
  };
}

TEST_F(EmbeddedHostTest, OpenReportsFaultsOfAProgramsOwnParts) {
  for (const Faulty& faulty : AllFaulty()) {
    EmbeddedOptions options = Options();
    options.extensions = faulty.own;
    const auto opened = Embedded::Open(options);
    ASSERT_FALSE(opened.ok()) << faulty.says;
    EXPECT_NE(opened.status().message().find("this program's " + faulty.says), std::string::npos)
        << opened.status();
  }
}

// A strategy that always issues 7, between its start and its stop.
class Sevens final : public Strategy {
 public:
  std::string_view name() const override { return "sevens"; }
  Status Start() override {
    ++starts;
    return {};
  }
  bool TryOne(Method, int64_t* id) override {
    *id = 7;
    return starts == 1 && stops == 0;
  }
  Verdict Issue(IssueCall& call) override {
    return call.Refuse({Reason::kDraining, "it is not between start and stop"});
  }
  int64_t count_max() const override { return 1; }
  void Close() override {}
  void Stop() override {
    ++stops;
    throw 1;
  }

  std::atomic<int> starts{0}, stops{0};
};

TEST_F(EmbeddedHostTest, StartsAndStopsAProgramsStrategyOnce) {
  Open().reset();
  for (const char* tag : {"one", "two"}) {
    ASSERT_EQ(Firn({"tags", "create", tag, "strategy=sevens", "--force"}), 0);
  }
  const auto sevens = std::make_shared<Sevens>();
  EmbeddedOptions options = Options();
  options.extensions.strategies["sevens"] =
      [sevens](const TagDefinition&) -> std::shared_ptr<Strategy> { return sevens; };
  {
    const auto ids = Embedded::Open(options);
    ASSERT_TRUE(ids.ok()) << ids.status();
    for (const char* tag : {"one", "two"}) {
      const Result<int64_t> id = (*ids)->Next(tag);
      EXPECT_EQ(id.value_or(0), 7) << id.status();
    }
    EXPECT_EQ(sevens->stops, 0);
  }
  EXPECT_EQ(sevens->starts, 1);
  EXPECT_EQ(sevens->stops, 1);
}

TEST_F(EmbeddedHostTest, SupportsKeysHistoryAndTextsLikeAServer) {
  Open().reset();
  std::ofstream(folder_ / "k1.key") << "000102030405060708090a0b0c0d0e0f\n";
  std::filesystem::permissions(folder_ / "k1.key", std::filesystem::perms::owner_read);
  ASSERT_EQ(
      Firn({"tags", "create", "shown", "strategy=segment", "plugins=history,obfuscate",
            "text=S-{id:09}", "obfuscate.width=9", "obfuscate.key=k1", "obfuscate.check=c6a13b"}),
      0);
  EmbeddedOptions options = Options();
  options.history_file = folder_ / "history";
  EXPECT_FALSE((*Embedded::Open(options))->Next("shown").ok()) << "no keys";
  options.key_dir = folder_.path();
  auto ids = Embedded::Open(options);
  ASSERT_TRUE(ids.ok()) << ids.status();
  const Result<std::string> text = (*ids)->NextText("shown");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->size(), 11u) << *text;
  EXPECT_TRUE(text->starts_with("S-")) << *text;
  EXPECT_NE(*text, "S-000000001") << "it is not obfuscated";
  (*ids)->Close();
  EXPECT_NE(Content(folder_ / "history").find(" shown 1 1 1 embedded -"), std::string::npos);
}

TEST_F(EmbeddedHostTest, RackAndWorkerMayBeChosen) {
  EmbeddedOptions options = Options();
  options.rack = 2;
  options.worker = 3;
  const auto ids = Embedded::Open(options);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*(*ids)->machine(), *RackSplit::Default((*ids)->layout()).Join(3, 2));
}

std::atomic<int> lines_heard{0};

TEST_F(EmbeddedHostTest, WritesNothingToTheHostsStderr) {
  const auto trouble = [this] {
    EmbeddedOptions options = Options();
    options.state_dir = folder_ / "elsewhere";
    options.session_timeout = options.ready_within = Milliseconds(1'000);
    for (const char* registry : {"dir:///proc/nowhere/registry", "zk://127.0.0.1:1/firn/gone",
                                 "zk://name.invalid:2181/firn/gone", "nonsense"}) {
      options.registry = registry;
      EXPECT_FALSE(Embedded::Open(options).ok());
    }
    options = Options();
    options.state_dir = "/proc/nowhere";
    EXPECT_FALSE(Embedded::Open(options).ok());
    const auto ids = Open();
    EXPECT_FALSE(ids->Next("stranger").ok());
    EXPECT_FALSE(ids->NextRuns("default", -1).ok());
  };
  testing::internal::CaptureStderr();
  trouble();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  SendLogTo([](const LogEntry& entry) { lines_heard += entry.text.empty() ? 0 : 1; });
  trouble();
  EXPECT_GT(lines_heard, 0);
  SendLogTo([](const LogEntry&) { throw 1; });
  trouble();
  SendLogTo(nullptr);
}

TEST_F(EmbeddedHostTest, EveryCallerOfCloseFindsItClosed) {
  const auto ids = Open();
  std::vector<std::jthread> threads;
  std::atomic<int> open{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      ids->Close();
      open += ids->machine().ok() ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(open, 0) << "given back, for each of them";
}

// Returns the threads of this process that would receive the signal.
int TakersOf(int signal) {
  int takers = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string status = Content(task.path() / "status");
    const size_t mask = status.find("SigBlk:");
    if (mask == std::string::npos) continue;  // it has ended
    const uint64_t blocked = std::stoull(status.substr(mask + 7), nullptr, 16);
    if ((blocked >> (signal - 1) & 1) == 0) ++takers;
  }
  return takers;
}

TEST_F(EmbeddedHostTest, SignalsGoToTheHostsOwnThreads) {
  const int before = TakersOf(SIGTERM);
  EmbeddedOptions options = Options();
  options.history_file = folder_ / "history";
  options.extensions.stores["memory"] = [] { return std::make_unique<MemoryStore>(); };
  const auto ids = Embedded::Open(options);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(TakersOf(SIGTERM), before);
  EXPECT_GT(TakersOf(SIGSEGV), before) << "what a thread causes itself is its own";
}

std::atomic<bool> heard_in_full{false};

// The host's locale may write 1.000.000.
TEST_F(EmbeddedHostTest, NumbersAreWrittenWithoutTheHostsLocale) {
  struct Dotted : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale(), new Dotted));
  SendLogTo([](const LogEntry& entry) {
    if (entry.text.find("refused 1000000000 of tag") != std::string::npos) heard_in_full = true;
  });
  const auto ids = Open();
  EXPECT_FALSE(ids->NextRuns("default", 1'000'000'000).ok());
  EXPECT_TRUE(ids->Next().ok());
  SendLogTo(nullptr);
  std::locale::global(before);
  EXPECT_TRUE(heard_in_full);
}

}  // namespace
}  // namespace firn
