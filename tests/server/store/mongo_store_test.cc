#include "server/store/mongo/mongo_store.h"

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "tests/support/database/ferret_db.h"
#include "tests/support/database/scripted_mongo.h"
#include "tests/support/process.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tls_authority.h"

namespace firn {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class MongoStoreTest : public testing::Test {
 protected:
  static Endpoint AddressOf(int port) { return {"127.0.0.1", static_cast<uint16_t>(port)}; }
  static MongoPlace PlaceOf(int port) {
    return {.addresses = {AddressOf(port)}, .database = "ids", .time_limit = Milliseconds(10'000)};
  }

  std::unique_ptr<MongoStore> Open(MongoPlace place) {
    return std::make_unique<MongoStore>(
        MongoStore::Options{.name = "main",
                            .place = std::move(place),
                            .backoff = {Milliseconds(10), Milliseconds(50)}},
        SystemClock(), SystemEntropy(),
        [this](const std::string& sentence) { alarms_.push_back(sentence); });
  }

  // A ledger's check: returns the range if it lies above everything before it.
  Result<Range> Use(MongoStore& store) {
    Result<Range> range = store.Advance(tag_, high_, 10);
    if (!range.ok()) return range;
    EXPECT_GE(range->begin, high_) << "repeats numbers";
    high_ = range->end;
    return range;
  }

  TagDefinition tag_{.name = "order", .strategy = "segment"};
  std::vector<std::string> alarms_;
  int64_t high_ = 1;
};

// A member of a replica set that answers as the test says.
class MongoPeerTest : public MongoStoreTest {
 protected:
  int Count(const std::string& command) {
    const std::vector<std::string> all = peer_.commands();
    return static_cast<int>(std::ranges::count_if(
        all, [&](const std::string& json) { return json.find("{ \"" + command + "\"") == 0; }));
  }

  ScriptedMongo peer_;
  std::unique_ptr<MongoStore> store_ = Open(PlaceOf(peer_.port()));
};

TEST_F(MongoPeerTest, CommandsNameTheDocumentAMajorityAndATimeLimitAndAreSentOnce) {
  ASSERT_EQ(Use(*store_).value_or({}), (Range{1, 11}));
  peer_.SetMax("order", 3);
  ASSERT_EQ(Use(*store_).value_or({}), (Range{11, 21}));
  int writes = 0;
  for (const std::string& command : peer_.commands()) {
    EXPECT_THAT(command, AllOf(HasSubstr("\"maxTimeMS\" : 10000"), HasSubstr("\"_id\" : \"order\""),
                               Not(HasSubstr("txnNumber"))));
    if (command.find("{ \"find\"") == 0) continue;
    ++writes;
    EXPECT_THAT(command, HasSubstr("{ \"w\" : \"majority\", \"wtimeout\" : 10000 }"));
    EXPECT_FALSE(command.find("$max") != command.npos && command.find("$inc") != command.npos);
  }
  EXPECT_EQ(writes, 4) << "insert, $inc; $max, $inc";
}

TEST_F(MongoPeerTest, AWriteWithoutAMajorityWastesItsRange) {
  ASSERT_EQ(Use(*store_).value_or({}), (Range{1, 11}));
  peer_.Script("findAndModify", {.and_json = R"("writeConcernError": {"code": 64,
      "errmsg": "waiting for replication timed out", "codeName": "WriteConcernFailed"})"});
  const Status unknown = Use(*store_).status();
  EXPECT_EQ(unknown.code(), Code::kUnknown);
  EXPECT_THAT(unknown.message(), HasSubstr("no majority has acknowledged the write"));
  EXPECT_EQ(Use(*store_).value_or({}), (Range{21, 31}));
  peer_.SetMax("order", 11);  // both were rolled back
  EXPECT_EQ(Use(*store_).value_or({}), (Range{31, 41}));
  EXPECT_THAT(alarms_, SizeIs(1));
}

TEST_F(MongoPeerTest, ALostAnswerWastesItsRangeAndIsNotRepeated) {
  ASSERT_EQ(Use(*store_).value_or({}), (Range{1, 11}));
  const int before = Count("findAndModify");
  peer_.Script("findAndModify", {.close = true});
  EXPECT_EQ(Use(*store_).status().code(), Code::kUnknown);
  EXPECT_EQ(Count("findAndModify"), before + 1);
  EXPECT_EQ(peer_.max("order"), 21);
  EXPECT_EQ(Use(*store_).value_or({}), (Range{21, 31}));
}

TEST_F(MongoPeerTest, AStepDownMidwayWastesARangeAndTheNewPrimaryIsFound) {
  ScriptedMongo other;
  for (ScriptedMongo* member : {&peer_, &other}) member->Join({peer_.address(), other.address()});
  other.BePrimary(false);
  MongoPlace place = PlaceOf(peer_.port());
  place.addresses.push_back(AddressOf(other.port()));
  place.replica_set = "rs";
  const auto store = Open(place);
  ASSERT_EQ(Use(*store).value_or({}), (Range{1, 11}));
  peer_.Script("findAndModify", {.json = R"({"ok": 0, "code": 11602,
      "codeName": "InterruptedDueToReplStateChange", "errmsg": "stepping down"})"});
  EXPECT_EQ(Use(*store).status().code(), Code::kUnknown);
  peer_.BePrimary(false);
  EXPECT_EQ(Use(*store).status().code(), Code::kUnavailable) << "an election takes its time";
  other.SetMax("order", 11);  // the last write has not reached it
  other.BePrimary(true);
  Result<Range> range = Unavailable("");
  EXPECT_TRUE(Eventually(kPatience, [&] { return (range = Use(*store)).ok(); }));
  EXPECT_EQ(range.value_or({}), (Range{11, 21}));
}

TEST_F(MongoPeerTest, RefusesASecondaryThatIsTheOnlyAddress) {
  peer_.Script("find", {.json = R"({"ok": 0, "code": 13435, "errmsg": "not primary"})"});
  const Status refused = Use(*store_).status();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr("not primary"));
}

TEST_F(MongoPeerTest, RefusesAnInvalidDocumentAndLeavesItUnchanged) {
  const auto found = [](const std::string& fields) {
    return R"({"ok": 1, "cursor": {"id": 0, "ns": "ids.firn_tag", "firstBatch": [{)" + fields +
           "}]}}";
  };
  const struct {
    std::string fields;
    const char* sentence;
  } kDocuments[] = {
      {R"("max": 5.0, "step": 1)", "the field max of its document is not a whole number"},
      {R"("max": "5", "step": 1)", "the field max of its document is not a whole number"},
      {R"("step": 1)", "its document has no field max"},
      {R"("max": 5)", "its document has no field step"},
      {R"("max": -1, "step": 1)", "max is -1, which is negative"},
      {R"("max": 5, "step": 0)", "step is 0, which is invalid"},
      {R"("max": 4611686018427387904, "step": 1)", "far beyond the 1 that the ledger knows"},
  };
  for (const auto& document : kDocuments) {
    peer_.Script("find", {.json = found(document.fields)});
    const Status refused = Use(*store_).status();
    EXPECT_EQ(refused.code(), Code::kCorrupt) << document.fields;
    EXPECT_THAT(refused.message(), HasSubstr(document.sentence));
  }
  EXPECT_EQ(Count("findAndModify"), 0);
}

TEST_F(MongoPeerTest, CreatesADocumentOnlyForATagWithoutALedger) {
  const Status refused = store_->Advance(tag_, 50, 10).status();
  EXPECT_EQ(refused.code(), Code::kNotFound);
  EXPECT_THAT(refused.message(), HasSubstr("ids.firn_tag; create it: {_id: 'order', max: "
                                           "NumberLong('50'), step: NumberLong('1000')}"));
  tag_.high = 50;
  EXPECT_EQ(store_->Check(tag_).code(), Code::kNotFound);
  tag_.high = 0;
  EXPECT_EQ(store_->Check(tag_), Status());
  EXPECT_EQ(store_->Advance(tag_, 1, 10).value_or({}), (Range{1, 11}));
}

TEST_F(MongoPeerTest, ReportsARefusedLogin) {
  const TempDir folder;
  const std::string file = folder / "credentials";
  std::ofstream(file) << "firn:wrong\n";
  chmod(file.c_str(), 0600);
  MongoPlace place = PlaceOf(peer_.port());
  place.credentials_file = file;
  peer_.Script("saslStart",
               {.json = R"({"ok": 0, "code": 18, "errmsg": "Authentication failed."})"});
  const Status refused = Use(*Open(place)).status();
  EXPECT_EQ(refused.code(), Code::kDenied) << refused;
  EXPECT_THAT(refused.message(), Not(HasSubstr("wrong")));
}

// A real server.
class MongoServerTest : public MongoStoreTest {
 protected:
  void SetUp() override {
    if (!FerretDb::IsBuilt()) GTEST_SKIP() << "FerretDB requires Go 1.24 and its modules";
  }
  std::unique_ptr<FerretDb> Start(FerretDb::Tls tls = {}) {
    auto started = FerretDb::Start(std::move(tls));
    EXPECT_TRUE(started.ok()) << started.status();
    return started.ok() ? *std::move(started) : nullptr;
  }
  // Repeats until the store answers.
  Range UseEventually(MongoStore& store) {
    Result<Range> range = Unavailable("");
    EXPECT_TRUE(Eventually(kPatience, [&] { return (range = Use(store)).ok(); })) << range.status();
    return range.value_or({});
  }
};

TEST_F(MongoServerTest, ReconnectsAfterTheServerWasKilled) {
  const auto server = Start();
  const auto store = Open(PlaceOf(server->port()));
  ASSERT_EQ(UseEventually(*store), (Range{1, 11}));
  server->Kill();
  EXPECT_FALSE(Use(*store).ok());
  ASSERT_EQ(server->Restart(), Status());
  EXPECT_EQ(UseEventually(*store), (Range{11, 21}));
  EXPECT_THAT(alarms_, IsEmpty());
}

TEST_F(MongoServerTest, AnAnswerThatIsLostOnTheNetworkWastesItsRange) {
  const auto server = Start();
  TcpProxy proxy(server->port());
  MongoPlace place = PlaceOf(proxy.port());
  place.time_limit = Milliseconds(500);
  const auto store = Open(place);
  ASSERT_EQ(UseEventually(*store), (Range{1, 11}));
  proxy.DropAnswers(true);
  EXPECT_FALSE(Use(*store).ok());
  proxy.DropAnswers(false);
  proxy.Cut();
  const Range range = UseEventually(*store);
  EXPECT_GE(range.begin, 11);
}

TEST_F(MongoServerTest, ChecksTheCertificateOfTheServer) {
  TlsAuthority ours("authority of databases"), other("another authority");
  ours.Sign("server", "IP:127.0.0.1");
  ours.Sign("elsewhere", "DNS:other.example");
  std::vector<std::pair<std::string, bool>> servers{{"server", true}, {"elsewhere", false}};
  if (ours.SignForSeconds("expired", -60, "IP:127.0.0.1")) servers.push_back({"expired", false});
  for (const auto& [who, right] : servers) {
    const auto server = Start({ours.File(who + ".crt"), ours.File(who + ".key")});
    high_ = 1;  // this server has no numbers of the tag yet
    MongoPlace place = PlaceOf(server->port());
    const auto status = [&](TlsMode mode, const std::string& ca) {
      place.tls = {.mode = mode, .ca_file = ca};
      return Use(*Open(place)).status();
    };
    EXPECT_EQ(status(TlsMode::kRequire, ""), Status()) << who;
    EXPECT_FALSE(status(TlsMode::kOff, "").ok()) << who;
    EXPECT_EQ(status(TlsMode::kVerifyFull, ours.File("ca.crt")).ok(), right) << who;
    EXPECT_EQ(status(TlsMode::kVerifyCa, ours.File("ca.crt")).ok(), who != "expired") << who;
    const Status refused = status(TlsMode::kVerifyFull, other.File("ca.crt"));
    EXPECT_EQ(refused.code(), Code::kDenied) << refused;
    EXPECT_THAT(refused.message(),
                AllOf(HasSubstr("TLS failed"), HasSubstr("tls_ca = " + other.File("ca.crt"))));
  }
}

}  // namespace
}  // namespace firn
