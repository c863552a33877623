#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "server/front/dubbo/dubbo_header.h"
#include "server/front/dubbo/hessian_writer.h"
#include "server/front/net/buffers.h"
#include "server/issue/refusal.h"

namespace firn::front {

// Status and Hessian 2 body of one response. Reused for each response.
class DubboAnswer {
 public:
  // Begins a response; `attachments`: the consumer expects attachments after the value.
  void Begin(bool attachments) {
    attachments_ = attachments;
    body_.clear();
    status_ = DubboStatus::kOk;
  }

  bool attachments() const { return attachments_; }

  // Begins a value, which the caller writes.
  HessianWriter& Value();
  // Appends a value that is encoded already.
  void Raw(std::string_view bytes) {
    Value();
    body_ += bytes;
  }
  // Returns the unfinished body, for Resume.
  std::string Interrupt() { return std::move(body_); }
  // Continues a value, which the caller writes.
  HessianWriter& Resume(bool attachments, std::string body) {
    Begin(attachments);
    body_ = std::move(body);
    return writer_;
  }
  // A refusal. If another server may help, it is a failure of this server, and consumers retry on
  // another one. Otherwise it is an exception of the method, which consumers throw to their caller.
  void Refuse(const Refusal& refusal);

  // Appends header and body. `request` is the header of the request.
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

// Appends an answer in the request's own serialization; false: that one is not supported.
bool AppendWrongSerialization(const DubboHeader& request, OutBuffer& out);

}  // namespace firn::front
