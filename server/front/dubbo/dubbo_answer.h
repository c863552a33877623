#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/front/dubbo/dubbo_header.h"
#include "server/front/dubbo/hessian_writer.h"
#include "server/front/net/buffers.h"
#include "server/issue/refusal.h"

namespace firn::front {

// The body of one response in Hessian 2, and its status. Reused from response to response.
class DubboAnswer {
 public:
  // Begins a response; `attachments`: its reader expects them behind the value.
  void Begin(bool attachments) {
    attachments_ = attachments;
    body_.clear();
    status_ = DubboStatus::kOk;
  }

  bool attachments() const { return attachments_; }

  // A value, which the caller writes.
  HessianWriter& Value();
  // A value in its bytes.
  void Raw(std::string_view bytes) {
    Value();
    body_ += bytes;
  }
  // A refusal. If another server may help, it is a failure of this server, on which consumers call
  // the next one. Otherwise it is an exception of the method, which they throw to their caller.
  void Refuse(const Refusal& refusal);

  // Appends header and body. `request` is the header that is answered.
  void Append(const DubboHeader& request, OutBuffer& out);

 private:
  void Throw(std::string_view java_class, std::string_view message);

  bool attachments_ = false;
  DubboStatus status_ = DubboStatus::kOk;
  std::string body_;
  HessianWriter writer_{body_};
};

// Appends a message with a given body.
void AppendDubbo(DubboHeader header, std::string_view body, OutBuffer& out);

// The answer to a request in another serialization, in that serialization; false: none is known.
bool AppendWrongSerialization(const DubboHeader& request, OutBuffer& out);

}  // namespace firn::front
