#include "server/front/dubbo/dubbo_request.h"

#include <optional>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "server/front/desk/trace_id.h"
#include "server/front/dubbo/hessian_reader.h"

namespace firn::front {
namespace {

// The name and parameters of a method: `L` is a string, `I` an int, `J` a long.
struct Signature {
  DubboService service;
  std::string_view name;
  std::string_view parameters;
  DubboMethod method;
};
constexpr std::array<Signature, 11> kSignatures{{
    {DubboService::kFirn, "nextId", "L", DubboMethod::kNextId},
    {DubboService::kFirn, "nextIds", "LI", DubboMethod::kNextIds},
    {DubboService::kFirn, "nextText", "L", DubboMethod::kNextText},
    {DubboService::kVesta, "genId", "", DubboMethod::kGenId},
    {DubboService::kVesta, "expId", "J", DubboMethod::kExpId},
    {DubboService::kVesta, "transTime", "J", DubboMethod::kTransTime},
    {DubboService::kVesta, "makeId", "JJ", DubboMethod::kMakeId},
    {DubboService::kVesta, "makeId", "JJJ", DubboMethod::kMakeId},
    {DubboService::kVesta, "makeId", "JJJJ", DubboMethod::kMakeId},
    {DubboService::kVesta, "makeId", "JJJJJ", DubboMethod::kMakeId},
    {DubboService::kVesta, "makeId", "JJJJJJ", DubboMethod::kMakeId},
}};

constexpr std::string_view kGenericTypes =
    "Ljava/lang/String;[Ljava/lang/String;[Ljava/lang/Object;";

std::optional<DubboService> ServiceOf(std::string_view name) {
  for (size_t i = 0; i < kDubboServices.size(); ++i) {
    if (kDubboServices[i] == name) return static_cast<DubboService>(i);
  }
  return std::nullopt;
}

std::string_view DescriptorOf(char parameter) {
  if (parameter == 'L') return "Ljava/lang/String;";
  return parameter == 'I' ? "I" : "J";
}

// Whether the Java descriptor `types` lists these parameters.
bool Describes(std::string_view types, std::string_view parameters) {
  for (const char one : parameters) {
    const std::string_view type = DescriptorOf(one);
    if (!types.starts_with(type)) return false;
    types.remove_prefix(type.size());
  }
  return types.empty();
}

bool IsNoVersion(std::string_view version) { return version.empty() || version == "0.0.0"; }

// Responses have attachments from protocol version 2.0.2 on. Versions from 2.0.100 on are other
// implementations, which do not read attachments.
bool TakesAttachments(std::string_view version) {
  constexpr std::string_view kPrefix = "2.0.";
  constexpr int kFirst = 2, kLast = 99;
  if (!version.starts_with(kPrefix)) return false;
  version.remove_prefix(kPrefix.size());
  int third = 0;
  for (const char digit : version) {
    if (digit < '0' || digit > '9' || third > kLast) return false;
    third = 10 * third + (digit - '0');
  }
  return !version.empty() && third >= kFirst && third <= kLast;
}

}  // namespace

std::string_view MethodsOf(DubboService service) {
  return service == DubboService::kFirn ? "nextId,nextIds,nextText"
                                        : "genId,expId,makeId,transTime";
}

// Parses one request, part by part. Each step returns false after a fault.
class DubboRequest::Parser {
 public:
  Parser(DubboRequest& request, std::string_view body, size_t text_bytes_max)
      : request_(request), body_(body), text_bytes_max_(text_bytes_max), reader_(body) {}

  std::string Run() {
    const bool read = Names() && Arguments() && Attachments();
    if (read || !fault_.empty()) return std::move(fault_);
    return Cat("the request cannot be read: it contains ", reader_.fault());
  }

 private:
  bool Fault(std::string why) {
    fault_ = std::move(why);
    return false;
  }
  bool Text(std::string& text) { return reader_.Text(text, text_bytes_max_); }

  bool Names() {
    if (!Text(request_.value_)) return false;
    request_.takes_attachments = TakesAttachments(request_.value_);
    return Text(request_.path_) && Text(request_.version_) && Text(request_.name_) &&
           Text(request_.types_);
  }

  bool Arguments() {
    if (request_.name_ == "$echo") return Echo();
    if (request_.name_ == "$invoke" || request_.name_ == "$invokeAsync") return Generic();
    for (const Signature& one : kSignatures) {
      if (one.name != request_.name_ || !Describes(request_.types_, one.parameters)) continue;
      return Values(one);
    }
    return Fault(Cat("no method ", Quoted(request_.name_), " with the parameter types ",
                     Quoted(request_.types_)));
  }

  bool Echo() {
    request_.method = DubboMethod::kEcho;
    const size_t begin = reader_.position();
    if (!reader_.Skip()) return false;
    request_.echo = body_.substr(begin, reader_.position() - begin);
    return true;
  }

  // Reads the method's name, the names of its parameter types, which may be missing, and the
  // values.
  bool Generic() {
    if (request_.types_ != kGenericTypes) {
      return Fault(Cat("no method ", Quoted(request_.name_), " with the parameter types ",
                       Quoted(request_.types_)));
    }
    request_.generic = true;
    size_t count = 0;
    if (!Text(request_.name_) || !reader_.Skip() || !reader_.List(count)) return false;
    for (const Signature& one : kSignatures) {
      if (one.name == request_.name_ && one.parameters.size() == count) return Values(one);
    }
    return Fault(Cat("no method ", Quoted(request_.name_), " with ", count, " parameters"));
  }

  bool Values(const Signature& signature) {
    wanted_ = signature.service;
    request_.method = signature.method;
    for (const char one : signature.parameters) {
      if (one == 'L') {
        if (!Text(request_.tag)) return false;
      } else {
        if (!reader_.Whole(request_.numbers[request_.numbers_count++])) return false;
      }
    }
    return true;
  }

  // A consumer sends path and interface, which differ if its settings rename the path.
  bool Attachments() {
    std::optional<DubboService> service = ServiceOf(request_.path_);
    std::string group, generic;
    if (reader_.Map()) {
      while (reader_.NextEntry()) {
        if (!Text(request_.key_)) return false;
        if (request_.key_ == "traceparent" || request_.key_ == "traceId") {
          if (!Trace(request_.key_ == "traceparent")) return false;
          continue;
        }
        const bool names_service = request_.key_ == "interface" && !service;
        const bool counts = names_service || request_.key_ == "group" || request_.key_ == "generic";
        if (!counts) {
          if (!reader_.SkipAny()) return false;
          continue;
        }
        if (!Text(request_.value_)) return false;
        if (names_service) service = ServiceOf(request_.value_);
        if (request_.key_ == "group") group = request_.value_;
        if (request_.key_ == "generic") generic = request_.value_;
      }
    }
    if (!reader_.ok()) return false;
    if (!service) return Fault(Cat("no service ", Quoted(request_.path_)));
    return Matches(*service, group, generic);
  }

  // Keeps the trace id of an attachment. Ignores a value of any type without a valid trace id.
  bool Trace(bool of_w3c) {
    constexpr size_t kBytesMax = 256;
    const size_t begin = reader_.position();
    if (!reader_.SkipAny()) return false;
    HessianReader value(body_.substr(begin, reader_.position() - begin));
    if (!value.Text(request_.value_, kBytesMax)) return true;
    if (of_w3c) {
      const std::string_view id = TraceIdOf(request_.value_);
      if (!id.empty()) request_.trace_id = id;
    } else if (request_.trace_id.empty() && IsPlainTraceId(request_.value_)) {
      request_.trace_id = request_.value_;
    }
    return true;
  }

  bool Matches(DubboService service, const std::string& group, const std::string& generic) {
    request_.service = service;
    if (wanted_ && *wanted_ != service) {
      return Fault(Cat("no method ", Quoted(request_.name_), " in ",
                       kDubboServices[static_cast<size_t>(service)]));
    }
    if (!group.empty() || !IsNoVersion(request_.version_)) {
      return Fault(Cat("the service has no group and no version; the call names group ",
                       Quoted(group), " and version ", Quoted(request_.version_)));
    }
    if (request_.generic && !generic.empty() && generic != "true") {
      return Fault(Cat("generic=", Quoted(generic), " is not supported; use generic=true"));
    }
    return true;
  }

  DubboRequest& request_;
  const std::string_view body_;
  const size_t text_bytes_max_;
  HessianReader reader_;
  std::optional<DubboService> wanted_{};  // the service that has the method
  std::string fault_;
};

std::string DubboRequest::Read(std::string_view body, size_t text_bytes_max) {
  generic = takes_attachments = false;
  tag.clear();
  trace_id.clear();
  numbers_count = 0;
  echo = {};
  return Parser(*this, body, text_bytes_max).Run();
}

}  // namespace firn::front
