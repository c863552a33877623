#pragma once

#include <chrono>

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
    tag_ = &tag;
    binding_ = nullptr;
    request_ = request;
    demand_.missing = request.count;
    demand_.method = request.method;
    demand_.runs.Clear();
    demand_.ticket = 0;
  }

  const Request& request() const { return request_; }
  const Runs& runs() const { return demand_.runs; }                                // after kIssued
  const Refusal& refusal() const { return demand_.refusal; }                       // after kRefused
  std::chrono::microseconds ask_again_in() const { return demand_.ask_again_in; }  // after kWait

 private:
  friend class Issuer;

  const Tag* tag_ = nullptr;
  const Binding* binding_ = nullptr;  // once its plugins have let it pass
  Request request_;
  Demand demand_;
};

}  // namespace firn
