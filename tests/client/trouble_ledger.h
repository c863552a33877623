#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/call_report.h"
#include "client/client_options.h"
#include "common/base/status.h"
#include "common/time/micros.h"
#include "tests/client/scheduling.h"

namespace firn {

// Looks on at the calls of a few clients among servers that misbehave, one of which is always well
// and always listed:
//
//  1. No id is given twice, by whatever kind of call to whichever client, nor one that is no id of
//     these servers. Each call is given as many as it asked for.
//  2. Every call ends, once; the end of the client ends those that are under way. Its report then
//     has what it tried, and one answer if it was given one.
//  3. None ends later than its deadline, but for kPunctual and the time that the machine kept its
//     threads waiting (Scheduling).
//  4. A call that fails before its deadline, or had time enough, has asked the well server, which
//     did not answer in time because the machine kept it from running; or the retry budget was used
//     up, all of it, and not asked for what is free. The well server is lost by time-outs only.
//
// Thread-safe.
class TroubleLedger {
 public:
  static constexpr Micros kPunctual{150'000};

  struct Asked {
    Milliseconds time{0};
    bool patient = false;        // that is time enough
    Milliseconds attempt{0};     // how long its client waits for a server
    bool local = false;          // it may be answered from memory
    bool timed = false;          // its ids are made of time, and the client knows
    std::optional<int> count{};  // of its ids; none: what comes is the server's business
  };
  // One call, from before it begins; kept by its callback.
  struct Call {
    Asked asked{};
    CallReport report{};
    Micros due{0};
    std::atomic<bool> ended = false;
  };
  using CallPtr = std::shared_ptr<Call>;

  // All ids are above those of servers that were there before.
  TroubleLedger(std::string well, int64_t ids_above)
      : well_(std::move(well)), ids_above_(ids_above) {}

  CallPtr Began(const Asked& asked);
  void Ended(Call& call, const Status& status, const std::vector<int64_t>& ids);
  // Calls that are under way fail from now on. Of all clients together: what they retried.
  void ClientsEnd(uint64_t retries);
  uint64_t under_way() const { return began_ - ended_; }

  struct Sum {
    uint64_t calls = 0, failed = 0, impatient = 0, denied = 0, slow = 0, ids = 0;
    uint64_t late = 0;      // later than kPunctual, for whatever reason
    Micros unexplained{0};  // the most that one was later than Scheduling explains
    Sum& operator+=(const Sum& other);
    std::string ToString() const;
  };
  // When all is over: every fault, a line each, and what there was.
  std::string Faults(const Scheduling& scheduling);
  Sum sum() const { return sum_; }
  // After Faults.
  int64_t last_id() const { return last_id_; }

 private:
  // Something that only a machine that kept its threads waiting explains.
  struct Slow {
    Micros from, ended;
    std::string outcome;
    Milliseconds attempt{0};
  };
  // What some of the threads have seen: a thread that was kept from running holds up few others.
  struct alignas(64) Page {
    std::mutex mutex;
    std::vector<int64_t> ids;  // under mutex, as all below
    std::vector<Slow> late, slow;
    Sum sum;
    std::string faults;
  };
  Page& OwnPage();
  static void LookAtAnswer(const Call& call, const std::vector<int64_t>& ids, Page& page);
  void LookAtFailure(const Call& call, const Status& status, Micros now, Page& page);
  void LookAtLateness(const Page& page, const Scheduling& scheduling);
  void LookAtSlowness(const Page& page, const Scheduling& scheduling);
  void LookAtIds(std::vector<int64_t> ids);
  static void Fault(std::string& faults, const std::string& text);

  const std::string well_;
  const int64_t ids_above_;
  std::atomic<uint64_t> began_ = 0, ended_ = 0;
  std::atomic<bool> ending_ = false;
  uint64_t retries_ = 0;
  int64_t last_id_ = 0;
  std::array<Page, 256> pages_;
  Sum sum_;
  std::string faults_;
};

}  // namespace firn
