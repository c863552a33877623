#include "server/front/desk/tag_rights.h"

#include <atomic>
#include <fstream>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace {

// A thread with `reads_slowly` blocks after its read while `stalled` is set, as on an unresponsive
// disk.
thread_local bool reads_slowly = false;
std::atomic<bool> stalled{false}, reading{false};

}  // namespace

extern "C" ssize_t pread(int fd, void* bytes, size_t size, off_t at) {
  using Function = ssize_t (*)(int, void*, size_t, off_t);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pread"));
  const ssize_t got = real(fd, bytes, size, at);
  if (!reads_slowly) return got;
  reading = true;
  reading.notify_all();
  stalled.wait(true);
  return got;
}

namespace firn::front {
namespace {

class TagRightsTest : public testing::Test {
 protected:
  void Write(const std::string& text) const { std::ofstream(file_) << text; }
  Status Loaded(const std::string& text) {
    Write(text);
    return rights_.Load();
  }
  // Returns when the file has been read; the thread continues after GoOn.
  std::jthread LoadSlowly() {
    stalled = true;
    reading = false;
    std::jthread loader([this] {
      reads_slowly = true;
      EXPECT_TRUE(rights_.Load().ok());
    });
    reading.wait(false);
    return loader;
  }
  static void GoOn() {
    stalled = false;
    stalled.notify_all();
  }

  TempDir dir_;
  const std::string file_ = dir_ / "names";
  TagRights rights_{file_};
  TagRights::Reader reader_{rights_};
};

TEST_F(TagRightsTest, GrantWhatTheLineOfAnyNamePermits) {
  ASSERT_TRUE(Loaded("# who may what\n\n"
                     "shop.example   order, order item,Müller & Söhne\n"
                     "spiffe://x/etl\t*\r\n"
                     "idle refund")
                  .ok());
  EXPECT_TRUE(reader_.Permit({"shop.example"}, "", "order"));
  EXPECT_TRUE(reader_.Permit({"shop.example"}, "", "order item"));
  EXPECT_TRUE(reader_.Permit({"shop.example"}, "", "Müller & Söhne"));
  EXPECT_FALSE(reader_.Permit({"shop.example"}, "", "refund"));
  EXPECT_FALSE(reader_.Permit({"shop.example"}, "", "*"));
  EXPECT_FALSE(reader_.Permit({"Shop.example"}, "", "order")) << "names are compared byte by byte";
  EXPECT_TRUE(reader_.Permit({"unknown", "idle"}, "", "refund")) << "any of its names counts";
  EXPECT_TRUE(reader_.Permit({"spiffe://x/etl"}, "", "whatever"));
  EXPECT_FALSE(reader_.Permit({"unknown"}, "", "order"));
  EXPECT_FALSE(reader_.Permit({}, "", "order"));
  const std::map<std::string, uint64_t> counted{
      {"shop.example", 2}, {"Shop.example", 1}, {"unknown", 1}, {"", 1}};
  EXPECT_EQ(rights_.refused(), counted);
}

TEST_F(TagRightsTest, AnEmptyFileGrantsNothing) {
  ASSERT_TRUE(Loaded("").ok());
  EXPECT_FALSE(reader_.Permit({"shop.example"}, "", "order"));
}

TEST_F(TagRightsTest, NamesTheInvalidLineAndKeepsTheEarlierRights) {
  ASSERT_TRUE(Loaded("a order\n").ok());
  for (const std::string wrong : {"a order\nb\n", "a order\na refund\n", "a order\nb ,\n"}) {
    const Status status = Loaded(wrong);
    EXPECT_EQ(status.code(), Code::kInvalid) << wrong;
    EXPECT_NE(status.message().find(file_ + ": line 2"), std::string::npos) << status;
    EXPECT_TRUE(rights_.Load().ok()) << "a fault is reported once";
    EXPECT_TRUE(reader_.Permit({"a"}, "", "order"));
  }
  ASSERT_EQ(std::remove(file_.c_str()), 0);
  EXPECT_EQ(rights_.Load().code(), Code::kNotFound);
  EXPECT_TRUE(reader_.Permit({"a"}, "", "order"));
  ASSERT_TRUE(Loaded("b order\n").ok());
  EXPECT_FALSE(reader_.Permit({"a"}, "", "order")) << "its line was removed";
}

TEST_F(TagRightsTest, ReturnsTheLimitOfAClientsLeases) {
  using Names = TagRights::Names;
  ASSERT_TRUE(Loaded("all *\n"
                     "some order,@lease:20\n"
                     "few *, @lease:3\n"
                     "none *,@lease:0\n"
                     "any @lease\n"
                     "tags order\n"
                     "redis:alice @lease:7\n")
                  .ok());
  struct Row {
    Names names;
    std::string user, name;
    std::optional<size_t> most;
  };
  const Row rows[] = {{{"all"}, "", "all", {}},
                      {{"some"}, "", "some", 20},
                      {{"few"}, "", "few", 3},
                      {{"none"}, "", "none", 0},
                      {{"any"}, "", "any", {}},
                      {{"tags", "few", "some", "none"}, "", "some", 20},
                      {{"some", "any", "all"}, "", "any", {}},
                      {{}, "redis:alice", "redis:alice", 7},
                      {{"few"}, "redis:alice", "redis:alice", 7},
                      {{"some"}, "redis:alice", "some", 20}};
  for (const Row& row : rows) {
    const std::optional<LeaseClient> client = reader_.PermitLeases(row.names, row.user);
    ASSERT_TRUE(client) << row.name;
    EXPECT_EQ(client->name, row.name);
    EXPECT_EQ(client->leases_max, row.most) << row.name;
  }
  EXPECT_TRUE(rights_.refused().empty());
  EXPECT_FALSE(reader_.PermitLeases({"tags"}, ""));
  EXPECT_FALSE(reader_.PermitLeases({"redis:alice"}, "")) << "no certificate is a login";
  EXPECT_FALSE(reader_.PermitLeases({}, ""));
  EXPECT_EQ(rights_.refused().at("tags"), 1u);
  EXPECT_TRUE(reader_.Permit({"few"}, "", "order"));
  EXPECT_FALSE(reader_.Permit({"some"}, "", "@lease:20"))
      << "the number is no part of a tag's name";
}

TEST_F(TagRightsTest, RefusesALeaseRightWithoutAProperNumber) {
  for (const std::string wrong :
       {"@lease:", "@lease:x", "@lease:-1", "@lease:007", "@lease:100001", "@lease:1,@lease:2"}) {
    const Status status = Loaded("a order," + wrong + "\n");
    EXPECT_EQ(status.code(), Code::kInvalid) << wrong;
    EXPECT_NE(status.message().find("line 1: "), std::string::npos) << status;
    EXPECT_NE(status.message().find("@lease"), std::string::npos) << status;
  }
}

TEST_F(TagRightsTest, RefusesAMisspeltLeaseRight) {
  for (const std::string wrong :
       {"@leases", "@lease20", "@lease-20", "@lease 20", "@lease=20", "@Lease", "@LEASE:20"}) {
    const Status status = Loaded("a order\nb refund," + wrong + "\n");
    EXPECT_EQ(status.code(), Code::kInvalid) << wrong;
    for (const std::string& part : {std::string("line 2: "), wrong, std::string("@lease:20 for")}) {
      EXPECT_NE(status.message().find(part), std::string::npos) << status;
    }
  }
  EXPECT_TRUE(Loaded("a @le,@shop,lease,x@leases\n").ok()) << "these are tags";
}

TEST_F(TagRightsTest, OnlyItsOwnRightPermitsToCreateTags) {
  ASSERT_TRUE(Loaded("all *\nsome order,@create\nredis:alice @create\n").ok());
  EXPECT_FALSE(reader_.PermitCreation({"all"}, ""));
  EXPECT_TRUE(reader_.PermitCreation({"all", "some"}, ""));
  EXPECT_TRUE(reader_.PermitCreation({}, "redis:alice"));
  EXPECT_FALSE(reader_.PermitCreation({"redis:alice"}, "")) << "no certificate is a login";
  EXPECT_TRUE(rights_.refused().empty());
  for (const std::string wrong : {"@creates", "@Create", "@create:5"}) {
    EXPECT_NE(Loaded("a " + wrong + "\n").message().find("write @create"), std::string::npos);
  }
}

TEST_F(TagRightsTest, EveryReaderSeesEveryChange) {
  ASSERT_TRUE(Loaded("a order\n").ok());
  std::atomic<bool> gone = false;
  std::atomic<int> permitted_afterwards = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        TagRights::Reader reader(rights_);
        for (bool last = false; !last;) {
          last = gone;
          if (reader.Permit({"a"}, "", "order") && last) ++permitted_afterwards;
        }
      });
    }
    ASSERT_TRUE(Loaded("a refund\n").ok());
    gone = true;
  }
  EXPECT_EQ(permitted_afterwards, 0);
  EXPECT_TRUE(reader_.Permit({"a"}, "", "refund"));
}

TEST_F(TagRightsTest, NoCallWaitsForTheFile) {
  ASSERT_TRUE(Loaded("a order\n").ok());
  Write("a refund\n");
  std::jthread loader = LoadSlowly();
  std::future<bool> permitted = std::async(std::launch::async, [this] {
    TagRights::Reader newcomer(rights_);
    const bool other = newcomer.Permit({"a"}, "", "refund");
    return newcomer.Permit({"a"}, "", "order") && !other && rights_.refused().contains("a");
  });
  const bool answered = permitted.wait_for(kPatience) == std::future_status::ready;
  GoOn();
  EXPECT_TRUE(answered) << "calls must not wait while the file is read";
  EXPECT_TRUE(permitted.get() || !answered) << "the earlier rights must stay in force";
  loader.join();
  EXPECT_TRUE(reader_.Permit({"a"}, "", "refund"));
}

TEST_F(TagRightsTest, ASlowReadDoesNotRestoreOldRights) {
  Write("a order\n");
  std::jthread loader = LoadSlowly();
  ASSERT_TRUE(Loaded("a gift\n").ok())
      << "shorter than the old file, which must not show behind it";
  GoOn();
  loader.join();
  EXPECT_TRUE(reader_.Permit({"a"}, "", "gift"));
  EXPECT_FALSE(reader_.Permit({"a"}, "", "order"));
}

TEST_F(TagRightsTest, LimitsTheNamesThatItCounts) {
  for (size_t i = 0; i < TagRights::kNamesCounted + 10; ++i) {
    reader_.Permit({"n" + std::to_string(i)}, "", "order");
  }
  EXPECT_EQ(rights_.refused().size(), TagRights::kNamesCounted + 1);
  EXPECT_EQ(rights_.refused().at("others"), 10u);
}

}  // namespace
}  // namespace firn::front
