#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "registry/cluster/slot.h"
#include "server/issue/segment/ordered.h"
#include "server/node/segment_tags.h"
#include "server/node/tag_owners.h"
#include "tests/server/issue/segment/segment_rig.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

inline TagDefinition OrderDefinition() {
  TagDefinition tag{.name = "order", .strategy = "segment"};
  tag.store = "main";
  tag.buffer = TagBuffer::kOwner;
  return tag;
}

// Two servers of a cluster, in virtual time, which ask each other without a network.
class TagOwnersTest : public testing::Test {
 protected:
  struct Server {
    Server(TagOwnersTest& test, std::string name, uint64_t seed)
        : address(std::move(name)),
          link(test.tree_),
          entropy(seed),
          owners(
              link, entropy, test.clock_,
              {.address = address,
               .ask =
                   [&test, this](const std::string& at, PeerTake take,
                                 const OwnerLink::Count& count, const RangeSource::TakeDone& done) {
                     take.count = count();
                     (take.tag.empty() ? test.probe_ : test.last_take_) = take;
                     const auto asked = test.servers_.find(at);
                     const bool reaches =
                         asked != test.servers_.end() && !Lists(test.unreachable_[address], at);
                     if (reaches && take.tag.empty() && test.confirmation_) {
                       return done(*test.confirmation_);
                     }
                     done(reaches ? asked->second->owners.TakeFor(take) : Range{});
                   },
               .unreachable = [&test, this] { return test.unreachable_[address]; }}),
          tags(
              link, [](const std::function<void()>& task) { task(); }, test.clock_, entropy) {
      link.OnSession([](SessionEvent) {});
      tags.SetOwners(owners);
      EXPECT_TRUE(tags.AddSource("main", std::make_unique<PromptSource>(test.ledger_)).ok());
      tag = std::dynamic_pointer_cast<Ordered>(*tags.Make(OrderDefinition()));
    }

    const std::string address;
    MemoryCoordinator link;
    SeededEntropy entropy;
    TagOwners owners;
    SegmentTags tags;
    std::shared_ptr<Ordered> tag;
  };

  TagOwnersTest() {
    ledger_.permits = false;
    operator_.OnSession([](SessionEvent) {});
    operator_.Dispatch(Milliseconds(0));
    const ClusterMeta meta{.uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab",
                           .era = Nonce(3, 4),
                           .layout = "firn",
                           .floor = {},
                           .reason = {}};
    operator_.Multi({Write::Create("/", FormatMeta(meta), Lifetime::kPersistent),
                     Write::Create(EraPath(meta.era), "", Lifetime::kPersistent)},
                    [](const WriteOutcome& done) { EXPECT_TRUE(done.status.ok()) << done.status; });
    operator_.Dispatch(Milliseconds(0));
    uint64_t seed = 0;
    for (const char* address : {"10.0.0.1:7609", "10.0.0.2:7609"}) {
      Start(address, ++seed);
    }
  }

  Server& Start(const std::string& address, uint64_t seed) {
    return *(servers_[address] = std::make_unique<Server>(*this, address, seed));
  }

  void Pass(Milliseconds time) {
    for (const BootMs until = clock_.Boot() + time; clock_.Boot() < until;) {
      clock_.Advance(Milliseconds(10));
      for (const auto& [address, server] : servers_) {
        const bool reads = !cut_off_.contains(address);
        while (reads && server->link.Dispatch(Milliseconds(0)) > 0)
          server->owners.Tick(clock_.Boot());
        server->owners.Tick(clock_.Boot());
        server->tags.Tick(clock_.Boot());
      }
      while (!ledger_.questions.empty()) ledger_.Answer();
    }
  }
  // The server that owns the tag, and the other one.
  std::pair<Server*, Server*> Roles() {
    Server *owner = nullptr, *other = nullptr;
    for (const auto& [address, server] : servers_) {
      (server->tag->own()->owns() ? owner : other) = server.get();
    }
    return {owner, other};
  }
  // Returns the secret of the server's tenure.
  std::string Secret(const Server& server) {
    std::string secret;
    operator_.List(kBeatsPath, [&](const Result<std::vector<std::string>>& names) {
      for (const std::string& name : names.value()) {
        const Beat beat = *ParseBeat(tree_.Peek(BeatPath(*Nonce::Parse(name)))->data);
        if (beat.address == server.address) secret = beat.secret.text();
      }
    });
    operator_.Dispatch(Milliseconds(0));
    return secret;
  }
  int64_t One(Server& server) {
    IssueCall call;
    call.Begin({.count = 1});
    for (int tries = 0; tries < 200 && server.tag->Issue(call) != Verdict::kIssued; ++tries) {
      Pass(Milliseconds(10));
    }
    EXPECT_EQ(call.missing(), 0) << call.refusal();
    return call.missing() == 0 ? call.runs()[0].first : -1;
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  MemoryTree tree_{clock_};
  MemoryCoordinator operator_{tree_};
  ScriptedSource ledger_;
  PeerTake last_take_, probe_;
  std::optional<Range> confirmation_;               // the answer to all probes
  std::map<std::string, std::string> unreachable_;  // by server
  std::set<std::string> cut_off_;                   // from the registry
  std::map<std::string, std::unique_ptr<Server>> servers_;
};

}  // namespace firn
