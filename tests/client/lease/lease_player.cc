#include "tests/client/lease/lease_player.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

#include "common/base/cat.h"

namespace firn {
namespace {

using Kind = LeaseRequest::Kind;
using Got = LeaseOutcome::Kind;

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::string WordOf(Kind kind) {
  return kind == Kind::kGrant ? "grant" : kind == Kind::kRenew ? "renewal" : "release";
}

std::map<std::string, std::string> KeysOf(const std::string& text) {
  std::map<std::string, std::string> keys;
  for (const std::string& pair : Split(text, ',')) {
    const size_t at = pair.find('=');
    keys[pair.substr(0, at)] = pair.substr(at + 1);
  }
  return keys;
}

int64_t Number(const std::map<std::string, std::string>& keys, const std::string& key,
               int64_t otherwise) {
  const auto found = keys.find(key);
  return found == keys.end() ? otherwise : std::stoll(found->second);
}

// Returns whether the request contains the parts of the pattern.
bool Matches(const std::string& request, const std::string& pattern) {
  const std::vector<std::string> parts = Split(request, ':'), expected = Split(pattern, ':');
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] != "_" && (i >= parts.size() || parts[i] != expected[i])) return false;
  }
  return true;
}

std::string AddressOf(const std::string& server) {
  return Cat("10.0.0.", server.substr(1), ":7609");
}

// The text that the failure of next() contains, by the table's word.
const std::map<std::string, std::string> kReasons = {
    {"none", "no server has granted a lease yet"},
    {"ended", " ended at "},
    {"revoked", " was lost at "},
    {"closed", "the generator is stopped"},
    {"nothing", ""},
    {"jumped", " s, and no server has confirmed it"}};

}  // namespace

void LeasePlayer::Transport::Send(uint64_t number, const LeaseRequest& ask,
                                  std::shared_ptr<LeaseOutcomes>) {
  EXPECT_EQ(ask.clock, clock_.Wall());
  for (const auto& one : asks_) {
    if (one.first == number) return;
  }
  asks_.emplace_back(number, ask);
}

LeasePlayer::LeasePlayer(size_t servers, Milliseconds ahead)
    : servers_(servers),
      ahead_(ahead),
      lessee_(Options(ahead), ids_, entropy_, transport_, /*replies=*/nullptr) {}

LeaseOptions LeasePlayer::Options(Milliseconds ahead) {
  // Every hook throws: no case may depend on how a hook ends.
  return {.name = "shop-1",
          .ahead = ahead,
          .on_lost =
              [this](const LeaseLoss& loss) {
                losses_.emplace_back(loss.kind == LeaseLoss::Kind::kGone ? "revoked" : "expired");
                throw std::runtime_error("thrown by a hook");
              },
          .on_failure =
              [this](const Status& why) {
                failures_.push_back(why);
                throw std::runtime_error("thrown by a hook");
              }};
}

void LeasePlayer::Play(const std::string& step) {
  Words words = Split(step, ' ');
  const std::string verb = words.front();
  words.erase(words.begin());
  if (verb == "lease") {
    Turn();
    Answer(words.empty() ? "terms" : Cat("terms:", words[0]));
    seen_.clear();
  } else if (verb == "pass") {
    Pass(Milliseconds(std::stoll(words.at(0))));
  } else if (verb == "work") {
    Work(Milliseconds(std::stoll(words.at(0))));
  } else if (verb == "sleep") {
    clock_.Advance(Milliseconds(std::stoll(words.at(0))));
  } else if (verb == "step") {
    clock_.StepWall(Milliseconds(std::stoll(words.at(0))));
    clock_.Advance(kMs);
  } else if (verb == "next") {
    Next(words);
  } else if (verb == "look") {
    EXPECT_TRUE(ids_.interval());
  } else if (verb == "sent" || verb == "saw") {
    ExpectSent(words, verb == "sent");
  } else if (verb == "answer") {
    Answer(words.at(0));
  } else if (verb == "reply") {
    replies_[words.at(0)] = words.at(1);
    Reveal();
  } else if (verb == "waits") {
    ExpectWaits(words.at(0), std::stoll(words.at(1)), std::stoll(words.at(2)));
  } else if (verb == "loss") {
    EXPECT_EQ(std::exchange(losses_, {}), words);
  } else if (verb == "stop") {
    lessee_.Stop(clock_.Read());
    Turn();
  } else if (verb == "stopped") {
    EXPECT_EQ(lessee_.stopped(), words.at(0) == "yes");
  } else {
    ADD_FAILURE() << "unknown step";
  }
}

void LeasePlayer::Turn() {
  lessee_.Tick(clock_.Read());
  Reveal();
}

void LeasePlayer::Reveal() {
  while (!transport_->empty()) {
    const LeaseRequest& ask = transport_->first().second;
    if (!std::exchange(revealed_, true)) seen_.push_back({Describe(ask), clock_.Boot()});
    const auto reply = replies_.find(WordOf(ask.kind));
    if (reply == replies_.end()) return;
    ASSERT_LT(seen_.size(), 100'000u) << "requests without end";
    Reply(reply->second);
  }
}

void LeasePlayer::Reply(const std::string& word) {
  const auto [number, ask] = transport_->first();
  transport_->Drop();
  revealed_ = false;
  lessee_.OnReply(number, Outcome(word, ask), clock_.Read());
  lessee_.Tick(clock_.Read());
}

void LeasePlayer::Answer(const std::string& word) {
  ASSERT_FALSE(transport_->empty()) << "no request has no outcome";
  Reply(word);
  Reveal();
}

void LeasePlayer::Pass(Milliseconds time) {
  Turn();
  for (const BootMs until = clock_.Boot() + time; clock_.Boot() < until; Turn()) {
    const Milliseconds due = lessee_.next_tick() - clock_.Boot();
    clock_.Advance(std::clamp(due, kMs, until - clock_.Boot()));
  }
}

void LeasePlayer::Work(Milliseconds time) {
  for (constexpr Milliseconds kStep{50}; time > Milliseconds(0); time -= kStep) {
    Pass(kStep);
    const Result<int64_t> id = TryNext();
    ASSERT_EQ(id.status(), Status());
    CheckId(*id, "", "");
  }
}

Result<int64_t> LeasePlayer::TryNext() {
  std::chrono::microseconds wait{0};
  return ids_.TryNext(&wait);
}

void LeasePlayer::Next(const Words& words) {
  const Result<int64_t> id = TryNext();
  const auto reason = kReasons.find(words.at(0));
  if (reason != kReasons.end()) {
    ASSERT_FALSE(id.ok());
    EXPECT_NE(id.status().message().find(reason->second), std::string::npos) << id.status();
    if (words.size() > 1) {
      EXPECT_EQ(woken_, words[1] == "woken");
    }
  } else {
    ASSERT_EQ(id.status(), Status());
    const bool same_time = words[0] == "id";
    CheckId(*id, same_time ? "" : words[0], same_time ? "+0" : words.size() > 1 ? words[1] : "");
  }
  if (std::exchange(woken_, false)) Turn();
}

void LeasePlayer::CheckId(int64_t id, const std::string& machine, const std::string& after_wall) {
  const IdFields fields = layout_.Unpack(id).value();
  EXPECT_EQ(fields.machine, held_.machine);
  EXPECT_GE(fields.tick, held_.from);
  EXPECT_LT(fields.tick, leases_[held_.lease].until);
  const uint64_t fixed = layout_.machine().mask();
  const auto position = static_cast<int64_t>(static_cast<uint64_t>(id) & ~fixed);
  EXPECT_GT(position, std::exchange(last_id_, position)) << "ids do not rise";
  used_[held_.lease] = fields.tick;
  if (!machine.empty()) {
    EXPECT_EQ(Cat(fields.machine.value()), machine);
  }
  if (after_wall.empty()) return;
  const int64_t expected = std::stoll(after_wall.substr(1));
  const int64_t after = fields.tick - layout_.TickAt(clock_.Wall());
  // The time is not exact, because the clock runs at nine tenths of the rate.
  EXPECT_LE(std::abs(after - expected), expected >= 1'000 ? 60 : 0) << after << " ms";
}

std::vector<std::string> LeasePlayer::TakeSent() {
  std::vector<std::string> sent;
  for (const Seen& one : std::exchange(seen_, {})) sent.push_back(one.text);
  return sent;
}

void LeasePlayer::ExpectSent(const Words& expected, bool in_order) {
  const std::vector<std::string> sent = TakeSent();
  bool matches = !in_order || sent.size() == expected.size();
  for (size_t i = 0; matches && i < sent.size(); ++i) {
    matches = in_order ? Matches(sent[i], expected[i])
                       : std::ranges::any_of(expected, [&](const std::string& one) {
                           return Matches(sent[i], one.starts_with('?') ? one.substr(1) : one);
                         });
  }
  for (const std::string& one : expected) {
    if (one.starts_with('?')) continue;
    matches =
        matches && std::ranges::any_of(sent, [&](const auto& each) { return Matches(each, one); });
  }
  EXPECT_TRUE(matches) << "sent" << testing::PrintToString(sent);
}

void LeasePlayer::ExpectWaits(const std::string& kind, int64_t least, int64_t most) {
  std::optional<BootMs> last;
  int64_t longest = 0;
  for (const Seen& one : std::exchange(seen_, {})) {
    if (!Matches(one.text, kind)) continue;
    if (last) longest = std::max(longest, (one.at - *last).count());
    last = one.at;
  }
  EXPECT_GE(longest, least);
  EXPECT_LE(longest, most + 1);
}

std::string LeasePlayer::NameOf(std::map<std::string, std::string>& names, char kind,
                                const std::string& drawn) const {
  if (drawn.empty()) return "-";
  EXPECT_EQ(drawn.size(), 32u);
  return names.emplace(drawn, Cat(kind, names.size() + 1)).first->second;
}

std::string LeasePlayer::Describe(const LeaseRequest& ask) {
  const std::string server = Cat("s", Split(ServerOf(ask), '.')[3].substr(0, 1));
  switch (ask.kind) {
    case Kind::kGrant:
      EXPECT_EQ(ask.ahead, ahead_);
      EXPECT_EQ(ask.name, "shop-1");
      EXPECT_FALSE(ask.rack);
      return Cat("grant:", NameOf(tokens_, 't', ask.token), ":", server);
    case Kind::kRenew:
      EXPECT_EQ(ask.ahead, ahead_);
      EXPECT_EQ(ask.lease, held_.lease);
      EXPECT_EQ(ask.until, leases_[ask.lease].until);
      return Cat("renewal:", NameOf(turns_, 'r', ask.turn), ":",
                 NameOf(turns_, 'r', ask.acknowledged), ":", server);
    case Kind::kRelease:
      CheckUsed(ask);
      return Cat("release:", leases_[ask.lease].machine.value(), ":", NameOf(turns_, 'r', ask.turn),
                 ":", server);
  }
  return "";
}

// Checks the last used tick in a release. Of an unused lease, it is the tick before the first, by
// the terms or after earlier leases.
void LeasePlayer::CheckUsed(const LeaseRequest& ask) const {
  const auto used = used_.find(ask.lease);
  if (used != used_.end()) {
    EXPECT_EQ(ask.used, used->second);
    return;
  }
  const Tick first = std::max(leases_.at(ask.lease).from, Tick(0)) - 1;
  Tick most = first;
  for (const auto& one : used_) most = std::max(most, one.second);
  EXPECT_GE(ask.used, first);
  EXPECT_LE(ask.used, most);
}

// Returns the server that gets the request. A grant request goes to the first server that is not in
// `avoid`.
std::string LeasePlayer::ServerOf(const LeaseRequest& ask) const {
  if (ask.kind != Kind::kGrant) return ask.server;
  for (size_t i = 1; i <= servers_; ++i) {
    const std::string address = AddressOf(Cat("s", i));
    if (address != ask.avoid) return address;
  }
  return AddressOf("s1");
}

LeaseOutcome LeasePlayer::Outcome(const std::string& text, const LeaseRequest& ask) {
  const std::string word = text.substr(0, text.find(':'));
  const std::string more = text.size() == word.size() ? "" : text.substr(word.size() + 1);
  const Status why = Unavailable(word);
  const bool renewal = ask.kind == Kind::kRenew;
  if (word == "terms") {
    const Keys keys = KeysOf(more);
    return {.kind = Got::kTerms, .terms = renewal ? Renewed(keys) : Granted(keys, ask)};
  }
  if (word == "released") return {.kind = Got::kReleased};
  if (word == "unknown") return {.kind = Got::kUnknown, .status = why};
  if (word == "outdated") return {.kind = Got::kOutdated, .status = why};
  if (word == "revoked") return {.kind = Got::kGone, .status = why};
  if (word == "lost" || word == "unreachable") return {.kind = Got::kNoAnswer, .status = why};
  if (word == "none" || word == "other" || word == "old") {
    return {.kind = ask.kind == Kind::kGrant ? Got::kRefused : Got::kNotExtended, .status = why};
  }
  if (word == "refused") {
    return {.kind = Got::kRefused, .status = why, .for_good = ask.kind == Kind::kRelease};
  }
  EXPECT_TRUE(word == "notready" || word == "claiming") << word;
  LeaseOutcome refused{.kind = Got::kRefused, .status = why};
  if (!more.empty()) refused.retry_in = Milliseconds(std::stoll(more));
  return refused;
}

LeaseGrant LeasePlayer::Granted(const Keys& keys, const LeaseRequest& ask) {
  const std::string spoilt = keys.contains("spoilt") ? keys.at("spoilt") : "";
  const WallMs now = clock_.Wall();
  const int64_t bound = Number(keys, "bound", 0);
  LeaseGrant terms;
  terms.layout = spoilt == "layout" ? Layout::Twitter() : layout_;
  terms.machine = MachineId(++machine_);
  terms.lease = spoilt == "name" ? "" : Cat("lease-", machine_);
  terms.server = keys.contains("server") ? AddressOf(keys.at("server")) : ServerOf(ask);
  terms.base_bits = terms.layout.BaseBits(terms.machine, 0) | (spoilt == "overlap" ? 1 : 0);
  terms.sequence_count = terms.layout.ids_per_tick();
  terms.from = terms.layout.TickAt(now + Milliseconds(Number(keys, "from", -3'600'000)));
  terms.until = terms.layout.TickAt(now + Milliseconds(Number(keys, "for", 60'000)));
  terms.renew_in = Milliseconds(Number(keys, "renew", 20'000));
  terms.ending = bound > 0;
  if (spoilt == "begin") terms.from = Tick(-5);
  if (spoilt == "empty") terms.until = terms.from;
  if (keys.contains("again")) {
    const std::string lease = terms.lease;
    terms = held_;
    if (keys.at("again") == "interval") terms.lease = lease;
  }
  leases_[terms.lease] = terms;
  const bool usable = spoilt.empty() && now < terms.layout.StartOf(terms.until);
  if (usable) held_ = terms;
  return terms;
}

LeaseGrant LeasePlayer::Renewed(const Keys& keys) {
  const std::string spoilt = keys.contains("spoilt") ? keys.at("spoilt") : "";
  LeaseGrant terms = leases_[held_.lease];
  const int64_t bound = Number(keys, "bound", 0);
  const WallMs end = clock_.Wall() + Milliseconds(Number(keys, "for", 60'000));
  terms.until = layout_.TickAt(bound > 0 ? std::min(end, begin_ + Milliseconds(bound)) : end);
  terms.renew_in = Milliseconds(Number(keys, "renew", 20'000));
  terms.ending = bound > 0;
  if (spoilt == "lease") terms.lease = "another";
  if (spoilt == "machine") {
    terms.machine = MachineId(99);
    terms.base_bits = layout_.BaseBits(terms.machine, 0);
  }
  if (spoilt == "layout") terms.layout = Layout::Twitter();
  if (spoilt == "less") terms.until = leases_[held_.lease].until - 1;
  if (spoilt.empty()) leases_[held_.lease] = terms;
  return terms;
}

}  // namespace firn
