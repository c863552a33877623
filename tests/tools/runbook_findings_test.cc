// Tests that the commands in tools/package/RUNBOOK.md fix the findings of `firn audit`: each case
// creates a finding in a real ZooKeeper, audits it, and runs the command of its section.

#include <memory>
#include <regex>
#include <sstream>

#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "tests/support/virtual_clock.h"
#include "tests/support/zookeeper.h"
#include "tests/tools/firn_cluster_fixture.h"

namespace firn {
namespace {

constexpr Milliseconds kShellPatience{120'000};
constexpr char kInit[] = " --brand-new --force --workers=4";  // the fixture's flags

class RunbookFindingsTest;

// A finding, the heading of the section that quotes it, and the section's remedy.
struct Finding {
  const char* name;
  void (*inflict)(RunbookFindingsTest& cluster);
  const char* heading;
  const char* way;
};

std::ostream& operator<<(std::ostream& out, const Finding& finding) { return out << finding.name; }

class RunbookFindingsTest : public FirnClusterTest, public testing::WithParamInterface<Finding> {
 public:
  static void SetUpTestSuite() {
    auto started = ZooKeeper::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    zookeeper_ = *std::move(started);
    std::ostringstream text;
    text << std::ifstream(FIRN_SOURCE_DIR "/tools/package/RUNBOOK.md").rdbuf();
    page_ = text.str();
  }
  static void TearDownTestSuite() { zookeeper_.reset(); }
  void SetUp() override {
    place_ = std::string("/firn/") + GetParam().name;
    registry_ = "zk://" + zookeeper_->hosts() + place_;
    Init();
  }

  std::string path_;  // path of the node to delete

  using FirnClusterTest::Break;
  using FirnClusterTest::Firn;
  using FirnClusterTest::Put;
  void Create(const std::string& path, const std::string& data) {
    Put(Write::Create(path, data, Lifetime::kPersistent));
  }
  void Erase(const std::string& path) { Put(Write::Erase(path, Write::kAnyVersion)); }
  void PutRecord(Slot slot, const SlotRecord& record) {
    Break(SlotPath(slot), FormatSlotRecord(record));
  }
  ClusterMeta Meta() { return *ParseMeta(DataOf(kMetaPath)); }
  void SetMeta(void (*change)(ClusterMeta& meta)) {
    ClusterMeta meta = Meta();
    change(meta);
    Break(kMetaPath, FormatMeta(meta));
  }
  // Creates a node in a folder of servers' nodes.
  void Announced(std::string_view folder, const std::string& name, const std::string& data) {
    Create(std::string(kServicePath), "");
    Create(std::string(folder), "");
    Create(std::string(folder) + "/" + name, data);
  }
  void RestAtNoVersion(Slot slot) {
    ASSERT_TRUE(zookeeper_->SetVersion(place_ + SlotPath(slot), -1).ok());
  }
  static WallMs Now() { return SystemClock().Wall(); }

 protected:
  std::string DataOf(const std::string& path) {
    auto coordinator = OpenCoordinator(registry_, {}, SystemClock(), SystemEntropy());
    BlockingCoordinator registry(**coordinator, SystemClock());
    EXPECT_TRUE(registry.Connect(kShellPatience).ok());
    const auto node = registry.Read(path);
    return node.ok() ? node->data : node.status().message();
  }

  // Returns the section whose heading contains these words.
  static std::string Section(const std::string& words) {
    const size_t heading = page_.find(words);
    const size_t end = std::min(page_.find("\n### ", heading), page_.size());
    return heading == std::string::npos ? "" : page_.substr(heading, end - heading);
  }

  Finished Shell(const std::string& command) {
    return RunToEnd({"sh", "-c", command}, kShellPatience);
  }
  // Runs the page's command with the built program.
  Finished Pasted(const std::string& command) {
    return Shell(BuiltProgram("firn") + command.substr(std::string("firn").size()));
  }
  // Runs the page's delete command on this cluster's node.
  Finished Delete(const std::string& path) {
    std::smatch line;
    const std::regex shown(
        "\n    (/usr/share/zookeeper/bin/[^\n]*) -server [^ ]* ([a-z]+) /[^\n]*");
    EXPECT_TRUE(std::regex_search(page_, line, shown));
    return Shell(line[1].str() + " -server " + zookeeper_->hosts() + " " + line[2].str() + " '" +
                 place_ + path + "'");
  }

  // Applies the section's remedy. `audit`: the audit with the finding.
  Finished GoOut(const std::string& way, const Json& audit) {
    if (way.starts_with("elete ")) return Delete(path_);
    std::string command = way.substr(1);
    if (command == "firn restore" && audit.contains("restore")) {
      command = std::regex_replace(audit.at("restore").text(), std::regex("NUMBER"), "5");
      command = std::regex_replace(command, std::regex("STRATEGY"), "segment");
      command = std::regex_replace(command, std::regex(" --from=DOCUMENT"), "");
    } else {
      command = std::regex_replace(command, std::regex("MACHINE"), "4");
      command += (command == "firn init" ? kInit : "") + (" --registry=" + registry_);
    }
    return Pasted(command);
  }

 private:
  static std::unique_ptr<ZooKeeper> zookeeper_;
  static std::string page_;
  std::string place_;
};

std::unique_ptr<ZooKeeper> RunbookFindingsTest::zookeeper_;
std::string RunbookFindingsTest::page_;

bool Finds(const Json& audit, const std::string& words) {
  for (const Json& fault : audit.at("faults")) {
    if (fault.text().find(words) != std::string::npos) return true;
  }
  return false;
}

TEST_P(RunbookFindingsTest, TheSectionsCommandFixesTheFinding) {
  const Finding& finding = GetParam();
  FirnJson({"audit"});
  finding.inflict(*this);
  const Json audit = FirnJson({"audit"}, 1);
  const std::string heading = finding.heading;
  EXPECT_TRUE(heading == "A damaged node" || Finds(audit, heading)) << audit.at("faults");
  EXPECT_EQ(audit.contains("restore"), std::string(finding.way) == "`firn restore")
      << "the audit and the page name different commands";
  const std::string section = Section(heading);
  EXPECT_NE(section.find(finding.way), std::string::npos) << section;
  const Finished done = GoOut(finding.way, audit);
  EXPECT_EQ(done.exit_code, 0) << done.err << done.out;
  const Json after = FirnJson({"audit"});
  EXPECT_TRUE(after.at("faults").empty()) << finding.way << ": " << after.at("faults");
}

const Finding kFindings[] = {
    {"Frozen", [](auto& c) { c.SetMeta([](ClusterMeta& m) { m.frozen = true; }); },
     "the cluster is frozen", "`firn restore"},
    {"HalfMade",
     [](auto& c) {
       c.SetMeta([](ClusterMeta& m) {
         m.frozen = true;
         m.reason = kBeingMade;
       });
       c.Erase(kClockPath);
     },
     "the cluster is only partly created", "`firn init"},
    {"RecordDamaged", [](auto& c) { c.Break("/machines/1/0", "{"); }, "A damaged node",
     "`firn restore"},
    {"TagDamaged",
     [](auto& c) {
       EXPECT_EQ(c.Firn({"tags", "create", "order"}).exit_code, 0);
       c.Break("/tags/order", "{");
     },
     "A damaged node", "`firn restore"},
    {"NoVersion",
     [](auto& c) {
       c.RestAtNoVersion({1, 0});
     },
     "has version -1", "`firn restore"},
    {"FarAhead",
     [](auto& c) {
       c.PutRecord({1, 0}, {.nonce = Nonce(1, 1), .bound = c.Now() + 100 * kAnHour, .owner = "a"});
     },
     "more than a day ahead", "`firn restore"},
    {"ClockMissing", [](auto& c) { c.Erase(kClockPath); }, "the clock node is missing",
     "`firn restore"},
    {"EraThatIsOver", [](auto& c) { c.Create(EraPath(Nonce(9, 9)), ""); },
     "the node of an earlier era still exists", "`firn restore"},
    {"EraMissing", [](auto& c) { c.Erase(EraPath(c.Meta().era)); },
     "the node of the root node's era is missing", "`firn restore"},
    {"RecordMissing",
     [](auto& c) {
       c.Erase(SlotPath({1, 0}));
     },
     "records are missing", "`firn restore"},
    {"ForeignNode",
     [](auto& c) {
       c.Create("/machines/9", "");
       c.path_ = "/machines/9";
     },
     "there is a foreign node among", "elete that node"},
    {"ForeignProvider",
     [](auto& c) {
       c.Announced(kProvidersPath, "rubbish", "");
       c.path_ = std::string(kProvidersPath) + "/rubbish";
     },
     "a provider's name cannot be read", "elete that node"},
    {"ForeignWord",
     [](auto& c) {
       c.Announced(kConfiguratorsPath, "h%3A1", R"({"weight":-1})");
       c.path_ = std::string(kConfiguratorsPath) + "/h%3A1";
     },
     "is ignored", "elete that node"},
    {"LiveForEver",
     [](auto& c) {
       c.Create(LivePath({1, 0}), FormatLiveMark({"a:1", Nonce()}));
       c.path_ = LivePath({1, 0});
     },
     "is not ephemeral and will never disappear", "elete that node"},
    {"LiveUnreadable",
     [](auto& c) {
       c.Create(LivePath({1, 0}), "rubbish");
       c.path_ = LivePath({1, 0});
     },
     "its live node cannot be read", "elete it"},
    {"SameNonce",
     [](auto& c) {
       c.PutRecord({0, 0}, {.nonce = Nonce(1, 1), .bound = c.Now(), .owner = "a"});
       c.PutRecord({0, 1}, {.nonce = Nonce(1, 1), .bound = c.Now(), .owner = "a"});
     },
     "has the same nonce as", "`firn restore --set=retire=MACHINE"},
    {"BeyondItsBound",
     [](auto& c) {
       c.PutRecord({0, 1}, {.nonce = Nonce(1, 1), .bound = c.Now(), .since = c.Now() + kAnHour});
     },
     "its claim begins beyond its bound", "`firn restore --set=retire=MACHINE"},
    {"AboveTheFloor",
     [](auto& c) {
       c.SetMeta([](ClusterMeta& m) { m.floor = RunbookFindingsTest::Now() + kAnHour; });
       c.PutRecord({0, 1}, {.nonce = Nonce(1, 1),
                            .bound = c.Now() + 2 * kAnHour,
                            .owner = "a",
                            .since = c.Now(),
                            .lease = SlotLease{"shop", "a:1"}});
     },
     "its claim began below the floor and reaches above it", "`firn restore --again"},
};

INSTANTIATE_TEST_SUITE_P(Findings, RunbookFindingsTest, testing::ValuesIn(kFindings),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace firn
