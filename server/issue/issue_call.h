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
  kIssued,   // all ids are there
  kWait,     // not yet: park the call, and call again
  kRefused,  // no, and repeating the same call is pointless for now
};

// One call for ids, from its first attempt to its end: the request, and the progress. The caller
// creates it, keeps it while it waits, and passes it again unchanged, so that a batch that got a
// part continues where it was. It may be reused for the next call, which then allocates nothing.
// One thread at a time.
//
// The request's memory must live until Issuer::Issue has returned; a waiting call copies the tag's
// name and refers only to the tag, to `client` and to `trace_id`.
class IssueCall {
 public:
  IssueCall() = default;
  explicit IssueCall(const Request& request) { Begin(request); }
  IssueCall(const Tag& tag, const Request& request) { Begin(tag, request); }

  void Begin(const Tag& tag, const Request& request) {
    Begin(request);
    tag_ = &tag;
  }

  // A call for a name that Issuer::Resolve does not know (yet).
  void Begin(const Request& request) {
    tag_ = nullptr;
    sought_ = 0;
    binding_ = nullptr;
    waits_ = false;
    request_ = request;
    missing_ = request.count;
    runs_.Clear();
    work_.Clear();
    ticket = 0;
    place.reset();
  }

  // --- for the caller ---------------------------------------------------------------------------

  // How long the call may wait from now on. Set before each attempt.
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
  // longer for an answer than a tick takes, and is asked once for each new tag.
  std::chrono::milliseconds waits_at_most() const {
    return tag_ == nullptr ? kSeekPatience : std::chrono::milliseconds(0);
  }
  static constexpr std::chrono::milliseconds kSeekPatience{1'000};

  // After kIssued: the id in the text form that the tag had when the call began.
  void AppendText(int64_t id, WallMs now, std::string& out) const;

  // --- for the strategy -------------------------------------------------------------------------

  int64_t missing() const { return missing_; }  // ids still needed
  Method method() const { return request_.method; }

  // `run` must not have more ids than are missing.
  void Add(IdRun run) {
    runs_.Add(run);
    missing_ -= run.count;
  }
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

  // The strategy's own notes about a waiting call. Segment: the latest fetch in which the missing
  // ids are counted. Unbuffered: its number in the queue. 0: none.
  uint64_t ticket = 0;
  uint64_t drops = 0;                // its count of drops when the first run was got
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
  const Binding* binding_ = nullptr;  // once its plugins have let it pass
  uint64_t sought_ = 0;               // the seeker's ticket
  bool waits_ = false;
  std::shared_ptr<const std::string> name_;  // of an unknown tag, once the call has waited
};

}  // namespace firn
