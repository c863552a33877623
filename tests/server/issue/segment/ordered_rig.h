#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <utility>

#include <gtest/gtest.h>

#include "common/sequence/owned_term.h"
#include "server/issue/segment/ordered.h"
#include "server/issue/tag_table.h"
#include "tests/server/issue/segment/segment_rig.h"

namespace firn {

inline constexpr Milliseconds kWindow{3'000};

// Asks the present owner, once the test says so.
class ScriptedLink final : public OwnerLink {
 public:
  struct Request {
    Count count;
    RangeSource::TakeDone done;
    int64_t sent = 0;  // numbers; 0: it has not been sent
  };

  void Take(const TagDefinition&, Count count, RangeSource::TakeDone done) override {
    if (out_of_memory) throw std::bad_alloc();
    takes.push_back({std::move(count), std::move(done)});
    if (sends) Send();
    if (prompt) Answer();
  }
  int64_t ChangeOf(const std::string&) const override { return change; }
  bool Starts() const override { return starts; }
  bool Knows(const std::string&) const override { return owner != nullptr && confirms; }
  std::string Trouble(const std::string&) const override { return trouble; }
  void Send() { takes.front().sent = takes.front().count(); }
  void Answer() {
    if (takes.front().sent == 0) Send();
    ++answers;
    const Request take = std::move(takes.front());
    takes.pop_front();
    if (!refusal.empty()) return take.done(NotFound(refusal));
    take.done(owner == nullptr ? Result<Range>(Range{}) : owner->Take(take.sent));
  }

  OwnedNumbers* owner = nullptr;  // named by the registry, even if its window is over
  bool confirms = true;           // it has confirmed its tenure lately, so it is known
  int64_t change = 0;
  bool starts = false;
  bool sends = true, prompt = true;  // at once
  bool out_of_memory = false;
  std::string trouble;
  std::string refusal{};  // of a server that does not serve the tag; empty: it does
  int answers = 0;
  std::deque<Request> takes;  // more than one only if the first is late
};

// Servers that share a ledger, and who owns the tag.
class OrderedServers {
 protected:
  struct Server {
    OwnedTerm term;
    ScriptedLink link;
    std::shared_ptr<Ordered> tag;
  };

  OrderedServers() {
    definition_.name = "order";
    definition_.strategy = "segment";
    definition_.buffer = TagBuffer::kOwner;
    definition_.step = 10;
    definition_.step_max = 10;
    for (Server& server : servers_) {
      server.tag =
          *Ordered::Make(definition_, {ledger_, clock_, entropy_, {}}, server.term, server.link);
    }
  }

  void Own(Server& server) {
    server.term.Begin(++terms_, clock_.Boot() + kWindow);
    for (Server& each : servers_) each.link.owner = server.tag->own().get();
  }
  static void Leave(Server& server) {
    server.term.End();
    server.tag->own()->HandOver();
  }
  void Pass(Milliseconds time) {
    clock_.Advance(time);
    for (Server& server : servers_) server.tag->Tick(clock_.Boot());
  }
  void PassSlowly(Milliseconds time) {
    for (const BootMs until = clock_.Boot() + time; clock_.Boot() < until;) Pass(Milliseconds(10));
  }
  void AnswerAll() {
    while (!ledger_.questions.empty()) ledger_.Answer();
  }
  // The number of one call, which may wait for the ledger.
  int64_t One(Server& server) {
    int64_t id = 0;
    if (server.tag->TryOne(Method::kEmbedded, &id)) return id;
    IssueCall call;
    call.Begin({.count = 1});
    for (int tries = 0; tries < 5; ++tries) {
      if (server.tag->Issue(call) == Verdict::kIssued) return call.runs()[0].first;
      AnswerAll();
      Pass(Milliseconds(10));
    }
    ADD_FAILURE() << call.refusal();
    return -1;
  }
  Verdict Ask(Server& server, Request request = {.count = 1}) {
    call_.Begin(name_, request);
    return server.tag->Issue(call_);
  }

  const Tag name_{"order"};
  VirtualClock clock_{WallMs(1'700'000'000'000)};
  SeededEntropy entropy_{1};
  ScriptedSource ledger_;
  TagDefinition definition_;
  uint64_t terms_ = 0;
  std::array<Server, 3> servers_;
  Server &first_ = servers_[0], &second_ = servers_[1], &third_ = servers_[2];
  IssueCall call_;
};

}  // namespace firn
