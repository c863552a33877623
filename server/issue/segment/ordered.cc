#include "server/issue/segment/ordered.h"

#include <utility>

#include "common/base/cat.h"

namespace firn {

Result<std::shared_ptr<Ordered>> Ordered::Make(const TagDefinition& tag, const RangedParts& parts,
                                               const OwnedTerm& owned, OwnerLink& owner) {
  // When the owner's numbers arrive, calls at this server may be waiting for them, too.
  auto later = std::make_shared<std::weak_ptr<OwnerSource>>();
  RangedParts of_own = parts;
  of_own.news = [later, stir = parts.stir] {
    if (stir) stir();
    if (const auto source = later->lock()) source->Continue();
  };
  FIRN_ASSIGN(std::shared_ptr<OwnedNumbers> own, OwnedNumbers::Make(tag, of_own, owned));
  auto source = std::make_shared<OwnerSource>(own, owner, parts.clock, parts.stir);
  *later = source;
  const RangedParts of_line{
      .source = *source, .clock = parts.clock, .entropy = parts.entropy, .news = parts.news};
  const std::shared_ptr<Ordered> made(new Ordered(tag, of_line, std::move(own), source));
  source->CountBy([line = std::weak_ptr<Ordered>(made)] {
    const auto self = line.lock();
    return self == nullptr ? 1 : self->CountAll();
  });
  return made;
}

Ordered::Ordered(const TagDefinition& tag, RangedParts parts, std::shared_ptr<OwnedNumbers> own,
                 std::shared_ptr<OwnerSource> source)
    : Unbuffered(tag, std::move(parts)), own_(std::move(own)), source_(std::move(source)) {}

Verdict Ordered::Issue(IssueCall& call) {
  if (source_->starts()) return call.Refuse(OwnerLink::Starting());
  if (call.ticket == 0 && !IsStale(call)) TakeOwn(call);
  if (call.is_served()) return Verdict::kIssued;
  const Verdict verdict = Unbuffered::Issue(call);
  if (verdict != Verdict::kWait) return verdict;
  call.WaitLong();  // also at the owner: calls at other servers wait for the same range
  if (own_->owns() || call.refusal().reason == Reason::kStoreDown) return verdict;
  return call.Wait(call.ask_again_in(),
                   {Reason::kStoreDown, "no owner has given numbers of this tag yet", 100, true});
}

void Ordered::TakeOwn(IssueCall& call) {
  const bool whole = call.request().form == Form::kOneRun;
  while (call.missing() > 0) {
    const Result<Range> taken = own_->Take(call.missing());
    if (!taken.ok() || taken->empty()) return;
    if (whole && taken->size() < call.missing()) {
      own_->Waste(taken->size());
    } else {
      call.Add({taken->begin, taken->size(), 1});
    }
  }
}

void Ordered::Close() {
  Unbuffered::Close();
  source_->Close();
  own_->Close();
}

void Ordered::Stop() {
  Unbuffered::Stop();
  own_->Stop();
}

void Ordered::Adjust(const TagDefinition& tag) {
  own_->Adjust(tag);
  Unbuffered::Adjust(tag);
}

bool Ordered::Tick(BootMs now) {
  source_->Continue();
  const bool owner = own_->Tick(now);
  if (has_owner()) {
    const int64_t change = source_->change_of(tag());
    const bool is_new = std::exchange(change_, change) != change;
    if (std::exchange(unowned_since_, std::nullopt) || is_new) RetryNow();
    RetryIfIdle(now);
  } else if (!unowned_since_) {
    unowned_since_ = now;
  }
  unowned_ = unowned_since_ && now - *unowned_since_ >= OwnerSource::kHold;
  return Unbuffered::Tick(now) || owner;
}

std::optional<Refusal> Ordered::WhyNot() const {
  if (source_->starts()) return OwnerLink::Starting();
  if (own_->owns()) return own_->WhyNot();
  std::optional<Refusal> why = Unbuffered::WhyNot();
  if (why || !lacks_owner()) return why;
  return Refusal{Reason::kStoreDown,
                 Cat("there are no numbers in memory, and none arrive: ", source_->WhyNone(tag())),
                 100, true};
}

void Ordered::Abandon() {
  own_->Abandon();
  Unbuffered::Abandon();
}

void Ordered::Drop(const std::string& why) {
  own_->Drop(why);
  Unbuffered::Drop(why);
}

SegmentStatus Ordered::status() const {
  SegmentStatus status = own_->status();
  const SegmentStatus line = Unbuffered::status();
  status.failures += line.failures;
  status.wasted += line.wasted;
  status.per_second = std::max(status.per_second, line.per_second);
  if (own_->owns()) return status;
  status.trouble = line.trouble;
  if (status.trouble.empty() && lacks_owner()) {
    status.trouble = Unavailable(source_->WhyNone(tag())).ToString();
  }
  return status;
}

}  // namespace firn
