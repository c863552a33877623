#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "common/id/claim.h"

namespace firn {

// Collects every id that any thread got, and for each claim its end and its last id at the time it
// was closed. Many threads fill their own lists; one thread judges them.
class IdOracle {
 public:
  struct Term {
    Tick first;
    Tick end;   // granted when it was closed
    Tick last;  // the last tick that Close returned
  };

  void Closed(const Claim& claim, Tick last) {
    terms_[claim.machine()].push_back({claim.first_tick(), claim.end_tick(), last});
  }

  // Ids of one thread, in the order in which it got them.
  void Saw(std::vector<int64_t> ids) {
    if (!fault_) CheckRising(ids);
    all_.insert(all_.end(), ids.begin(), ids.end());
  }

  size_t size() const { return all_.size(); }
  size_t claims_used() const { return claims_used_; }

  // Returns the first fault in the collected ids. Call when all lists are complete.
  std::optional<std::string> Judge() {
    std::sort(all_.begin(), all_.end());
    const auto twice = std::adjacent_find(all_.begin(), all_.end());
    if (twice != all_.end()) Fault("given twice", *twice);
    std::map<const Term*, Tick> newest;
    for (const int64_t id : all_) {
      const Term* term = TermOf(id);
      if (term == nullptr) {
        Fault("of no claim", id);
        continue;
      }
      Tick& last = newest[term];
      last = std::max(last, Layout::Firn().Unpack(id)->tick);
    }
    claims_used_ = newest.size();
    for (const auto& [term, last] : newest) {
      if (last != term->last) Fault("`last` is not the last of it", last.count());
    }
    return fault_;
  }

 private:
  // A thread uses one claim after another; under each, its ids rise.
  void CheckRising(const std::vector<int64_t>& ids) {
    std::map<uint32_t, int64_t> newest;
    for (const int64_t id : ids) {
      int64_t& before = newest[Layout::Firn().Unpack(id)->machine.value()];
      if (id <= before) Fault("did not rise", id);
      before = id;
    }
  }

  const Term* TermOf(int64_t id) const {
    const IdFields fields = Layout::Firn().Unpack(id).value();
    const auto of_machine = terms_.find(fields.machine);
    if (of_machine == terms_.end()) return nullptr;
    for (const Term& term : of_machine->second) {
      if (term.first <= fields.tick && fields.tick < term.end && fields.tick <= term.last) {
        return &term;
      }
    }
    return nullptr;
  }

  void Fault(const char* what, int64_t id) {
    if (fault_) return;
    std::ostringstream text;
    text << id << " " << what;
    fault_ = text.str();
  }

  std::map<MachineId, std::vector<Term>> terms_;
  std::vector<int64_t> all_;
  size_t claims_used_ = 0;
  std::optional<std::string> fault_;
};

}  // namespace firn
