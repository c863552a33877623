#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

namespace firn {

// The calls of one strategy that need ids of several ticks or ranges: first come, first served. If
// they shared each tick, all would collect parts of their ids and time out. Thread-safe. Calls that
// one tick or range can serve do not come here.
class WaitingLine {
 public:
  using Micros = std::chrono::microseconds;

  // How a strategy serves such calls.
  struct Portions {
    int64_t ids = INT64_MAX;  // of one tick or range: a call for more has to wait for the next
    Micros every{0};          // from one to the next; 0: unknown
    int64_t lanes = 1;        // calls that collect ids at once
  };

  // A call's place. Leaves the line when it is destroyed, and must not outlive it.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept
        : line_(std::exchange(other.line_, nullptr)), missing_(other.missing_) {}
    Place& operator=(Place&& other) noexcept {
      if (this != &other) {
        Leave();
        line_ = std::exchange(other.line_, nullptr);
        missing_ = other.missing_;
      }
      return *this;
    }
    ~Place() { Leave(); }

    bool taken() const { return line_ != nullptr; }
    void Leave() {
      if (line_ != nullptr) std::exchange(line_, nullptr)->Remove(missing_);
    }

   private:
    friend class WaitingLine;

    WaitingLine* line_ = nullptr;
    std::list<int64_t>::iterator missing_{};  // the ids that its call has not got yet
  };

  // Takes the last place for a call for `count` ids. Nullopt: it has it. Otherwise the call would
  // not be served within `patience`: how long until the line is short enough.
  std::optional<Micros> Join(Place& place, int64_t count, const Portions& portions, Micros patience,
                             Micros now);

  // Whether it is the call's turn. Otherwise `again` is when to ask again.
  bool IsTurn(const Place& place, const Portions& portions, Micros* again) const;

  // The call at `place` misses so many ids now.
  void Note(const Place& place, int64_t missing, Micros now);

 private:
  void Remove(std::list<int64_t>::iterator missing);
  Micros TimeFor(int64_t ids, const Portions& portions, Micros now) const;

  mutable std::mutex mutex_;
  std::list<int64_t> callers_;
  int64_t missing_ = 0;  // of all callers
  // The rate at which the line got ids lately.
  int64_t given_ = 0;
  Micros since_{0};
};

}  // namespace firn
