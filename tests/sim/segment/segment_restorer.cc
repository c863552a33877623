#include "tests/sim/segment/segment_restorer.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/tag/tag_fields.h"
#include "registry/cluster/freeze.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/cluster/tag_node.h"
#include "tests/sim/segment/segment_violation.h"
#include "tests/sim/sim_reports.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/forwarding_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {
namespace {

// Upper limit of the multis that a restore sends, and of those before it lifts the tags.
constexpr uint64_t kMultisMax = 40;
constexpr uint64_t kMultisBeforeTags = 6;
constexpr int kAttemptsMax = 60;
constexpr Milliseconds kAnnounceTime{20'000};
constexpr Milliseconds kPatience{3'600'000};  // a second operator may wait while a request is open

// The registry for a restore. Injects the mutants' errors of restores.
class RestoreSeam final : public ForwardingCoordinator {
 public:
  RestoreSeam(const SegmentShared& shared, const std::optional<Backup>& document)
      : ForwardingCoordinator(memory_),
        shared_(shared),
        document_(document),
        memory_(shared.tree) {}

  void Read(const std::string& path, ReadDone done, Changed changed) override {
    const bool forgets = shared_.mutant == SegmentMutant::kMemoryIgnored && path == kRestorePath;
    if (!forgets) return memory_.Read(path, std::move(done), std::move(changed));
    const auto forgotten = [done = std::move(done)](Result<Node> node) {
      if (node.ok()) node->data.clear();
      done(std::move(node));
    };
    memory_.Read(path, forgotten, std::move(changed));
  }
  void Multi(std::vector<Write> writes, WriteDone done) override {
    Write* const set = TagSet(writes);
    if (set != nullptr && shared_.mutant == SegmentMutant::kAnswersLower) Lower(*set);
    if (shared_.mutant == SegmentMutant::kTagForgotten) Forget(writes);
    memory_.Multi(std::move(writes), std::move(done));
  }

 private:
  void Lower(Write& set) const {
    const std::string name = set.path.substr(std::string(kTagsPath).size() + 1);
    Result<TagNode> node = ReadTagNode(name, set.data);
    const int64_t next = shared_.oracle.Highest(name) + 1;
    if (!node.ok() || next == 1) return;
    node->tag.high = std::min(node->tag.high, next);
    set.data = WriteTagNode(*node).value_or(set.data);
  }

  void Forget(std::vector<Write>& writes) const {
    const auto is_forgotten = [this](const Write& write) {
      if (write.kind != Write::Kind::kCreate || !document_) return false;
      const std::string folder = std::string(kTagsPath) + "/";
      return write.path.starts_with(folder) && document_->Find(write.path.substr(folder.size()));
    };
    std::erase_if(writes, is_forgotten);
  }

  const SegmentShared& shared_;
  const std::optional<Backup>& document_;
  MemoryCoordinator memory_;
};

// Returns the number that follows `words` in the message after `from`.
std::optional<int64_t> NumberAfter(std::string_view words, std::string_view message, size_t from) {
  const size_t at = message.find(words, from);
  if (at == message.npos) return std::nullopt;
  message.remove_prefix(at + words.size());
  return ParseNumber<int64_t>(message.substr(0, message.find_first_not_of("0123456789")));
}

}  // namespace

bool SegmentRestorer::Restore(const Known& known, bool completely) {
  known_ = &known;
  const bool forgets = shared_.mutant == SegmentMutant::kMemoryIgnored || OneIn(2);
  const std::optional<RestoreMemory> memory = Memory();
  if (memory) ++shared_.continued;
  bool done = memory && forgets && RunForgetful(*memory);
  if (!done && !completely) {
    const bool crosses = shared_.mutant != SegmentMutant::kMemoryIgnored && OneIn(2);
    done = Run(Draw(), crosses ? Crossing() : Interruption()) == End::kDone;
  } else if (!done) {
    End end = Run(Draw(), {});
    Given all = kAll;
    if (end == End::kRefused) end = Run(all, {});
    all.again = !HasRemembered(Options(all, {}));
    if (end == End::kRefused && all.again) end = Run(all, {});
    Require(end == End::kDone, "the registry cannot be restored");
    done = true;
  }
  Show(false);
  return done;
}

SegmentRestorer::Given SegmentRestorer::Draw() const {
  Given given{.document = known_->document && !OneIn(4), .older = OneIn(3)};
  given.reports = given.definitions = given.highs = !given.document || OneIn(3);
  if (shared_.mutant == SegmentMutant::kMemoryIgnored && known_->document) return {true};
  const std::optional<RestoreMemory> memory = Memory();
  given.again = memory && !memory->documents.empty() && given.reports && OneIn(3);
  return given;
}

// Returns the memory of an unfinished restore.
std::optional<RestoreMemory> SegmentRestorer::Memory() const {
  const std::optional<Node> root = shared_.tree.Peek(kMetaPath);
  const std::optional<Node> node = shared_.tree.Peek(kRestorePath);
  if (!root || !node) return std::nullopt;
  return RestoreMemoryIn(*node, *ParseMeta(root->data))->memory;
}

// Continues as an operator who has neither the documents nor the definitions of the first run.
// Without documents, the memory has the definitions. Returns whether the registry is restored.
bool SegmentRestorer::RunForgetful(const RestoreMemory& memory) {
  const bool has_documents = !memory.documents.empty();
  const End end = Run({.reports = !has_documents, .highs = !has_documents}, {});
  const bool is_refused = !has_documents || end == End::kRefused;
  Require(is_refused || shared_.mutant != SegmentMutant::kNone,
          "a restore continued without the documents of the first run");
  if (has_documents) ++shared_.forgetful;
  return end == End::kDone;
}

// Interrupts the operator's connection before one of the writes, or before its answer.
FaultPlan SegmentRestorer::Interruption() {
  const bool early = shared_.mutant == SegmentMutant::kMemoryIgnored || OneIn(3);
  const Fate::Kind kind = OneIn(2) ? Fate::Kind::kRefused : Fate::Kind::kAnswerLost;
  return
      [left = shared_.dice.Below(early ? kMultisBeforeTags : kMultisMax), kind](Verb verb) mutable {
        if (verb != Verb::kMulti) return Fate();
        if (left > 0) return --left, Fate();
        return Fate{kind, {}, {}};
      };
}

// Runs a second operator's restore in the middle of the first one.
FaultPlan SegmentRestorer::Crossing() {
  FaultPlan second = OneIn(2) ? Interruption() : FaultPlan();
  return [this, left = shared_.dice.Below(kMultisMax), second](Verb verb) mutable {
    if (verb != Verb::kMulti || left-- != 0) return Fate();
    ++shared_.crossed;
    shared_.trace("a second operator restores the registry");
    const bool shown = shown_;
    const std::set<std::string> defined = defined_;  // by the answers of the first operator
    static_cast<void>(Run(Draw(), second));
    defined_ = defined;
    Show(shown);
    return Fate();
  };
}

// Runs the command until it ends, and answers its questions.
SegmentRestorer::End SegmentRestorer::Run(Given given, const FaultPlan& plan) {
  std::vector<std::string> answers = Answers(given);
  bool waited = false;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    Show(given.reports);
    const RestoreOptions options = Options(given, answers);
    const Result<RestoreOutcome> outcome = Call(options, plan);
    const Status status = outcome.ok() ? outcome->question : outcome.status();
    shared_.trace("firn restore: " + status.message());
    if (outcome.ok() && outcome->kind == RestoreOutcome::Kind::kRestored) {
      Require(outcome->unreadable.empty(), "a restore left a tag unreadable");
      return End::kDone;
    }
    const bool lacks =
        status.message().find("is unfinished, and a run without it") != std::string::npos;
    Require(!lacks || !HasRemembered(options), "a restore with all documents was refused");
    if (outcome.ok() && status.ok()) {
      const bool has_servers = shown_ && !shared_.reports().empty();
      Require(has_servers, "a restore found nothing new after a loss");
      given.again = true;  // the operator knows of a loss
      continue;
    }
    if (status.code() != Code::kConflict) return End::kInterrupted;
    if (!Answer(status.message(), waited, answers)) return End::kRefused;
  }
  return End::kRefused;
}

RestoreOptions SegmentRestorer::Options(const Given& given,
                                        const std::vector<std::string>& answers) const {
  std::vector<std::string> flags{"--tag_gap=0"};
  if (given.again) flags.emplace_back("--again=true");
  for (const std::string& answer : answers) flags.push_back("--set=" + answer);
  RestoreOptions options;
  Require(SetFlags(flags, options).ok(), "an operator's flags are invalid");
  if (shared_.mutant == SegmentMutant::kDocumentsIgnored) return options;
  if (given.document && known_->document) {
    Require(AddDocument("/backup", *known_->document, options).ok(), "a document is refused");
  }
  for (const Backup& document : known_->older) {
    if (!given.older) break;
    Require(AddDocument("/older", document, options).ok(), "an older document is refused");
  }
  return options;
}

Result<RestoreOutcome> SegmentRestorer::Call(RestoreOptions options, const FaultPlan& plan) {
  FaultyCoordinator coordinator(std::make_unique<RestoreSeam>(shared_, known_->document),
                                shared_.clock, plan);
  BlockingCoordinator registry(coordinator, shared_.clock, kPatience);
  Require(registry.Connect(Milliseconds(1'000)).ok(), "no session");
  const auto await_reports = [this](bool) {
    shared_.pass(kAnnounceTime);
    Show(shown_);
  };
  const RestoreContext context{.clock = shared_.clock,
                               .entropy = shared_.dice,
                               .command = {.registry = "sim", .host = "sim"},
                               .await_reports = await_reports};
  return RunRestore(registry, context, options);
}

// Returns the answers that an operator gives without being asked.
std::vector<std::string> SegmentRestorer::Answers(const Given& given) {
  std::vector<std::string> answers{"workers=1"};
  defined_.clear();
  for (const auto& [name, tag] : known_->tags) {
    const int64_t highest = shared_.oracle.Highest(name);
    if (given.definitions) Define(tag, answers), defined_.insert(name);
    if (!tag.HasLedger()) continue;
    if (given.definitions && highest == 0) answers.push_back(AnswerOf(name, "start", "1"));
    if (given.highs && highest > 0)
      answers.push_back(AnswerOf(name, "high", std::to_string(highest)));
  }
  return answers;
}

// Answers with a definition, in place of an earlier one.
void SegmentRestorer::Define(const TagDefinition& tag, std::vector<std::string>& answers) const {
  for (const TagField& field : TagFields()) {
    const std::string key(field.key);
    if (key == "start") continue;
    const std::string begin = AnswerOf(tag.name, key, "");
    std::erase_if(answers, [&begin](const auto& one) { return one.starts_with(begin); });
    const bool said = Concerns(field, tag) && !IsDefault(field, tag);
    if (said || key == "strategy") answers.push_back(begin + FieldText(field, tag));
  }
}

// Answers with the definition in the registry, which an operator sees. Returns false if the users
// had numbers before the first run: these have the form of the operator's last definition.
bool SegmentRestorer::AnswerAsTheRegistry(const std::string& tag,
                                          std::vector<std::string>& answers) {
  const std::optional<Node> node = shared_.tree.Peek(TagPath(tag));
  if (!node || known_->issued.contains(tag)) return false;
  Define(ReadTagNode(tag, node->data)->tag, answers);
  defined_.erase(tag);
  return true;
}

// Returns whether the options contain all documents of the unfinished restore.
bool SegmentRestorer::HasRemembered(const RestoreOptions& options) const {
  const std::optional<RestoreMemory> memory = Memory();
  const RestoreMemory given = MemoryOf(options, "sim");
  return !memory || std::ranges::all_of(memory->documents, [&given](const auto& document) {
    return given.Knows(document);
  });
}

// Answers the questions of a message for the next attempt. Answers only raise: one below a known
// number is left out. Returns false if the operator does not know the answer.
bool SegmentRestorer::Answer(const std::string& message, bool& waited,
                             std::vector<std::string>& answers) {
  if (message.find("run the command again") != message.npos) return true;
  const std::string below = "not restored: --set=";
  if (message.starts_with(below)) {
    const std::string_view rest = std::string_view(message).substr(below.size());
    return std::erase(answers, rest.substr(0, rest.find(" is below "))) > 0;
  }
  // A careful operator lets the servers settle before it gives a number without a gap.
  const bool asks_of_end = message.find("is beyond its last number") != message.npos;
  if (asks_of_end && !std::exchange(waited, true)) return shared_.pass(kAnnounceTime), true;
  bool answered = false;
  for (size_t at = 0; (at = message.find("--set=", at)) != message.npos;) {
    at += std::string_view("--set=").size();
    const std::string given = message.substr(at, message.find_first_of(" \n'", at) - at);
    const std::string key = given.substr(0, given.rfind('=') + 1);
    const std::string tag = key.substr(0, key.find('.'));
    const bool of_field = given == key + "VALUE" && key.find('.') != key.npos;
    if (of_field || key.ends_with(".strategy=")) {
      // The registry may have lost the deletion, and only servers remember the tag.
      const auto& known = known_->tags.contains(tag) ? known_->tags : known_->deleted;
      if (!known.contains(tag)) return false;
      const auto defines = [begin = AnswerOf(tag, "strategy", "")](const auto& one) {
        return one.starts_with(begin);
      };
      const std::string clash =
          Cat("an answer has tag '", tag, "' in another form than the registry");
      if (std::ranges::none_of(answers, defines)) {
        Define(known.at(tag), answers);
        defined_.insert(tag);
        answered = true;
      } else if (message.find(clash) != message.npos) {
        answered |= AnswerAsTheRegistry(tag, answers);
      }
      continue;
    }
    if (given != key + "NUMBER") continue;
    std::erase_if(answers, [&key](const auto& one) { return one.starts_with(key); });
    answered = true;
    if (key == "lease_share=") answers.push_back(Cat(key, ClusterMeta::kLeaseShare));
    if (key.ends_with(".high=")) answers.push_back(Cat(key, HighestOf(tag, message)));
    if (!key.ends_with(".start=")) continue;
    const size_t question = message.find(Cat("where tag '", tag, "' would continue"));
    const auto above = NumberAfter("issue, above ", message, std::min(question, message.size()));
    if (above) answers.push_back(Cat(key, std::max(*above, shared_.oracle.Highest(tag)) + 1));
  }
  return answered;
}

// Returns the highest number of a tag that its users have, or that the question shows.
int64_t SegmentRestorer::HighestOf(const std::string& tag, const std::string& question) const {
  const int64_t users = std::max<int64_t>(1, shared_.oracle.Highest(tag));
  const std::string reason = ParseMeta(shared_.tree.Peek(kMetaPath)->data)->reason;
  if (TagWhoseLedgerWentBack(reason) != tag) return users;
  return std::max(users, NumberAfter("have, at least ", question, 0).value_or(1));
}

// Publishes the reports of the running servers, or none.
void SegmentRestorer::Show(bool reports) {
  shown_ = reports;
  PublishReports(shared_.tree, shared_.clock,
                 reports ? shared_.reports() : std::map<std::string, ProviderReport>());
}

}  // namespace firn
