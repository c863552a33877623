#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_store.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/state/posix_state_folder.h"
#include "server/issue/patient_caller.h"
#include "server/node/issuing_node.h"
#include "tests/support/process.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/temp_dir.h"

namespace firn {

inline constexpr Milliseconds kTagPatience{30'000};

// Nodes of one cluster with a registry in memory and the machine's own clocks, and its operator.
class SegmentTagsRig : public testing::Test {
 protected:
  SegmentTagsRig() {
    EXPECT_TRUE(operator_.Connect(kTagPatience).ok());
    EXPECT_TRUE(MakeCluster(operator_, {}, entropy_).ok());
  }

  std::unique_ptr<IssuingNode> Make(int port = 7609, std::optional<uint32_t> worker = {}) {
    const std::string name = "test:" + std::to_string(port) + ":2130706433";
    IssuingNodeOptions options;
    options.claim.worker = worker;
    options.claim.identity = {.owner = "test." + std::to_string(port) + ".2130706433",
                              .endpoint = "127.0.0.1:" + std::to_string(port),
                              .host = "localhost",
                              .pid = 1,
                              .build = "test"};
    auto folder =
        PosixStateFolder::Open({.folder = folder_.path(), .stem = name, .grant_dir = ram_.path()});
    EXPECT_TRUE(folder.ok()) << folder.status();
    return std::make_unique<IssuingNode>(
        options,
        IssuingNodeParts{.coordinator = std::make_unique<MemoryCoordinator>(tree_),
                         .folder = *std::move(folder)},
        SystemClock(), SystemEntropy());
  }
  std::unique_ptr<IssuingNode> Start(int port = 7609) {
    auto node = Make(port);
    EXPECT_TRUE(node->Start().ok());
    EXPECT_TRUE(node->WaitUntilServing(kTagPatience).ok());
    return node;
  }

  void Create(TagDefinition tag) {
    tag.strategy = "segment";
    const Status made = store_.Create(tag);
    EXPECT_TRUE(made.ok()) << made;
  }
  void Edit(const std::string& name, const std::function<void(TagDefinition&)>& edit) {
    Status done = Conflict("not tried");
    while (done.code() == Code::kConflict) {
      const StoredTag read = *store_.Read(name);
      TagDefinition after = read.tag();
      edit(after);
      done = store_.Replace(read, after);
    }
    EXPECT_TRUE(done.ok()) << done;
  }
  // The last step of `firn restore`.
  void Thaw() {
    MetaAsRead stored = *ReadMeta(operator_);
    stored.meta.frozen = false;
    const WriteOutcome thawed =
        operator_.Multi({Write::Set(kMetaPath, FormatMeta(stored.meta), stored.version)});
    EXPECT_TRUE(thawed.status.ok()) << thawed.status;
  }
  int64_t High(const std::string& name) { return store_.Read(name)->tag().high; }

  // Takes the next number of a tag that may not be known yet; -1 on failure, with `refused_`.
  static int64_t Take(IssuingNode& node, const std::string& name = "order",
                      Milliseconds patience = kTagPatience) {
    PatientCaller caller(node.issuer(), SystemClock(), patience);
    const Tag* tag = nullptr;
    const auto known = [&] {
      tag = node.issuer().Resolve(name);
      return tag != nullptr && tag->name() == name;  // otherwise nothing has been read yet
    };
    if (!Eventually(kTagPatience, known)) {
      ADD_FAILURE() << "tag " << name << " did not appear";
      return -1;
    }
    IssueCall call;
    int64_t id = -1;
    if (!caller.IssueOne(call, *tag, {.tag = name}, &id)) refused_ = call.refusal();
    return id;
  }
  static bool Refuses(IssuingNode& node, Reason reason, const std::string& name = "order") {
    return Eventually(kTagPatience, [&] {
      const Tag* tag = node.issuer().Resolve(name);
      if (tag == nullptr) return false;
      IssueCall call(*tag, {.tag = name});
      if (node.issuer().Issue(call) != Verdict::kRefused) return false;
      refused_ = call.refusal();
      return refused_.reason == reason;
    });
  }

  static inline Refusal refused_;
  SeededEntropy entropy_{3};
  TempDir folder_;
  TempDir ram_{kMemoryDir};
  MemoryTree tree_{SystemClock()};
  MemoryCoordinator memory_{tree_};
  BlockingCoordinator operator_{memory_, SystemClock()};
  TagStore store_{operator_};
};

}  // namespace firn
