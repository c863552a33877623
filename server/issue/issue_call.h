#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/base/units.h"
#include "server/issue/plugin.h"
#include "server/issue/refusal.h"
#include "server/issue/request.h"
#include "server/issue/runs.h"

namespace firn {

class Tag;
struct Binding;
struct LinePlace;

// How an attempt ended.
enum class Verdict : uint8_t {
  kIssued,   // all ids are in runs()
  kWait,     // park the call, then attempt it again
  kRefused,  // repeating the call now is pointless
};

// One call for ids: the request, and its progress from the first attempt to the end. The caller
// creates it, keeps it while the call waits, and passes it again unchanged, so that a partly served
// batch continues. A reused object allocates nothing for its next call. One thread at a time.
//
// The request's memory must live until Issuer::Issue has returned. A waiting call copies the tag's
// name; afterwards it refers only to the tag, to `client` and to `trace_id`.
class IssueCall {
 public:
  IssueCall() = default;
  explicit IssueCall(const Request& request) { Begin(request); }
  IssueCall(const Tag& tag, const Request& request) { Begin(tag, request); }

  void Begin(const Tag& tag, const Request& request) {
    Begin(request);
    tag_ = &tag;
  }

  // For a name that Issuer::Resolve does not know (yet).
  void Begin(const Request& request) {
    tag_ = nullptr;
    sought_ = 0;
    binding_ = nullptr;
    waits_ = waits_long_ = false;
    request_ = request;
    missing_ = request.count;
    runs_.Clear();
    work_.Clear();
    ticket = 0;
    place.reset();
  }

  // --- for the caller ---------------------------------------------------------------------------

  // How long the call may still wait. Set before each attempt.
  std::chrono::milliseconds patience = std::chrono::hours(24);

  const Request& request() const { return request_; }
  bool waits() const { return waits_; }
  const Tag* tag() const { return tag_; }              // after kIssued
  const Runs& runs() const { return runs_; }           // after kIssued; ids so far
  const Refusal& refusal() const { return refusal_; }  // after kRefused
  std::chrono::microseconds ask_again_in() const { return ask_again_in_; }  // after kWait

  // After kWait: it has all its ids, and a plugin has done a part of its work. The call is to be
  // continued in the caller's next turn, and needs no more time than that takes.
  bool has_all_ids() const { return !work_.done.empty(); }

  // Bytes of memory that its ids take, used or not.
  size_t memory() const { return runs_.memory() + work_.done.memory(); }

  // After kWait: how long it may wait altogether, if longer than other calls. The registry may need
  // longer for an answer than a tick takes: it is asked once for each new tag, and when a tag gets
  // another owner.
  std::chrono::milliseconds waits_at_most() const {
    return tag_ == nullptr || waits_long_ ? kSeekPatience : std::chrono::milliseconds(0);
  }
  static constexpr std::chrono::milliseconds kSeekPatience{1'000};

  // After kIssued: appends the id in the tag's text form as of the call's beginning.
  void AppendText(int64_t id, WallMs now, std::string& out) const;

  // --- for the strategy -------------------------------------------------------------------------

  int64_t missing() const { return missing_; }  // ids still needed
  Method method() const { return request_.method; }

  // `run` must not contain more ids than are missing.
  void Add(IdRun run) {
    runs_.Add(run);
    missing_ -= run.count;
  }
  // It waits for the registry.
  void WaitLong() { waits_long_ = true; }
  // `otherwise` is the answer if the call times out.
  Verdict Wait(std::chrono::microseconds delay, Refusal otherwise) {
    ask_again_in_ = delay;
    refusal_ = std::move(otherwise);
    return Verdict::kWait;
  }
  Verdict Refuse(Refusal why) {
    refusal_ = std::move(why);
    return Verdict::kRefused;
  }

  // The strategy's own state of a waiting call. Segment: the latest fetch that includes the missing
  // ids. Unbuffered: the call's number in the queue. SnowflakeLanes: the lane, from 1. 0: none.
  uint64_t ticket = 0;
  uint64_t drops = 0;                // count of drops when the first run was taken
  std::shared_ptr<LinePlace> place;  // in a WaitingLine

 private:
  friend class Issuer;

  Request request_;
  int64_t missing_ = 0;
  Runs runs_;
  PluginWork work_;
  Refusal refusal_;
  std::chrono::microseconds ask_again_in_{0};
  const Tag* tag_ = nullptr;
  const Binding* binding_ = nullptr;  // set once its plugins have let the call pass
  uint64_t sought_ = 0;               // the seeker's ticket
  bool waits_ = false;
  bool waits_long_ = false;
  std::shared_ptr<const std::string> name_;  // of an unknown tag, once the call has waited
};

}  // namespace firn
