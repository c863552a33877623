#include "server/front/dubbo/dubbo_protocol.h"

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/cat.h"
#include "server/front/dubbo/dubbo_header.h"
#include "server/front/dubbo/hessian_reader.h"
#include "tests/server/front/dubbo/dubbo_messages.h"
#include "tests/server/front/form.h"

using namespace std::string_literals;

namespace firn::front {
namespace {

using Kind = ServeStep::Kind;

// A request that a real consumer sent: NAME_27 by Dubbo 2.7.23, NAME_33 by Dubbo 3.3.2.
std::string Recorded(const std::string& name) {
  std::ifstream file(FIRN_SOURCE_DIR "/tests/server/front/dubbo/corpus/front_dubbo_fuzz/" + name +
                     ".bin");
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

class DubboProtocolTest : public testing::Test {
 protected:
  std::string Ask(const std::string& request) {
    OutBuffer out;
    const ServeStep step = ServeOrRetry(*protocol_, waiting_, request, door_, out);
    EXPECT_EQ(step.kind, Kind::kServed);
    EXPECT_EQ(step.bytes, request.size());
    return std::string(out.view());
  }
  // Returns the body of the answer to request 7, which must have this status.
  std::string BodyOf(const std::string& answer, DubboStatus status = DubboStatus::kOk) {
    const DubboHeader header = DubboHeader::Read(answer);
    EXPECT_EQ(header.flags, DubboHeader::kHessian2);
    EXPECT_EQ(header.status, static_cast<uint8_t>(status));
    EXPECT_EQ(header.id, 7);
    EXPECT_EQ(header.body_bytes, answer.size() - DubboHeader::kBytes);
    return answer.substr(DubboHeader::kBytes);
  }
  std::string AskBody(const DubboCall& call, DubboStatus status = DubboStatus::kOk) {
    return BodyOf(Ask(call.Bytes()), status);
  }
  // Returns class and message of the exception in an answer, as "class: message".
  static std::string ExceptionIn(const std::string& body, char flag = '\x93') {
    EXPECT_EQ(body.substr(0, 2), std::string(1, flag) + "C");
    HessianReader reader(std::string_view(body).substr(2));
    std::string name, field, message;
    int64_t fields = 0;
    EXPECT_TRUE(reader.Text(name, 100) && reader.Whole(fields));
    EXPECT_EQ(fields, 2);
    EXPECT_TRUE(reader.Text(field, 100));
    EXPECT_EQ(field, "detailMessage");
    EXPECT_TRUE(reader.Text(field, 100));
    EXPECT_EQ(field, "stackTrace");
    HessianReader values(std::string_view(body).substr(2 + reader.position() + 1));
    size_t frames = 1;
    EXPECT_TRUE(values.Text(message, 1000) && values.List(frames));
    EXPECT_EQ(frames, 0);
    return name + ": " + message;
  }
  ServeStep Serve(std::string_view bytes) {
    OutBuffer out;
    return ServeOrRetry(*protocol_, waiting_, bytes, door_, out);
  }

  Issuing issuing_;
  IdDesk desk_{issuing_.issuer, issuing_.counters, Method::kDubbo, "slow"};
  DubboState state_;
  DubboCounters counters_;
  std::unique_ptr<Protocol> protocol_ =
      MakeDubboProtocol(issuing_.backend, desk_, state_, counters_);
  DoorCall door_{.last = true};
  Waiting waiting_;
};

TEST_F(DubboProtocolTest, AnswersNextIdByteForByte) {
  issuing_.slow->next = 300;
  EXPECT_EQ(Ask(DubboCall().Bytes()),
            "\xda\xbb\x02\x14\0\0\0\0\0\0\0\x07\0\0\0\x0c"s  // header
            "\x94L\0\0\0\0\0\0\x01\x2cHZ"s);                 // value, attachments
}

TEST_F(DubboProtocolTest, AnswersRecordedRequestsOfBothVersions) {
  ASSERT_TRUE(issuing_.issuer.Set({"default", issuing_.slow, {}}).ok());
  for (const char* const version : {"_27", "_33"}) {
    for (const std::string name : {"next_id", "gen_id", "generic_next_ids", "generic_async",
                                   "exp_id", "generic_exp_id", "echo", "trans_time"}) {
      const std::string request = Recorded(name + version);
      ASSERT_FALSE(request.empty()) << name;
      const std::string answer = Ask(request);
      ASSERT_GT(answer.size(), DubboHeader::kBytes + 1) << name;
      EXPECT_EQ(DubboHeader::Read(answer).status, 20) << name;
      EXPECT_EQ(DubboHeader::Read(answer).id, DubboHeader::Read(request).id) << name;
      EXPECT_EQ(answer[DubboHeader::kBytes], '\x94') << name << " is not a value";
    }
  }
  EXPECT_EQ(Ask(Recorded("echo_27")).substr(DubboHeader::kBytes), "\x94\x05helloHZ");
}

TEST_F(DubboProtocolTest, WritesAttachmentsOnlyForVersionsThatReadThem) {
  const auto flag = [this](const std::string& version) {
    DubboCall call;
    call.version = version;
    return AskBody(call)[0];
  };
  for (const char* with : {"2.0.2", "2.0.10", "2.0.99"}) EXPECT_EQ(flag(with), '\x94') << with;
  for (const char* without :
       {"", "2.0.0", "2.0.1", "2.0.100", "2.5.3", "3.0.2", "2.0.", "2.0.2x"}) {
    EXPECT_EQ(flag(without), '\x91') << without;
  }
}

TEST_F(DubboProtocolTest, ReturnsListsAndTexts) {
  issuing_.slow->next = 1;
  DubboCall list{.method = "nextIds", .types = "Ljava/lang/String;I", .arguments = "\x04slow\x93"};
  EXPECT_EQ(AskBody(list), "\x94\x7b\xe1\xe2\xe3HZ");
  list.arguments = "\x04slow\xe3";  // a long as the second argument
  EXPECT_EQ(AskBody(list), "\x94\x7b\xe4\xe5\xe6HZ");
  DubboCall text{.method = "nextText"};
  EXPECT_EQ(AskBody(text), "\x94\x06slow-7HZ");
}

TEST_F(DubboProtocolTest, UsesDefaultTagForEmptyAndNullTag) {
  issuing_.slow->next = 1;
  EXPECT_EQ(AskBody({.arguments = "\0"s}), "\x94\xe1HZ");
  EXPECT_EQ(AskBody({.arguments = "N"}), "\x94\xe2HZ");
}

TEST_F(DubboProtocolTest, ReturnsIdAsObjectAndForGenericCallsAsMap) {
  const DubboCall call{.path = "com.robert.vesta.service.intf.IdService",
                       .method = "expId",
                       .types = "J",
                       .arguments = "L\0\0\0\0\0\x40\x50\x03"s};
  const std::string object = AskBody(call);
  const std::string begin =
      "\x94"
      "CS\0\x20"s +
      "com.robert.vesta.service.bean.Id\x96\x07machine";
  EXPECT_EQ(object.substr(0, begin.size()), begin);
  DubboCall generic = call;
  generic.method = "$invoke";
  generic.types = "Ljava/lang/String;[Ljava/lang/String;[Ljava/lang/Object;";
  generic.arguments =
      "\x05"
      "expIdq\x07[string\x04longq\x07[object" +
      call.arguments;
  generic.attachments = {{"generic", "true"}};
  EXPECT_EQ(AskBody(generic).substr(0, 7),
            "\x94H\x05"
            "clas");
}

TEST_F(DubboProtocolTest, MakesIdsInBothOrders) {
  const auto make = [this](const std::string& arguments) {
    DubboCall call{.path = "com.robert.vesta.service.intf.IdService",
                   .method = "makeId",
                   .types = std::string(arguments.size(), 'J'),
                   .arguments = arguments};
    const std::string body = AskBody(call);
    int64_t id = 0;
    EXPECT_TRUE(HessianReader(std::string_view(body).substr(1)).Whole(id));
    return *issuing_.view.layout().Unpack(id);
  };
  const IdFields own = make("\xe9\xe3");  // time 9, sequence 3
  EXPECT_EQ(own.tick.count(), 9);
  EXPECT_EQ(own.sequence, 3);
  EXPECT_EQ(own.machine, MachineId(5)) << "the server's own";
  EXPECT_EQ(make("\xe9\xe3\xe2").machine, MachineId(2));
  state_.make_id_order = VestaOrder::kMachineFirst;
  const IdFields other = make("\xe2\xe9\xe3");
  EXPECT_EQ(other.machine, MachineId(2));
  EXPECT_EQ(other.tick.count(), 9);
  EXPECT_EQ(other.sequence, 3);
}

TEST_F(DubboProtocolTest, TakesNoIdForOneWayCall) {
  issuing_.slow->next = 1;
  EXPECT_EQ(Ask(Recorded("one_way_27")), "");
  EXPECT_EQ(Ask(Recorded("one_way_33")), "");
  EXPECT_EQ(counters_.one_way.Get(), 2);
  EXPECT_EQ(issuing_.slow->next, 1);
}

TEST_F(DubboProtocolTest, AnswersHeartbeats) {
  EXPECT_EQ(Ask(Message(0xe2, "N", 5)), "\xda\xbb\x22\x14\0\0\0\0\0\0\0\x05\0\0\0\x01N"s);
  EXPECT_EQ(Ask(Message(0xa2, "\x01R", 5)), "") << "an event without an answer";
  EXPECT_EQ(counters_.heartbeats.Get(), 1);
}

TEST_F(DubboProtocolTest, ReturnsFinalRefusalAsException) {
  EXPECT_EQ(ExceptionIn(AskBody({.arguments = "\x04none"})).substr(0, 49),
            "java.lang.IllegalArgumentException: UNKNOWN_TAG: ");
  EXPECT_EQ(ExceptionIn(AskBody({.method = "nextIds",
                                 .types = "Ljava/lang/String;I",
                                 .arguments = "\x04slow\x90"}))
                .substr(0, 49),
            "java.lang.IllegalArgumentException: BAD_REQUEST: ");
  DubboCall old{.version = "2.0.1", .arguments = "\x04none"};
  EXPECT_NE(ExceptionIn(AskBody(old), '\x90'), "") << "without attachments";
  ASSERT_GT(issuing_.Sums().refused[static_cast<size_t>(Reason::kUnknownTag)], 0u);
}

// --- traces --------------------------------------------------------------------------------------

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
std::string Parent() { return Cat("00-", kTrace, "-00f067aa0ba902b7-01"); }

TEST_F(DubboProtocolTest, PassesTheTraceOfARefusedCall) {
  using Attachments = std::vector<std::pair<std::string, std::string>>;
  const auto trace_of = [this](const Attachments& attachments) {
    AskBody({.arguments = "\x04none", .attachments = attachments});
    EXPECT_EQ(door_.trace_id, "") << "the next call has its own";
    return issuing_.rejections.trace_id();
  };
  EXPECT_EQ(trace_of({{"traceparent", Parent()}}), kTrace);
  EXPECT_EQ(trace_of({}), "") << "the trace of the call before";
  EXPECT_EQ(trace_of({{"traceId", "1.23.15988"}}), "1.23.15988");
  EXPECT_EQ(trace_of({{"traceId", "a"}, {"traceparent", Parent()}}), kTrace);
  EXPECT_EQ(trace_of({{"traceparent", Parent()}, {"traceId", "a"}}), kTrace);
  EXPECT_EQ(trace_of({{"traceparent", "00-none"}, {"traceId", "a"}}), "a");
  for (const std::string& invalid : {""s, "a b"s, "a\nI forged"s, std::string(65, 'a'),
                                     std::string(10'000, 'a'), "\xe2\x82\xac"s}) {
    EXPECT_EQ(trace_of({{"traceId", invalid}}), "") << invalid;
    EXPECT_EQ(trace_of({{"traceparent", invalid}}), "") << invalid;
  }
}

TEST_F(DubboProtocolTest, IgnoresAttachmentsOfEveryType) {
  issuing_.slow->next = 1;
  const std::string body = DubboCall().Body();
  const std::string level = "C\x05Level\x91\x04name\x60\x04INFO";
  for (const std::string& value :
       {level, "\x7a" + level + "\x60\x04WARN", "\x51\x90"s, "\x4b\x00\xe3\x83\x8f"s,
        "\x58\xc9\x2c" + std::string(300, '\xe1')}) {
    for (const std::string& key : {"\x05level"s, "\x07traceId"s}) {
      const std::string group = "\x05group\x01g";
      const std::string more = body.substr(0, body.size() - 1) + key + value;
      EXPECT_EQ(BodyOf(Ask(Message(0xc2, more + "Z")))[0], '\x94') << testing::PrintToString(more);
      EXPECT_NE(ExceptionIn(BodyOf(Ask(Message(0xc2, more + group + "Z")))).find("no group"),
                std::string::npos)
          << "an attachment behind it counts";
    }
  }
}

TEST_F(DubboProtocolTest, IgnoresATraceThatIsNotText) {
  issuing_.slow->next = 1;
  const std::string body = DubboCall().Body();
  for (const std::string& value : {"N"s, "\xe3"s, "T"s, "H\x01k\x01vZ"s, "\x7a\xe1\xe2"s}) {
    for (const std::string& key : {"\x07traceId"s, "\x0btraceparent"s}) {
      const std::string traced = body.substr(0, body.size() - 1) + key + value + "Z";
      const std::string answer = BodyOf(Ask(Message(0xc2, traced)));
      EXPECT_EQ(answer[0], '\x94') << testing::PrintToString(traced);
    }
  }
}

TEST_F(DubboProtocolTest, KeepsTheTraceOfAParkedCall) {
  issuing_.slow->waits = true;
  door_.last = false;
  const std::string request = DubboCall{.attachments = {{"traceparent", Parent()}}}.Bytes();
  ASSERT_EQ(Serve(request).kind, Kind::kPark);
  const char* const kept = door_.trace_id.data();
  EXPECT_EQ(door_.trace_id, kTrace);
  ASSERT_EQ(Serve(request).kind, Kind::kPark);
  EXPECT_EQ(door_.trace_id.data(), kept) << "the parked call refers to it";
  door_.last = true;
  EXPECT_EQ(Serve(request).kind, Kind::kServed);
  EXPECT_EQ(issuing_.rejections.trace_id(), kTrace);
}

TEST_F(DubboProtocolTest, ReturnsRefusalThatAnotherServerMayHelpWithAsServerFailure) {
  issuing_.snowflake->Close();
  const std::string body = AskBody({.arguments = "\x05order"}, DubboStatus::kServerError);
  std::string message;
  ASSERT_TRUE(HessianReader(body).Text(message, 1000));
  EXPECT_EQ(message.substr(0, 11), "NOT_READY: ");
}

TEST_F(DubboProtocolTest, RefusesCallsThatItDoesNotServe) {
  const auto refused = [this](DubboCall call) { return ExceptionIn(AskBody(call)); };
  EXPECT_NE(refused({.path = "x.Y"}).find("no service 'x.Y'"), std::string::npos);
  EXPECT_NE(refused({.method = "drop"}).find("no method 'drop'"), std::string::npos);
  EXPECT_NE(refused({.types = "J", .arguments = "\xe1"}).find("no method"), std::string::npos);
  EXPECT_NE(refused({.path = "com.robert.vesta.service.intf.IdService"}).find("no method"),
            std::string::npos);
  EXPECT_NE(refused({.service_version = "1.0.0"}).find("no version"), std::string::npos);
  EXPECT_NE(refused({.attachments = {{"group", "g"}}}).find("no group"), std::string::npos);
  EXPECT_NE(refused({.arguments = "\x51\x90"}).find("cannot be read"), std::string::npos);
  const DubboCall native{.method = "$invoke",
                         .types = "Ljava/lang/String;[Ljava/lang/String;[Ljava/lang/Object;",
                         .arguments = "\x06nextIdNq\x07[object\x04slow",
                         .attachments = {{"generic", "nativejava"}}};
  EXPECT_NE(refused(native), "");
}

TEST_F(DubboProtocolTest, AcceptsServiceByInterfaceWhenPathDiffers) {
  issuing_.slow->next = 1;
  EXPECT_EQ(AskBody({.path = "ids", .attachments = {{"interface", "io.firn.IdService"}}}),
            "\x94\xe1HZ");
  EXPECT_EQ(AskBody({.service_version = ""}), "\x94\xe2HZ");
}

TEST_F(DubboProtocolTest, TellsEachConnectionOnceThatServerIsReadOnly) {
  issuing_.slow->next = 1;
  const std::string request = DubboCall().Bytes();
  const size_t plain = Ask(request).size();
  state_.read_only = true;
  EXPECT_EQ(Ask(request).substr(plain), "\xda\xbb\xa2\0\0\0\0\0\0\0\0\0\0\0\0\x02\x01R"s);
  EXPECT_EQ(Ask(request).size(), plain);
  state_.read_only = false;
  EXPECT_EQ(Ask(request).substr(plain), "\xda\xbb\xa2\0\0\0\0\0\0\0\0\0\0\0\0\x02\x01W"s);
  EXPECT_EQ(Ask(request).size(), plain);
}

TEST_F(DubboProtocolTest, ParksCallAndContinuesIt) {
  issuing_.slow->waits = true;
  door_.last = false;
  EXPECT_EQ(Serve(DubboCall().Bytes()).kind, Kind::kPark);
  issuing_.slow->waits = false;
  issuing_.slow->next = 1;
  EXPECT_EQ(AskBody({}), "\x94\xe1HZ");
}

TEST_F(DubboProtocolTest, WritesALongListInSeveralTurns) {
  constexpr int kIds = 10'000;
  issuing_.slow->next = 1'000;
  const DubboCall call{
      .method = "nextIds", .types = "Ljava/lang/String;I", .arguments = "\x04slowI\0\0\x27\x10"s};
  std::string expected;
  HessianWriter list(expected);
  list.Int(4);
  list.List(kIds);
  for (int64_t id = 1'000; id < 1'000 + kIds; ++id) list.Long(id);
  list.BeginMap();
  list.EndMap();
  OutBuffer out;
  ServeStep step = protocol_->Serve(call.Bytes(), door_, out);
  int turns = 1;
  for (; step.kind == Kind::kMore; ++turns) {
    DoorCall other;
    OutBuffer to;
    const std::string request = Message(0xc2, DubboCall().Body(), 8);
    EXPECT_EQ(protocol_->Serve(request, other, to).kind, Kind::kServed);
    EXPECT_EQ(DubboHeader::Read(to.view()).id, 8) << "the answer of another connection";
    step = std::exchange(step.parked, nullptr)->Retry(door_, out);
  }
  EXPECT_EQ(turns, 1 + kIds / IdDesk::kIdsPerTurn);
  EXPECT_EQ(step.kind, Kind::kServed);
  EXPECT_EQ(BodyOf(std::string(out.view())), expected);
}

TEST_F(DubboProtocolTest, AsksForMoreAtEverySplit) {
  const std::string request = Recorded("next_id_33");
  for (size_t n = 1; n < request.size(); ++n) {
    const ServeStep step = Serve(request.substr(0, n));
    ASSERT_EQ(step.kind, Kind::kNeedMore) << n;
    EXPECT_EQ(step.bytes, n < DubboHeader::kBytes ? DubboHeader::kBytes : request.size());
  }
}

TEST_F(DubboProtocolTest, ClosesConnectionThatSpeaksAnotherProtocol) {
  for (const std::string& bytes : {"G"s, "*1\r\n"s, "\xda\xbc"s, "\xda\xba__"s, Message(0x02, "N"),
                                   Message(0xc3, "N"), Message(0xe3, "N")}) {
    const ServeStep step = Serve(bytes);
    EXPECT_EQ(step.kind, Kind::kClose) << testing::PrintToString(bytes);
    EXPECT_EQ(step.cause, CloseCause::kBadFrame);
  }
  DubboHeader large{.flags = 0xc2, .body_bytes = 0x7fffffff};
  const auto bytes = large.Write();
  EXPECT_EQ(Serve({bytes.data(), bytes.size()}).cause, CloseCause::kFrameTooLarge);
}

TEST_F(DubboProtocolTest, AnswersFastjson2InItsOwnEncoding) {
  OutBuffer out;
  const ServeStep step = protocol_->Serve(Message(0xc0 | 23, "x"), door_, out);
  EXPECT_EQ(step.kind, Kind::kClose);
  const DubboHeader header = DubboHeader::Read(out.view());
  EXPECT_EQ(header.flags, 23);
  EXPECT_EQ(header.status, 40);
  EXPECT_EQ(header.body_bytes, out.size() - DubboHeader::kBytes);
}

}  // namespace
}  // namespace firn::front
