#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "common/base/units.h"
#include "server/issue/request.h"
#include "server/issue/strategy.h"
#include "server/issue/tag_table.h"

namespace firn {

// One call for ids, from its first attempt to its end. The caller makes it, keeps it while it is
// parked, and may use it again for the next call, which then allocates nothing. One thread at a
// time; what it was begun with must live until its end.
class IssueCall {
 public:
  IssueCall() = default;
  IssueCall(const Tag& tag, const Request& request) { Begin(tag, request); }

  void Begin(const Tag& tag, const Request& request) {
    Begin(request);
    tag_ = &tag;
  }

  // A call for a name that Resolve does not know (yet).
  void Begin(const Request& request) {
    tag_ = nullptr;
    sought_ = 0;
    binding_ = nullptr;
    request_ = request;
    demand_.missing = request.count;
    demand_.method = request.method;
    demand_.runs.Clear();
    demand_.ticket = 0;
  }

  const Request& request() const { return request_; }
  const Tag* tag() const { return tag_; }                                          // after kIssued
  const Runs& runs() const { return demand_.runs; }                                // after kIssued
  const Refusal& refusal() const { return demand_.refusal; }                       // after kRefused
  std::chrono::microseconds ask_again_in() const { return demand_.ask_again_in; }  // after kWait

  // After kIssued: the id in the text form that the tag had when the call began.
  void AppendText(int64_t id, WallMs now, std::string& out) const {
    if (binding_->text == nullptr) {
      out += std::to_string(id);
    } else {
      binding_->text->AppendTo(out, id, now);
    }
  }

 private:
  friend class Issuer;

  const Tag* tag_ = nullptr;
  uint64_t sought_ = 0;               // the seeker's ticket
  const Binding* binding_ = nullptr;  // once its plugins have let it pass
  Request request_;
  Demand demand_;
};

}  // namespace firn
