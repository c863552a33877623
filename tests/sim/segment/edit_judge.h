#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "server/issue/refusal.h"
#include "server/issue/strategy.h"
#include "server/node/served_tags.h"
#include "tests/sim/segment/segment_mutants.h"

namespace firn {

// Knows how a process serves each tag, and judges what happens after an edit that it cannot serve:
// the tag continues by its earlier definition if only the sizes of ranges or the buffer changed,
// and is refused otherwise.
class EditJudge {
 public:
  explicit EditJudge(SegmentMutant mutant) : mutant_(mutant) {}

  // `made`: what came of the attempt to serve `tag`; `refused`: the tags that are refused by now.
  // Returns `made`, or what a mutant makes of it.
  Result<std::shared_ptr<Strategy>> Note(const TagDefinition& tag,
                                         Result<std::shared_ptr<Strategy>> made,
                                         const RefusedTags& refused);
  // The tag is not served any more.
  void Forget(const std::string& tag);

  void JudgeRefusal(const std::string& tag, const Refusal& refusal) const;
  void JudgeIssue(const std::string& tag) const;

 private:
  struct Served {
    TagDefinition tag;
    std::shared_ptr<Strategy> strategy;
  };
  struct Unservable {
    bool continues;  // by the earlier definition
    std::string why;
  };

  const SegmentMutant mutant_;
  std::map<std::string, Served> served_;  // by tag, last
  std::map<std::string, Unservable>
      unservable_;  // by tag, whose present definition cannot be served
};

}  // namespace firn
