#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/tag/tag_definition.h"
#include "registry/operate/backup.h"
#include "registry/operate/restore/restore_run.h"
#include "tests/sim/segment/segment_host.h"
#include "tests/support/registry/faults.h"

namespace firn {

// The operators who restore a simulated registry with RunRestore, the code of `firn restore`. They
// answer the questions of the plan with what an operator can know. A run may be interrupted, or
// crossed by a second operator's. Later runs continue it: with the same documents, with others, or
// with nothing but the memory in the registry.
class SegmentRestorer {
 public:
  explicit SegmentRestorer(SegmentShared& shared) : shared_(shared) {}

  // What the operators know besides the servers' reports and the highest numbers of users.
  struct Known {
    std::map<std::string, TagDefinition> tags{};     // the last definition of each
    std::map<std::string, TagDefinition> deleted{};  // likewise
    std::optional<Backup> document{};                // of the registry at the loss
    std::vector<Backup> older{};                     // other documents
    std::set<std::string> issued{};                  // tags with numbers before the first run
  };

  // Restores the registry, perhaps incompletely unless `completely`. Returns whether it is
  // restored.
  bool Restore(const Known& known, bool completely);

  // The tags of which the run that restored the registry was given the operator's definition.
  const std::set<std::string>& defined() const { return defined_; }

 private:
  enum class End { kDone, kRefused, kInterrupted };

  // The input of a run. The document at the loss alone suffices, as do reports, definitions and
  // numbers together.
  struct Given {
    bool document = false;
    bool older = false;
    bool reports = false;      // running servers have reported
    bool definitions = false;  // of all tags
    bool highs = false;        // the highest numbers of users
    bool again = false;        // confirms that the documents of an earlier run are lost
  };
  static constexpr Given kAll{true, true, true, true, true, false};

  Given Draw() const;
  std::optional<RestoreMemory> Memory() const;
  bool RunForgetful(const RestoreMemory& memory);
  End Run(Given given, const FaultPlan& plan);
  RestoreOptions Options(const Given& given, const std::vector<std::string>& answers) const;
  Result<RestoreOutcome> Call(RestoreOptions options, const FaultPlan& plan);
  std::vector<std::string> Answers(const Given& given);
  bool Answer(const std::string& message, bool& waited, std::vector<std::string>& answers);
  bool AnswerAsTheRegistry(const std::string& tag, std::vector<std::string>& answers);
  void Define(const TagDefinition& tag, std::vector<std::string>& answers) const;
  bool HasRemembered(const RestoreOptions& options) const;
  int64_t HighestOf(const std::string& tag, const std::string& question) const;
  void Show(bool reports);
  FaultPlan Interruption();
  FaultPlan Crossing();
  bool OneIn(uint64_t n) const { return shared_.dice.Below(n) == 0; }

  SegmentShared& shared_;
  const Known* known_ = nullptr;
  std::set<std::string> defined_{};
  bool shown_ = false;  // the registry contains the servers' reports
};

}  // namespace firn
