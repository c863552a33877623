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
  kRefused,  // retrying at once would not help
};

// One call for ids: the request and its progress. While the call waits, the caller keeps the object
// and passes it again unchanged, so that a partly served batch continues. A reused object allocates
// nothing for its next call. One thread at a time.
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

  // Begins a joint call: it represents `request.count` equal calls for one id each, and is issued
  // as soon as it has ids for some of them. Only for tags that Issuer::Joins.
  void BeginJoint(const Tag& tag, const Request& request) {
    Begin(tag, request);
    joint_ = true;
  }

  // For a name that Issuer::Resolve does not find.
  void Begin(const Request& request) {
    tag_ = nullptr;
    sought_ = 0;
    binding_ = nullptr;
    waits_ = waits_long_ = joint_ = false;
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
  bool joint() const { return joint_; }
  // The number of calls that it represents.
  uint64_t calls() const { return joint_ ? static_cast<uint64_t>(request_.count) : 1; }
  bool waits() const { return waits_; }
  const Tag* tag() const { return tag_; }              // after kIssued
  const Runs& runs() const { return runs_; }           // after kIssued; ids so far
  const Refusal& refusal() const { return refusal_; }  // after kRefused
  std::chrono::microseconds ask_again_in() const { return ask_again_in_; }  // after kWait

  // After kWait: the call has all its ids, and a plugin has processed a part of them. The caller
  // should continue the call in its next turn, without a delay.
  bool has_all_ids() const { return !work_.done.empty(); }

  // Bytes allocated for its ids, used or not.
  size_t memory() const { return runs_.memory() + work_.done.memory(); }

  // After kWait: the call's total patience if it waits for the registry or for the owner of its tag,
  // which may exceed that of other calls; otherwise 0. The server queries the registry once for
  // each new tag. All servers request numbers from the same owner, so failing over early is
  // useless.
  std::chrono::milliseconds waits_at_most() const {
    return tag_ == nullptr || waits_long_ ? kSeekPatience : std::chrono::milliseconds(0);
  }
  static constexpr std::chrono::milliseconds kSeekPatience{1'000};

  // After kIssued: appends the id in the text form that the tag had when the call began.
  void AppendText(int64_t id, WallMs now, std::string& out) const;

  // --- for the strategy -------------------------------------------------------------------------

  int64_t missing() const { return missing_; }  // ids still needed
  bool is_served() const { return missing_ == 0 || (joint_ && missing_ < request_.count); }
  Method method() const { return request_.method; }

  // `run` must not contain more ids than are missing.
  void Add(IdRun run) {
    runs_.Add(run);
    missing_ -= run.count;
  }
  // Records that the call waits for the registry or an owner.
  void WaitLong() { waits_long_ = true; }
  // Returns kWait. `otherwise` is the answer if the call times out.
  Verdict Wait(std::chrono::microseconds delay, Refusal otherwise) {
    ask_again_in_ = delay;
    refusal_ = std::move(otherwise);
    return Verdict::kWait;
  }
  Verdict Refuse(Refusal why) {
    refusal_ = std::move(why);
    return Verdict::kRefused;
  }

  // A waiting call's state in its strategy; 0: none. Segment: the latest fetch that includes the
  // missing ids. Unbuffered: the call's number in the queue. SnowflakeLanes: the lane's number,
  // from 1.
  uint64_t ticket = 0;
  uint64_t drops = 0;  // the strategy's number of drops when the call took its first run
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
  const Binding* binding_ = nullptr;  // set once its plugins have accepted the call
  uint64_t sought_ = 0;               // the seeker's ticket
  bool waits_ = false;
  bool waits_long_ = false;
  bool joint_ = false;
  std::shared_ptr<const std::string> name_;  // set when a call for an unknown tag waits
};

}  // namespace firn
