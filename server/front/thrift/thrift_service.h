#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/front/desk/backend.h"
#include "server/front/desk/id_desk.h"
#include "server/front/desk/lease_calls.h"
#include "thrift/gen/IdService.h"

namespace firn::front {

// What a parked call waits for; nothing: for the next status report.
struct ThriftWaiting {
  WaitingIds ids{};
  LeaseCalls::Waiting lease{};
};

// The wire contract on one IO thread: Twitter's methods and Firn's, over the issuer. Every "no" is
// a declared refusal. The method of a call that has to wait throws a ServeStep without a request:
// no std::exception on purpose, so the generated code lets it pass. The method is called again
// with the same arguments later.
class ThriftService final : public wire::IdServiceIf {
 public:
  // All must outlive it. Null: the server grants no leases.
  ThriftService(const Backend& backend, DeskCounters& counters, LeaseDesk* leases = nullptr);

  // Where the next call comes from, and what it waits for: what it waited for before, if it is
  // tried again. Both must be valid until that call returns.
  void Begin(DoorCall& door, ThriftWaiting& waiting) {
    door_ = &door;
    waiting_ = &waiting;
    short_.reset();
  }

  // Ids for up to `calls` calls in the short way; nothing: the first has to be processed.
  std::optional<IdRun> Run(const Tag& tag, int64_t calls) { return desk_.Run(tag, calls); }

  // What the call was answered with, where that was the short way, and the tag is the one of its
  // name for ever: a name that is served by default may get a tag of its own.
  struct ShortAnswer {
    const Tag& tag;
    int64_t id;
  };
  const std::optional<ShortAnswer>& short_answer() const { return short_; }

  // What getIds() would list: valid until the next call.
  const Runs& Ids(const std::string& tag, int32_t count);

  // What status() answers, and the wire's form of it. Parks the call until there is a report that
  // its connection has not been sent.
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
  // Without the entries: they are written from listed(), unless that is the caller's own version.
  void servers(wire::ServerList& out, int64_t known_version) override;
  void lease(wire::LeaseTerms& out, const wire::LeaseAsk& ask) override;
  void renewLease(wire::LeaseTerms& out, const wire::LeaseRenewal& renewal) override;
  void releaseLease(const wire::LeaseEnd& end) override;
  void ping() override {}

  // The list that servers() answered with.
  const std::shared_ptr<const ListedServers>& listed() const { return listed_; }

 private:
  // Returns with the ids, or not at all.
  const IssueCall& Ask(std::string_view tag, int64_t count, Form form);
  [[noreturn]] void Refuse(Refusal refusal);
  template <typename T>
  T ValueOf(Result<T> result);
  MachineId Machine();
  // Returns with the promise, or nothing for a lease that has ended, or not at all.
  template <typename Request>
  std::optional<LeasePromise> AskForLease(const Request& request);

  const Backend& backend_;
  IdDesk desk_;
  LeaseCalls leases_;
  DoorCall* door_ = nullptr;
  ThriftWaiting* waiting_ = nullptr;
  std::optional<ShortAnswer> short_;
  std::shared_ptr<const ListedServers> listed_;
};

}  // namespace firn::front
