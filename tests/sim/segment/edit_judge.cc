#include "tests/sim/segment/edit_judge.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "common/tag/tag_diff.h"
#include "server/issue/refusing_strategy.h"
#include "tests/sim/segment/segment_violation.h"

namespace firn {
namespace {

bool IsOfRanges(const std::string& line) {
  constexpr std::array<std::string_view, 5> kFields{
      "step:", "step_max:", "hold_minutes:", "prefetch_at:", "buffer:"};
  return std::any_of(kFields.begin(), kFields.end(),
                     [&](std::string_view field) { return line.starts_with(field); });
}

bool EditsRangesOnly(const TagDefinition& before, const TagDefinition& after) {
  const std::vector<TagChange> changes = DiffTags({before}, {after});
  return std::all_of(changes.begin(), changes.end(), [](const TagChange& change) {
    return std::all_of(change.lines.begin(), change.lines.end(), IsOfRanges);
  });
}

}  // namespace

Result<std::shared_ptr<Strategy>> EditJudge::Note(const TagDefinition& tag,
                                                  Result<std::shared_ptr<Strategy>> made,
                                                  const RefusedTags& refused) {
  if (made.ok()) {
    served_.insert_or_assign(tag.name, Served{tag, *made});
    unservable_.erase(tag.name);
    return made;
  }
  const auto before = served_.find(tag.name);
  const auto fault = refused.find(tag.name);
  const bool serves = before != served_.end() &&
                      (fault == refused.end() || fault->second.state == TagState::kNoNumbers);
  const bool continues = serves && EditsRangesOnly(before->second.tag, tag);
  const auto known = unservable_.find(tag.name);
  const bool news = known == unservable_.end() || known->second.continues != continues;
  const int64_t number = news ? ++edits_ : known->second.number;
  unservable_.insert_or_assign(tag.name, Unservable{continues, made.status().message(), number});
  if (mutant_ == SegmentMutant::kEditStopsTag) {
    return std::shared_ptr<Strategy>(std::make_shared<RefusingStrategy>(
        Refusal{.reason = Reason::kNotReady, .message = made.status().message()}));
  }
  if (mutant_ == SegmentMutant::kUnsafeEditKept && serves) return before->second.strategy;
  return made;
}

void EditJudge::Forget(const std::string& tag) {
  served_.erase(tag);
  unservable_.erase(tag);
}

void EditJudge::JudgeRefusal(const std::string& tag, const Refusal& refusal) const {
  const auto edit = unservable_.find(tag);
  if (edit == unservable_.end() || !edit->second.continues) return;
  if (refusal.message.find(edit->second.why) == std::string::npos) return;
  throw SegmentViolation("tag " + tag + " was stopped by an edit of its ranges");
}

void EditJudge::JudgeIssue(const std::string& tag, int64_t edits) const {
  const auto edit = unservable_.find(tag);
  if (edit == unservable_.end() || edit->second.continues || edit->second.number > edits) return;
  throw SegmentViolation("tag " + tag +
                         " issues after an edit of its source that cannot be served");
}

}  // namespace firn
