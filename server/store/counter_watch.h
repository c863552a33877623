#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace firn {

// Detects that a store's database has lost data: a counter is below numbers that the store has
// returned. Thread-compatible.
class CounterWatch {
 public:
  // Receives a sentence whenever the database has lost data.
  using Alarm = std::function<void(const std::string&)>;

  CounterWatch(std::string store, Alarm alarm)
      : store_(std::move(store)), alarm_(std::move(alarm)) {}

  // Records the tag's counter after the store has moved it.
  void Moved(const std::string& tag, int64_t counter) { moved_[tag] = counter; }

  // Raises the alarm if the tag's counter is lower than its recorded value, or if it is below the
  // ledger and `is_lost` is set. Otherwise logs a counter below the ledger, because the numbers in
  // between may come from another store of the tag.
  void Judge(const std::string& tag, int64_t counter, int64_t ledger, bool is_lost = false) const;

 private:
  const std::string store_;
  const Alarm alarm_;
  std::map<std::string, int64_t> moved_;  // by tag
};

}  // namespace firn
