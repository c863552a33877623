#include "client/wire/single_id.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include "client/wire/wire_codec.h"
#include "thrift/gen/IdService.h"

namespace firn::client {
namespace {

using apache::thrift::protocol::TBinaryProtocol;
using apache::thrift::protocol::TMessageType;
using apache::thrift::transport::TMemoryBuffer;

constexpr int32_t kSequences[] = {0, 1, 255, 256, 77'000, INT32_MAX};
constexpr int64_t kIds[] = {0, 1, -1, 1234567890123456789, INT64_MAX, INT64_MIN};

// Returns a frame as the generated code writes it.
template <typename Struct>
std::string Frame(TMessageType type, int32_t sequence, const Struct& body) {
  const auto memory = std::make_shared<TMemoryBuffer>();
  TBinaryProtocol protocol(memory);
  protocol.writeMessageBegin("getId", type, sequence);
  body.write(&protocol);
  protocol.writeMessageEnd();
  const std::string bytes = memory->getBufferAsString();
  return std::string{'\0', '\0', '\0', static_cast<char>(bytes.size())} + bytes;
}
std::string Answer(int32_t sequence, int64_t id) {
  wire::IdService_getId_result result;
  result.success = id;
  result.__isset.success = true;
  return Frame(apache::thrift::protocol::T_REPLY, sequence, result);
}

TEST(SingleIdTest, WritesTheSameCallsAsTheGeneratedCode) {
  WireCodec codec;
  for (const std::string& tag : {std::string("order"), std::string(), std::string(100, 'x'),
                                 std::string("default"), std::string("order")}) {
    for (const int32_t sequence : kSequences) {
      wire::IdService_getId_args args;
      args.tag = tag;
      std::string out = "what was there before";
      codec.AppendCall({.tag = tag}, sequence, out);
      EXPECT_EQ(out,
                "what was there before" + Frame(apache::thrift::protocol::T_CALL, sequence, args));
    }
  }
}

TEST(SingleIdTest, ReadsTheAnswersOfTheGeneratedCode) {
  for (const int32_t sequence : kSequences) {
    for (const int64_t id : kIds) {
      EXPECT_EQ(SingleId::ReadAnswer(Answer(sequence, id), sequence), id);
    }
  }
}

TEST(SingleIdTest, LeavesEveryOtherFrameToTheGeneratedCode) {
  constexpr size_t kIdAt = 24, kIdEnd = 32;
  const std::string answer = Answer(77'000, 5);
  for (size_t at = 0; at < answer.size(); ++at) {
    EXPECT_FALSE(SingleId::ReadAnswer(answer.substr(0, at), 77'000)) << "cut at " << at;
    for (int bit = 0; bit < 8 && (at < kIdAt || at >= kIdEnd); ++bit) {
      std::string other = answer;
      other[at] = static_cast<char>(other[at] ^ (1 << bit));
      EXPECT_FALSE(SingleId::ReadAnswer(other, 77'000)) << "bit " << bit << " of " << at;
    }
  }
  EXPECT_FALSE(SingleId::ReadAnswer(answer + '\0', 77'000));
  EXPECT_FALSE(SingleId::ReadAnswer(answer, 77'001)) << "of another call";
  wire::IdService_getId_result refused;
  refused.__isset.refusal = true;
  EXPECT_FALSE(
      SingleId::ReadAnswer(Frame(apache::thrift::protocol::T_REPLY, 77'000, refused), 77'000));
}

}  // namespace
}  // namespace firn::client
