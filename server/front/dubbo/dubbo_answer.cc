#include "server/front/dubbo/dubbo_answer.h"

#include "common/base/cat.h"
#include "common/base/utf8.h"

namespace firn::front {
namespace {

// The first int of a response announces what follows it. With attachments it is 3 higher.
constexpr int32_t kException = 0, kValue = 1, kWithAttachments = 3;

constexpr uint8_t kFastjson2 = 23;
constexpr std::string_view kWantsHessian =
    "firn-server reads the serialization hessian2; set serialization=hessian2 for this reference";

// A short ASCII text in JSONB.
std::string InFastjson2(std::string_view ascii) {
  constexpr char kAscii = 0x79, kInt = 0x48;
  std::string text{kAscii, kInt};
  const auto number = [&text](size_t value, size_t at) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
    text.insert(at, bytes);
  };
  number(ascii.size(), text.size());
  text += ascii;
  number(text.size(), 0);
  return text;
}

bool MayHelp(const Refusal& refusal) {
  const bool is_final =
      refusal.reason == Reason::kBadRequest || refusal.reason == Reason::kUnknownTag;
  return refusal.another_server_may_help && !is_final;
}

}  // namespace

HessianWriter& DubboAnswer::Value() {
  writer_.Int(kValue + (attachments_ ? kWithAttachments : 0));
  return writer_;
}

void DubboAnswer::Throw(std::string_view java_class, std::string_view message) {
  writer_.Int(kException + (attachments_ ? kWithAttachments : 0));
  writer_.Class(java_class, {"detailMessage", "stackTrace"});
  writer_.Object();
  writer_.Text(message);
  writer_.ListOf("[java.lang.StackTraceElement", 0);
}

void DubboAnswer::Refuse(const Refusal& refusal) {
  body_.clear();
  const std::string message =
      ToPrintableUtf8(Cat(ReasonName(refusal.reason), ": ", refusal.message));
  if (MayHelp(refusal)) {
    status_ = refusal.reason == Reason::kOverloaded ? DubboStatus::kServerBusy
                                                    : DubboStatus::kServerError;
    attachments_ = false;
    return writer_.Text(message);
  }
  const bool of_argument =
      refusal.reason == Reason::kBadRequest || refusal.reason == Reason::kUnknownTag;
  Throw(of_argument ? "java.lang.IllegalArgumentException" : "java.lang.IllegalStateException",
        message);
}

void DubboAnswer::Append(const DubboHeader& request, OutBuffer& out) {
  if (attachments_) {
    writer_.BeginMap();
    writer_.EndMap();
  }
  AppendDubbo(
      {.flags = request.serialization(), .status = static_cast<uint8_t>(status_), .id = request.id},
      body_, out);
}

void AppendDubbo(DubboHeader header, std::string_view body, OutBuffer& out) {
  header.body_bytes = static_cast<uint32_t>(body.size());
  const auto bytes = header.Write();
  out.Append(bytes.data(), bytes.size());
  out.Append(body);
}

bool AppendWrongSerialization(const DubboHeader& request, OutBuffer& out) {
  if (request.serialization() != kFastjson2) return false;
  AppendDubbo({.flags = request.serialization(),
               .status = static_cast<uint8_t>(DubboStatus::kBadRequest),
               .id = request.id},
              InFastjson2(kWantsHessian), out);
  return true;
}

}  // namespace firn::front
