#pragma once

#include <utility>

#include "server/issue/segment/range_source.h"
#include "server/store/control_thread.h"
#include "server/store/ledger.h"

namespace firn {

// Ranges that the ledger itself picks, without a store, with one write per range. Thread-safe;
// answers are delivered on the control thread.
class RegistrySource final : public RangeSource {
 public:
  // `ledger` is used on the thread that `control` posts to, and must outlive the posted tasks.
  RegistrySource(Ledger& ledger, PostToControl control)
      : ledger_(ledger), control_(std::move(control)) {}

  void Take(const TagDefinition& tag, int64_t size, TakeDone done) override;
  void GiveBack(const TagDefinition& tag, Range tail, GiveBackDone done) override;
  bool permits_no_buffer() const override { return true; }

 private:
  Ledger& ledger_;
  const PostToControl control_;
};

}  // namespace firn
