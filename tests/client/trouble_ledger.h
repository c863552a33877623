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

// Checks the calls of a few clients to misbehaving servers, of which one is always healthy and
// always listed:
//
//  1. No call of any kind or client returns an id that was returned before, or an id that these
//     servers did not issue. Each call returns the requested number of ids.
//  2. Every call ends exactly once, at the latest when the client is destroyed. Its report contains
//     its attempts, with one answer if it succeeded.
//  3. No call ends later than its deadline plus kPunctual and the time for which the machine
//     delayed its threads (Scheduling).
//  4. If a call fails before its deadline, or had enough time, it has tried the healthy server,
//     which did not answer in time because the machine delayed it. Otherwise the retry budget was
//     used up, without counting free retries. Attempts at the healthy server fail only by timeouts.
//
// Thread-safe.
class TroubleLedger {
 public:
  static constexpr Micros kPunctual{150'000};

  struct Asked {
    Milliseconds time{0};
    bool patient = false;        // the deadline leaves enough time
    Milliseconds attempt{0};     // timeout of its client's attempts
    bool local = false;          // ids may come from memory
    bool timed = false;          // its ids contain a time, which the client checks
    std::optional<int> count{};  // number of its ids; empty: the server determines the answer
  };
  // A call, from before its start; owned by its callback.
  struct Call {
    Asked asked{};
    CallReport report{};
    Micros due{0};
    std::atomic<bool> ended = false;
  };
  using CallPtr = std::shared_ptr<Call>;

  // `ids_above`: all ids of earlier servers are at most this one.
  TroubleLedger(std::string well, int64_t ids_above)
      : well_(std::move(well)), ids_above_(ids_above) {}

  CallPtr Began(const Asked& asked);
  void Ended(Call& call, const Status& status, const std::vector<int64_t>& ids);
  // Records that the clients are destroyed, so calls in progress may fail. `retries`: retries of
  // all clients together.
  void ClientsEnd(uint64_t retries);
  uint64_t under_way() const { return began_ - ended_; }

  struct Sum {
    uint64_t calls = 0, failed = 0, impatient = 0, denied = 0, slow = 0, ids = 0;
    uint64_t late = 0;      // calls later than kPunctual, for any reason
    Micros unexplained{0};  // largest delay that Scheduling does not explain
    Sum& operator+=(const Sum& other);
    std::string ToString() const;
  };
  // Call it at the end. Returns a line for each fault, and the totals.
  std::string Faults(const Scheduling& scheduling);
  Sum sum() const { return sum_; }
  // Call it after Faults.
  int64_t last_id() const { return last_id_; }

 private:
  // An event that only a delay of the machine explains.
  struct Slow {
    Micros from, ended;
    std::string outcome;
    Milliseconds attempt{0};
  };
  // The results of some of the threads, so that a delayed thread blocks few others.
  struct alignas(64) Page {
    std::mutex mutex;
    std::vector<int64_t> ids;  // under mutex, as all below
    std::vector<Slow> late, slow;
    Sum sum;
    std::string faults;
  };
  Page& OwnPage();
  static void CheckAnswer(const Call& call, const std::vector<int64_t>& ids, Page& page);
  void CheckFailure(const Call& call, const Status& status, Micros now, Page& page);
  void CheckLateness(const Page& page, const Scheduling& scheduling);
  void CheckSlowness(const Page& page, const Scheduling& scheduling);
  void CheckIds(std::vector<int64_t> ids);
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
