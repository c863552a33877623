// Parses arbitrary bytes as a server's answer. The result must be an answer, a refusal, or the
// reason why it is neither. The next valid answer must then parse correctly.
//
// An input's first byte selects the request. The rest is used as a whole frame, and also as the
// body of an answer with a correct header, because random changes rarely keep the header correct.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "client/wire/id_check.h"
#include "client/wire/wire_codec.h"
#include "common/base/utf8.h"

namespace {

using firn::LeaseOutcome;
using firn::LeaseRequest;
using firn::client::Ask;
using firn::client::Micros;
using firn::client::Outcome;
using firn::client::Reply;
using firn::client::WireCodec;

constexpr int32_t kSequence = 0x01020304;
constexpr int64_t kAsked = 3;

struct Method {
  Ask::Method method;
  const char* name;
};
constexpr Method kMethods[] = {
    {Ask::Method::kGetId, "getId"},           {Ask::Method::kGetIds, "getIds"},
    {Ask::Method::kGetRuns, "getRuns"},       {Ask::Method::kGetText, "getText"},
    {Ask::Method::kExplain, "explain"},       {Ask::Method::kStatus, "status"},
    {Ask::Method::kServers, "servers"},       {Ask::Method::kLease, "lease"},
    {Ask::Method::kRenewLease, "renewLease"}, {Ask::Method::kReleaseLease, "releaseLease"}};

void Check(bool holds, std::string_view what) {
  if (!holds) firn::Die(what);
}

std::string BigEndian(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

std::string Framed(std::string_view body) {
  return BigEndian(static_cast<uint32_t>(body.size())) + std::string(body);
}

std::string Answer(std::string_view name, std::string_view body) {
  return Framed(BigEndian(0x80010002) + BigEndian(static_cast<uint32_t>(name.size())) +
                std::string(name) + BigEndian(kSequence) + std::string(body));
}

void CheckLease(const Ask& ask, const LeaseOutcome& outcome) {
  using Kind = LeaseOutcome::Kind;
  const bool released = ask.method == Ask::Method::kReleaseLease;
  const bool terms = outcome.kind == Kind::kTerms || outcome.kind == Kind::kUnusable;
  Check(!terms || !released, "terms of a lease that has ended");
  Check(outcome.kind != Kind::kReleased || released, "a lease that has not ended is released");
  Check(outcome.kind != Kind::kNoAnswer, "an answer that is none");
  Check(firn::IsPrintableUtf8(outcome.terms.server), "an address with any bytes");
}

void CheckIds(const Ask& ask, const Reply& reply) {
  if (ask.method == Ask::Method::kGetIds) {
    Check(reply.ids.size() == kAsked, "not as many ids as were asked for");
  }
  if (ask.method == Ask::Method::kGetRuns) {
    int64_t count = 0;
    for (const firn::IdRun& run : reply.runs) {
      Check(run.At(run.count - 1) >= run.first, "a run that does not ascend");
      count += run.count;
    }
    Check(count == kAsked, "not as many ids in runs as were asked for");
  }
  if (ask.method == Ask::Method::kGetText) Check(!reply.text.empty(), "an empty text");
  if (ask.method >= Ask::Method::kLease) CheckLease(ask, *reply.lease);
}

// A server's status determines how its ids are checked. The check must work with any status.
void ReadIdsBy(const Reply& status) {
  const firn::client::IdCheck ids(*status.facts, Micros(0));
  Reply reply;
  for (const int64_t id : {std::numeric_limits<int64_t>::min(), int64_t{-1}, int64_t{0}, int64_t{1},
                           std::numeric_limits<int64_t>::max()}) {
    reply.id = id;
    for (const auto& tag : status.facts->timed) {
      const auto fault = ids.FaultOf({.tag = tag}, reply, Micros(1'000'000));
      Check(!fault || !fault->empty(), "a fault without a reason");
    }
  }
}

void Try(WireCodec& codec, const Ask& ask, const std::string& frame) {
  Reply reply;
  const Outcome outcome = codec.ReadAnswer(frame, ask, kSequence, reply, &firn::Layout::Firn());
  if (outcome.answered()) {
    CheckIds(ask, reply);
    if (ask.method == Ask::Method::kStatus) ReadIdsBy(reply);
  } else if (outcome.end == firn::AttemptEnd::kRefused) {
    Check(outcome.refusal.has_value(), "a refusal without a reason");
    Check(outcome.retry_after >= firn::Milliseconds(0), "advice to come back before now");
  } else {
    Check(outcome.spoke() == outcome.lacks_method, "nonsense that is taken for speech");
    Check(!outcome.detail.empty(), "no answer, and no reason why");
  }
  // An answer of 8 bytes: field 0 of type 10, the form of an id.
  static const std::string good =
      Answer("getId", std::string("\x0a\0\0", 3) + std::string(7, '\0') + '\7' + '\0');
  Reply next;
  const Outcome after =
      codec.ReadAnswer(good, {.method = Ask::Method::kGetId, .tag = "order"}, kSequence, next);
  Check(after.answered() && next.id == 7, "an answer was spoilt by the one before");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static WireCodec codec;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  const Method& method = kMethods[data[0] % std::size(kMethods)];
  Ask ask{.method = method.method, .tag = "order", .number = kAsked};
  if (ask.method >= Ask::Method::kLease) ask.lease = std::make_shared<const LeaseRequest>();
  const std::string_view rest = input.substr(1);
  Try(codec, ask, Framed(rest));
  Try(codec, ask, Answer(method.name, rest));
  const auto length = WireCodec::FrameLength(rest);
  Check(!length || *length == 0 || *length >= WireCodec::kLengthBytes, "a frame of no length");
  std::string call;
  codec.AppendCall(ask, kSequence, call);
  Check(WireCodec::FrameLength(call) == call.size(), "a call whose length is not what it says");
  return 0;
}
