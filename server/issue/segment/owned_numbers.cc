#include "server/issue/segment/owned_numbers.h"

#include <utility>

namespace firn {

Result<std::shared_ptr<OwnedNumbers>> OwnedNumbers::Make(const TagDefinition& tag,
                                                         RangedParts parts,
                                                         const OwnedTerm& owned) {
  auto cells = std::make_unique<ForkCells>();
  FIRN_ASSIGN(ForkCells::Cell * numbers, cells->Take());
  return std::shared_ptr<OwnedNumbers>(
      new OwnedNumbers(tag, std::move(parts), std::move(cells), *numbers, owned));
}

bool OwnedNumbers::TryRun(Method, int64_t want, IdRun* run) {
  const uint64_t term = owned_.Load();
  if (term == 0) return false;
  const Range taken = numbers().TakeUpTo(want);
  *run = {taken.begin, taken.size(), 1};
  return !taken.empty() && IsOurs(term, taken.size());
}

Result<Range> OwnedNumbers::Take(int64_t count) {
  const uint64_t term = owned_.Load();
  if (!owned_.Holds(term, parts_.clock.Boot())) return Range{};
  Status why;
  const Range taken = TakeUpTo(count, &why);
  // The callers of an owner ask again after kNotFound: OwnerLink::Take.
  if (why.code() == Code::kNotFound) return Unavailable(why.message());
  if (!why.ok()) return why;
  if (taken.empty() || IsOurs(term, taken.size())) return taken;
  return Range{};
}

void OwnedNumbers::Waste(int64_t count) {
  const Lock lock(mutex_);
  counts_.wasted += count;
}

}  // namespace firn
