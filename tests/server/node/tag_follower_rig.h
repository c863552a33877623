#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_store.h"
#include "registry/seam/absent_coordinator.h"
#include "registry/seam/blocking_coordinator.h"
#include "server/node/tag_follower.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// A strategy that issues 1, 2, 3, ... `why_not` is its refusal.
class Counting final : public Strategy {
 public:
  explicit Counting(const std::optional<Refusal>& why_not) : why_not_(why_not) {}

  std::string_view name() const override { return "counting"; }
  Status Start() override { return {}; }
  bool TryOne(Method, int64_t* id) override { return *id = ++last_, true; }
  Verdict Issue(IssueCall& call) override {
    call.Add({std::exchange(last_, last_ + call.missing()) + 1, call.missing(), 1});
    return Verdict::kIssued;
  }
  std::optional<Refusal> WhyNot() const override { return why_not_; }
  int64_t count_max() const override { return 1000; }
  void Close() override {}
  void Stop() override {}

 private:
  const std::optional<Refusal>& why_not_;
  int64_t last_ = 0;
};

class Deaf final : public RejectionHandler {
  void OnRefusal(const Request&, const Refusal&) override {}
};

// A disk with one thread, which a test can break or stall.
class Disk final : public TagMemory {
 public:
  void Read(const std::string& uuid, Loaded done) override {
    todo_.push_back([this, uuid, done] {
      const auto text = files.find(uuid);
      done(text == files.end() ? NotFound("nothing kept") : ParseKnownTags(uuid, text->second));
    });
  }
  void Keep(const std::string& uuid, const KnownTags& tags, Kept done) override {
    todo_.push_back([this, uuid, text = FormatKnownTags(uuid, tags), done] {
      broken ? static_cast<void>(files.erase(uuid)) : static_cast<void>(files[uuid] = text);
      done(broken ? Unavailable("the disk is broken") : Status());
    });
  }
  void Work() {
    if (stalls) return;
    for (const auto& task : std::exchange(todo_, {})) task();
  }

  std::map<std::string, std::string> files;
  bool broken = false;
  bool stalls = false;

 private:
  std::vector<std::function<void()>> todo_;
};

// An operator who edits tags, and a server that follows the edits.
class TagFollowerRig : public testing::Test {
 protected:
  TagFollowerRig() {
    EXPECT_TRUE(operator_.Connect(Milliseconds(1000)).ok());
    EXPECT_TRUE(MakeCluster(operator_, {}, entropy_).ok());
    const auto make = [this](const TagDefinition& tag) -> Result<std::shared_ptr<Strategy>> {
      if (unservable_ && unservable_(tag)) return Status(why_unservable_);
      ++made_;
      return std::shared_ptr<Strategy>(std::make_shared<Counting>(why_not_));
    };
    EXPECT_TRUE(catalogue_.AddStrategy("snowflake", make).ok());
    EXPECT_TRUE(catalogue_.AddStrategy("segment", make).ok());
    EXPECT_TRUE(catalogue_.AddStrategy("dated", make).ok());
    server_.OnSession([](SessionEvent) {});
    Start();
  }

  // Starts a process; `away`: its registry does not respond.
  void Start(bool away = false) {
    follower_.reset();
    issuer_ = std::make_unique<Issuer>(deaf_);
    Coordinator& registry = away ? static_cast<Coordinator&>(away_) : server_;
    follower_ =
        std::make_unique<TagFollower>(registry, entropy_, catalogue_, *issuer_, UuidOf(), &memory_);
    issuer_->SetSeeker(follower_->seeker());
  }
  void SetLedger(const std::string& tag, int64_t high, int64_t returned) {
    StoredTag stored = *store_.Read(tag);
    stored.node.tag.high = high;
    stored.node.returned = returned;
    const std::string data = *WriteTagNode(stored.node);
    const Write write = Write::Set(TagPath(tag), data, stored.stat.version);
    ASSERT_TRUE(operator_.Multi({write}).status.ok());
  }
  // The state of a refused tag; empty: it is served.
  std::string FaultOf(const std::string& tag) {
    const auto refused = follower_->refused();
    const auto found = refused->find(tag);
    return found == refused->end() ? "" : std::string(TagStateName(found->second.state));
  }
  std::string UuidOf() { return ReadMeta(operator_)->meta.uuid; }

  void Pass(Milliseconds d) {
    for (Milliseconds passed{0}; passed <= d; passed += Milliseconds(50)) {
      clock_.Advance(Milliseconds(50));
      while (server_.Dispatch(Milliseconds(0)) > 0) {
      }
      follower_->Tick(clock_.Boot());
      memory_.Work();
      while (server_.Dispatch(Milliseconds(0)) > 0) {
      }
    }
  }

  static TagDefinition Tag(const std::string& name, const std::string& strategy) {
    TagDefinition tag;
    tag.name = name;
    tag.strategy = strategy;
    return tag;
  }

  void Edit(const std::string& name, const std::function<void(TagDefinition&)>& edit) {
    const StoredTag stored = *store_.Read(name);
    TagDefinition after = stored.tag();
    edit(after);
    EXPECT_TRUE(store_.Replace(stored, after).ok());
  }

  void Begin(IssueCall& call, std::string_view name) {
    const firn::Tag* tag = issuer_->Resolve(name);
    tag != nullptr ? call.Begin(*tag, {.tag = name}) : call.Begin({.tag = name});
  }
  // Returns "issued", "waits", "unknown", or the refusal's sentence.
  std::string Go(IssueCall& call) {
    switch (issuer_->Issue(call)) {
      case Verdict::kIssued:
        return "issued";
      case Verdict::kWait:
        return "waits";
      case Verdict::kRefused:
        break;
    }
    const Refusal& why = call.refusal();
    another_may_help_ = why.another_server_may_help;
    EXPECT_TRUE(!another_may_help_ || why.reason == Reason::kNotReady ||
                why.reason == Reason::kStoreDown || why.reason == Reason::kOverloaded);
    return why.reason == Reason::kUnknownTag ? "unknown" : why.message;
  }
  std::string Ask(const std::string& name) {
    IssueCall call;
    Begin(call, name);
    std::string answer = Go(call);
    for (int i = 0; i < 4 && answer == "waits"; ++i) {
      Pass(Milliseconds(0));
      answer = Go(call);
    }
    return answer;
  }
  void EraseNode(const std::string& name) {
    ASSERT_TRUE(operator_.Multi({Write::Erase(TagPath(name), Write::kAnyVersion)}).status.ok());
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  SeededEntropy entropy_{5};
  MemoryTree tree_{clock_};
  MemoryCoordinator operators_{tree_};
  MemoryCoordinator server_{tree_};
  AbsentCoordinator away_;
  Disk memory_;
  BlockingCoordinator operator_{operators_, clock_};
  TagStore store_{operator_};
  Deaf deaf_;
  std::unique_ptr<Issuer> issuer_;
  Catalogue catalogue_;
  int made_ = 0;
  std::optional<Refusal> why_not_{};  // of all tags
  std::function<bool(const TagDefinition&)> unservable_{};
  Status why_unservable_ = Invalid("store 'main' does not permit it");
  bool another_may_help_ = false;  // according to the last refusal
  std::unique_ptr<TagFollower> follower_;
};

}  // namespace firn
