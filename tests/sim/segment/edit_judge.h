#pragma once

#include <cstdint>
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

// Records the definition by which a process serves each tag, and judges the behaviour after an edit
// that the process cannot serve. If only the sizes of ranges or the buffer changed, the process
// keeps the earlier definition. Otherwise it refuses the tag.
class EditJudge {
 public:
  explicit EditJudge(SegmentMutant mutant) : mutant_(mutant) {}

  // Notes an attempt to serve `tag`. `made` is its result, and `refused` are the tags that were
  // refused before it. Returns `made`, or what a mutant returns instead.
  Result<std::shared_ptr<Strategy>> Note(const TagDefinition& tag,
                                         Result<std::shared_ptr<Strategy>> made,
                                         const RefusedTags& refused);
  // Notes that the tag is no longer served.
  void Forget(const std::string& tag);

  void JudgeRefusal(const std::string& tag, const Refusal& refusal) const;
  // `edits`: edits() when the call began. A call that waits is answered by the definition under
  // which it began, because the ledger covers its numbers.
  void JudgeIssue(const std::string& tag, int64_t edits) const;
  // Returns the number of edits so far that this process could not serve.
  int64_t edits() const { return edits_; }

 private:
  struct Served {
    TagDefinition tag;
    std::shared_ptr<Strategy> strategy;
  };
  struct Unservable {
    bool continues;  // the earlier definition serves the tag
    std::string why;
    int64_t number;  // the position among all such edits, from 1 on
  };

  const SegmentMutant mutant_;
  std::map<std::string, Served> served_;          // by tag: the last that could be served
  std::map<std::string, Unservable> unservable_;  // by tag, while its definition is of this kind
  int64_t edits_ = 0;
};

}  // namespace firn
