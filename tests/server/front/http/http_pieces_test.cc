// The cost of detecting that chunked requests, which arrive in many pieces, are incomplete.

#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "server/front/http/http_parser.h"
#include "server/front/http/http_progress.h"
#include "tests/server/front/connection_rig.h"
#include "tests/server/front/http/http_calls.h"

namespace firn::front {
namespace {

// Counts the parsed bytes, including repetitions.
class CountingProtocol final : public Protocol {
 public:
  explicit CountingProtocol(std::unique_ptr<Protocol> counted) : counted_(std::move(counted)) {}

  ServeStep Serve(std::string_view in, DoorCall& call, OutBuffer& out) override {
    parsed += in.size();
    return counted_->Serve(in, call, out);
  }
  bool MayBeWhole(std::string_view in, PartialRead& read) const override {
    return counted_->MayBeWhole(in, read);
  }

  size_t parsed = 0;

 private:
  const std::unique_ptr<Protocol> counted_;
};

class HttpPiecesTest : public ConnectionTest {
 protected:
  HttpPiecesTest() {
    limits_ = {};
    OneConnection::Open(http_io_);
  }

  void SayInPieces(std::string_view bytes, size_t piece) {
    while (!bytes.empty()) {
      const std::string_view next = bytes.substr(0, std::min(piece, wire_->room()));
      bytes.remove_prefix(next.size());
      Say(next);
    }
  }

  Issuing issuing_;
  IdDesk desk_{issuing_.issuer, issuing_.counters, Method::kHttp, "order"};
  CountingProtocol* http_ = new CountingProtocol(MakeHttp(issuing_, desk_));
  IoShare http_io_{limits_, clock_, Only(std::unique_ptr<Protocol>(http_))};
};

constexpr std::string_view kHeader =
    "POST /v1/ids/slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    "Content-Type: application/x-www-form-urlencoded\r\n\r\n";

std::string Chunked(std::string_view body, size_t size) {
  std::string chunks(kHeader);
  for (; !body.empty(); body.remove_prefix(std::min(size, body.size()))) {
    char line[24];
    const std::string_view part = body.substr(0, size);
    chunks.append(line,
                  static_cast<size_t>(std::snprintf(line, sizeof line, "%zx\r\n", part.size())));
    chunks.append(part).append("\r\n");
  }
  return chunks + "0\r\n\r\n";
}

// Before the request was parked, MayBeWhole has returned true for it. It must not be called again
// for the same bytes: it would search after the header.
TEST_F(HttpPiecesTest, ServesAParkedRequestThatCameInPieces) {
  const std::string_view request = "GET /v1/ids/slow HTTP/1.1\r\nHost: x\r\n\r\n";
  issuing_.slow->waits = true;
  Say(request.substr(0, request.size() - 1));
  Say(request.substr(request.size() - 1));
  ASSERT_TRUE(parked_);
  TryParkedAgain();
  ASSERT_TRUE(parked_);
  EXPECT_EQ(wire_->sent, "");
  issuing_.slow->waits = false;
  TryParkedAgain();
  EXPECT_TRUE(wire_->sent.starts_with("HTTP/1.1 200 ")) << wire_->sent;
}

TEST_F(HttpPiecesTest, ParsesTinyChunksAFewTimesOnly) {
  const std::string request = Chunked("count=3&x=" + std::string(8'000, 'x'), 1);
  SayInPieces(request, 7);
  EXPECT_TRUE(wire_->sent.starts_with("HTTP/1.1 400")) << "of a parameter that does not exist";
  EXPECT_LT(http_->parsed, 4 * request.size());
}

TEST_F(HttpPiecesTest, AnEmptyLineInAChunkDoesNotEndTheBody) {
  std::string body = "count=3&x=";
  while (body.size() < 40'000) body += "\r\n\r\n";
  const std::string request = Chunked(body, 64);
  SayInPieces(request, 68);
  EXPECT_TRUE(wire_->sent.starts_with("HTTP/1.1 400"));
  EXPECT_LT(http_->parsed, 4 * request.size());
}

TEST_F(HttpPiecesTest, ServesTheSameInPiecesOfAnySize) {
  const std::string request = Chunked("count=3", 2);
  for (size_t piece = 1; piece <= request.size(); ++piece) {
    wire_->sent.clear();
    SayInPieces(request, piece);
    EXPECT_TRUE(wire_->sent.starts_with("HTTP/1.1 200")) << piece << wire_->sent;
    EXPECT_FALSE(wire_->finished);
  }
}

// A chunked request, sometimes with a byte of its body changed.
std::string SomeChunked(Entropy& entropy) {
  std::string request(kHeader);
  for (uint64_t chunks = entropy.Below(5); chunks > 0; --chunks) {
    constexpr std::string_view kData = "\r\n\r\n0\r\n\r\nxyz";
    const std::string_view data = kData.substr(0, 1 + entropy.Below(kData.size()));
    char line[24];
    request.append(line, static_cast<size_t>(std::snprintf(line, sizeof line, "%zX", data.size())));
    if (entropy.Below(3) == 0) request += ";a=\"b\"";
    request.append("\r\n").append(data).append("\r\n");
  }
  request += entropy.Below(2) == 0 ? "000\r\n" : "0;a=b\r\n";
  for (uint64_t trailers = entropy.Below(3); trailers > 0; --trailers) request += "A: b\r\n";
  request += "\r\n";
  if (entropy.Below(2) == 0) {
    constexpr std::string_view kBytes = "\r\n0fg;: ";
    request[kHeader.size() + entropy.Below(request.size() - kHeader.size())] =
        kBytes[entropy.Below(kBytes.size())];
  }
  return request;
}

TEST(HttpProgressTest, NeverTreatsACompleteRequestAsIncomplete) {
  SeededEntropy entropy(7);
  std::string chunks;
  HttpRequest parsed;
  for (int round = 0; round < 3'000; ++round) {
    const std::string request = SomeChunked(entropy);
    const size_t begin = 1 + entropy.Below(request.size());
    PartialRead read{.parsed = begin};
    for (size_t n = begin; n <= request.size(); n += 1 + entropy.Below(9)) {
      const std::string_view in = std::string_view(request).substr(0, n);
      const auto kind = ParseHttp(in, chunks, parsed).kind;
      if (kind == HttpParsed::Kind::kWhole && n > begin) {
        EXPECT_TRUE(HttpMayBeWhole(in, read)) << in;
        break;
      }
      if (kind != HttpParsed::Kind::kNeedMore) break;
      if (n > begin && HttpMayBeWhole(in, read)) read.parsed = n;
    }
  }
}

}  // namespace
}  // namespace firn::front
