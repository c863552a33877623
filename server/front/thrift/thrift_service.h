#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/front/desk/backend.h"
#include "server/front/desk/id_desk.h"
#include "server/front/desk/joint_calls.h"
#include "server/front/desk/lease_calls.h"
#include "thrift/gen/IdService.h"
#include "thrift/gen/Peer.h"

namespace firn::front {

// The result that a parked call waits for; all empty: the next status report.
struct ThriftWaiting {
  WaitingIds ids{};
  LeaseCalls::Waiting lease{};
  std::optional<Refusal> refusal{};  // of a call for ids, which is its answer
};

// The methods of the wire contract on one IO thread: Twitter's and Firn's. Every refusal is a
// declared exception. The method of a call that must wait throws a ServeStep without a request, and
// is called again later with the same arguments. A ServeStep is not a std::exception, so the
// generated code does not catch it.
class ThriftService final : public wire::IdServiceIf {
 public:
  // All must outlive it. `leases`: null if the server grants none.
  ThriftService(const Backend& backend, DeskCounters& counters, LeaseDesk* leases = nullptr);

  // Sets the peer of the next call, and what the call waits for; if it is retried, what it waited
  // for before. Both must be valid until that call returns.
  void Begin(DoorCall& door, ThriftWaiting& waiting) {
    door_ = &door;
    waiting_ = &waiting;
    short_.reset();
  }

  // Returns ids for up to `calls` calls on the fast path; empty: the first must be processed.
  std::optional<IdRun> Run(const Tag& tag, int64_t calls) { return desk_.Run(tag, calls); }

  // Serves `calls` equal calls for one id of this tag that wait as one, if it Joins (JointCalls).
  template <typename Answers>
  std::optional<ServeStep> Jointly(const Tag& tag, size_t calls, DoorCall& door, OutBuffer& out,
                                   const Answers& answers) {
    if (!desk_.Joins(tag)) return std::nullopt;
    const std::chrono::milliseconds patience(backend_.limits.issue_wait_ms);
    return JointCalls(desk_, tag, static_cast<int64_t>(calls), patience, answers())
        .Begin(door, out);
  }
  // The refusal of the call that was answered last.
  const Refusal& refusal() const { return desk_.call().refusal(); }

  // The answer of a call whose like can be answered on the fast path, or jointly. Empty if the name
  // is that of an undefined tag, which may be defined later.
  struct ShortAnswer {
    const Tag& tag;
    int64_t id;
  };
  const std::optional<ShortAnswer>& short_answer() const { return short_; }

  // The ids for getIds(), valid until the next call.
  const Runs& Ids(const std::string& tag, int32_t count);

  // The report for status(), and its form on the wire. Parks the call until there is a report that
  // was not yet sent on its connection.
  std::shared_ptr<const StatusCache::Snapshot> NewReport();
  wire::ServerStatus ToWire(const StatusCache::Snapshot& snapshot) const;

  // --- Twitter's -------------------------------------------------------------------------------

  int64_t get_worker_id() override;
  int64_t get_datacenter_id() override;
  int64_t get_timestamp() override;
  int64_t get_id(const std::string& useragent) override;

  // --- Firn's ----------------------------------------------------------------------------------

  int64_t getId(const std::string& tag) override;
  void getIds(std::vector<int64_t>& out, const std::string& tag, int32_t count) override;
  void getRuns(std::vector<wire::IdRun>& out, const std::string& tag, int64_t count) override;
  void getText(std::string& out, const std::string& tag) override;
  void explain(wire::IdFields& out, int64_t id, const std::string& layout) override;
  int64_t compose(const wire::ComposeRequest& request) override;
  void formatTime(std::string& out, int64_t ticks, const std::string& layout) override;
  void status(wire::ServerStatus& out) override;
  // Without the entries, which are written from listed(), unless the caller knows this version.
  void servers(wire::ServerList& out, int64_t known_version) override;
  void lease(wire::LeaseTerms& out, const wire::LeaseAsk& ask) override;
  void renewLease(wire::LeaseTerms& out, const wire::LeaseRenewal& renewal) override;
  void releaseLease(const wire::LeaseEnd& end) override;
  void ping() override {}

  // Answers another server's take of a tag with buffer = owner.
  wire::OwnedRange TakeOwned(const wire::OwnedTake& take);

  // The list that servers() returned.
  const std::shared_ptr<const ListedServers>& listed() const { return listed_; }

 private:
  // Returns the ids, or throws.
  const IssueCall& Ask(std::string_view tag, int64_t count, Form form);
  [[noreturn]] void Refuse(Refusal refusal);
  template <typename T>
  T ValueOf(Result<T> result);
  MachineId Machine();
  // Returns the lease, or a default one for a lease that has ended, or throws.
  template <typename Request>
  LeaseGrant AskForLease(const Request& request);

  const Backend& backend_;
  IdDesk desk_;
  LeaseCalls leases_;
  DoorCall* door_ = nullptr;
  ThriftWaiting* waiting_ = nullptr;
  std::optional<ShortAnswer> short_;
  std::shared_ptr<const ListedServers> listed_;
};

}  // namespace firn::front
