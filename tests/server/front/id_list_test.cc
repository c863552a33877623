#include "server/front/thrift/id_list.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include "common/time/entropy.h"

namespace firn::front {
namespace {

constexpr int64_t kLast = std::numeric_limits<int64_t>::max();

// The elements as Thrift's generated code encodes them.
template <typename Coding>
std::string ByThrift(const Runs& runs) {
  auto bytes = std::make_shared<apache::thrift::transport::TMemoryBuffer>();
  Coding coding(bytes);
  runs.ForEach([&](int64_t id) { coding.writeI64(id); });
  return bytes->getBufferAsString();
}

void ExpectAsThrift(const Runs& runs) {
  OutBuffer fixed, varints;
  AppendBigEndian(runs, fixed);
  AppendVarints(runs, varints);
  const auto what = [&] { return testing::PrintToString(runs.runs()); };
  EXPECT_EQ(fixed.view(), ByThrift<apache::thrift::protocol::TBinaryProtocol>(runs)) << what();
  EXPECT_EQ(varints.view(), ByThrift<apache::thrift::protocol::TCompactProtocol>(runs)) << what();
}

Runs Of(std::vector<IdRun> all) {
  Runs runs;
  for (const IdRun& run : all) runs.Add(run);
  return runs;
}

// Numbers whose encoding becomes longer by a byte, and a run across such a number.
TEST(IdList, EqualsThriftsEncodingAtEveryLengthOfANumber) {
  for (int bits = 0; bits < 63; ++bits) {
    for (const int64_t stride : {1, 2, 31, 32, 63, 64, 1'000}) {
      const int64_t edge = int64_t{1} << bits;
      const int64_t first = edge - std::min(edge, 40 * stride);
      const int64_t count = std::min<int64_t>(200, (kLast - first) / stride);
      if (count > 0) ExpectAsThrift(Of({{first, count, stride}}));
    }
  }
}

TEST(IdList, EqualsThriftsEncodingAtTheLimitsOfNumbers) {
  ExpectAsThrift(Of({{0, 1, 1}}));
  ExpectAsThrift(Of({{kLast - 99, 100, 1}}));
  ExpectAsThrift(Of({{kLast, 1, 1}}));
  ExpectAsThrift(Of({{std::numeric_limits<int64_t>::min(), 300, 1}}));
  ExpectAsThrift(Of({{-150, 300, 1}}));
}

TEST(IdList, EqualsThriftsEncodingForAllKindsOfRuns) {
  SeededEntropy entropy(7);
  for (int round = 0; round < 2'000; ++round) {
    Runs runs;
    for (uint64_t left = 1 + entropy.Below(6); left > 0; --left) {
      const auto first = static_cast<int64_t>(entropy.Next() >> (1 + entropy.Below(63)));
      const auto stride = static_cast<int64_t>(1 + entropy.Below(80));
      const auto most = std::min<int64_t>(300, (kLast - first) / stride + 1);
      runs.Add(
          {first, 1 + static_cast<int64_t>(entropy.Below(static_cast<uint64_t>(most))), stride});
    }
    ExpectAsThrift(runs);
  }
}

TEST(IdList, IsAppendedToExistingBytes) {
  OutBuffer out;
  out.Append("before");
  AppendBigEndian(Of({{258, 1, 1}}), out);
  EXPECT_EQ(out.view(), std::string_view("before\0\0\0\0\0\0\1\2", 14));
}

}  // namespace
}  // namespace firn::front
