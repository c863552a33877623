#include "registry/claim/tenure.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "registry/claim/claim_options.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

constexpr GrantEnd kAtBound{.why = "the claim's bound has not been raised in the registry",
                            .passes = false};
// L is raised 20 times a second, unless the machine is overloaded or was suspended.
constexpr GrantEnd kLateGrant{.why = "the grant file has not been extended in time"};

}  // namespace

Tenure::Tenure(Terms terms, const Layout& layout)
    : terms_(std::move(terms)),
      limit_(terms_.base),
      claim_(std::make_shared<Claim>(layout, terms_.machine, terms_.base)) {
  if (terms_.nonce.zero()) Die("a claim without a nonce");
  if (terms_.bound < terms_.base) Die("a claim whose bound lies below its base");
}

Tenure::Terms Tenure::TermsOf(const Grant& grant) {
  return {.slot = grant.slot,
          .machine = grant.machine,
          .nonce = grant.nonce,
          .word = grant.word,
          .pending_word = grant.pending_word,
          .version = grant.version,
          .created_zxid = grant.created_zxid,
          .meta_version = grant.meta_version,
          .uuid = grant.uuid,
          .base = grant.limit,
          .bound = grant.bound,
          .offline = grant.offline};
}

bool Tenure::Terms::Wrote(const SlotRecord& record, int64_t at) const {
  return record.nonce == nonce && (IsOlder(at, version) || Knows(record.word));
}

WallMs ClusterTime(WallMs registry, WallMs floor, WallMs root_set_at) {
  const Milliseconds since = std::max(registry - root_set_at, Milliseconds(0));
  return std::max(registry, floor + since);
}

WallMs Tenure::Terms::ClusterTimeAt(WallMs registry) const {
  return ClusterTime(registry, floor, floor_set_at);
}

WallMs Tenure::Terms::CeilingAt(WallMs registry) const {
  return ClusterTimeAt(registry) + kPoisonAhead;
}

void Tenure::Renewed(int64_t version, const Nonce& word, WallMs bound, std::string others) {
  if (IsOlder(version, terms_.version)) Die("the version of a held claim's record went back");
  if (bound < terms_.bound) Die("the bound of a held claim went back");
  if (version != terms_.version) terms_.pending_word = {};
  terms_.version = version;
  terms_.word = word;
  terms_.bound = bound;
  terms_.others = std::move(others);
}

const Nonce& Tenure::WordToSend(Entropy& entropy) {
  if (terms_.pending_word.zero()) terms_.pending_word = Nonce::Draw(entropy);
  return terms_.pending_word;
}

void Tenure::LearnRoot(const Nonce& era, WallMs floor, WallMs set_at) {
  terms_.era = era;
  terms_.floor = floor;
  terms_.floor_set_at = set_at;
}

Grant Tenure::GrantUpTo(WallMs limit, const ClockPair& clocks) const {
  if (limit < limit_) Die("L would fall under a claim");
  return {.nonce = terms_.nonce,
          .word = terms_.word,
          .pending_word = terms_.pending_word,
          .slot = terms_.slot,
          .machine = terms_.machine,
          .bound = terms_.bound,
          .limit = limit,
          .version = terms_.version,
          .created_zxid = terms_.created_zxid,
          .meta_version = terms_.meta_version,
          .uuid = terms_.uuid,
          .clocks = clocks,
          .offline = terms_.offline};
}

void Tenure::RaiseLimit(WallMs limit) {
  if (limit < limit_) Die("L fell under a claim");
  if (limit > terms_.bound) Die("L beyond the bound");
  limit_ = limit;
  claim_->ExtendTo(limit);
  claim_->Explain(limit == terms_.bound ? kAtBound : kLateGrant);
}

WallMs Tenure::LimitFor(WallMs id_time, Tick last) const {
  const Layout& layout = claim_->layout();
  // The first tick may begin after the base.
  const WallMs used =
      std::max({id_time, layout.StartOf(claim_->first_tick()), layout.StartOf(last)});
  const WallMs ahead = layout.StartOf(layout.FirstTickFrom(used + kGrantAhead) + 1);
  return std::max(limit_, std::min(ahead, terms_.bound));
}

WallMs Tenure::BoundAfter(Tick last) const {
  const Tick next = std::max(claim_->first_tick(), last + 1);
  return claim_->layout().StartOf(next);
}

}  // namespace firn
