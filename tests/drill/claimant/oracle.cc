#include "tests/drill/claimant/oracle.h"

#include <algorithm>
#include <tuple>

namespace firn {

Status DuplicateOracle::Add(const std::string& process, const IssuedRun& issued) {
  const auto [entry, is_new] = numbers_.emplace(process, static_cast<uint32_t>(processes_.size()));
  if (is_new) processes_.push_back(process);
  FIRN_TRY(AddPieces(entry->second, issued.run));

  std::vector<MachineId>& machines = machines_[process];
  const MachineId machine(pieces_.back().machine);
  if (machines.empty() || machines.back() != machine) machines.push_back(machine);

  const auto [last, first] = last_at_.emplace(process, issued.at);
  longest_stall_ = std::max(longest_stall_, issued.at - last->second);
  last->second = issued.at;
  return {};
}

Status DuplicateOracle::AddPieces(uint32_t process, const IdRun& run) {
  FIRN_ASSIGN(const IdFields first, layout_.Unpack(run.first));
  FIRN_ASSIGN(const IdFields last, layout_.Unpack(run.last()));
  const bool whole =
      run.stride == layout_.stride() && first.tick == last.tick && first.machine == last.machine;
  if (whole) {
    pieces_.push_back({first.machine.value(), first.tick.count(), first.sequence,
                       static_cast<uint64_t>(run.count), process});
    return {};
  }
  for (int64_t i = 0; i < run.count; ++i) {
    FIRN_ASSIGN(const IdFields id, layout_.Unpack(run.At(i)));
    pieces_.push_back({id.machine.value(), id.tick.count(), id.sequence, 1, process});
  }
  return {};
}

DuplicateOracle::Findings DuplicateOracle::Judge() {
  std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.machine, a.tick, a.first) < std::tie(b.machine, b.tick, b.first);
  });
  Findings findings;
  const Piece* reach = nullptr;  // the piece of this tick that ends last so far
  for (const Piece& piece : pieces_) {
    findings.ids += static_cast<int64_t>(piece.count);
    if (reach == nullptr || reach->machine != piece.machine || reach->tick != piece.tick) {
      reach = &piece;
      continue;
    }
    const uint64_t end = reach->first + reach->count;
    if (piece.first < end) {
      if (findings.duplicates == 0) findings.first_duplicate = Sentence(*reach, piece);
      findings.duplicates += static_cast<int64_t>(std::min(end - piece.first, piece.count));
    }
    if (piece.first + piece.count > end) reach = &piece;
  }
  return findings;
}

std::string DuplicateOracle::Sentence(const Piece& one, const Piece& other) const {
  return "machine " + std::to_string(one.machine) + " tick " + std::to_string(one.tick) +
         " sequence " + std::to_string(other.first) + " was issued by " + processes_[one.process] +
         " and by " + processes_[other.process];
}

}  // namespace firn
