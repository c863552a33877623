#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "registry/cluster/slot.h"
#include "registry/owners/owners.h"
#include "registry/seam/node_version.h"

namespace firn {

// --- the root node -------------------------------------------------------------------------------

// Reads the root node. Returns false if it is unreadable or frozen, or ends this tenure.
Task<bool> Owners::ReadRoot() {
  const std::vector<std::string> paths{kMetaPath};
  Result<Nodes> nodes = co_await registry_.ReadSynced(paths);
  if (!nodes.ok()) {
    if (!tenure_) trouble_ = nodes.status().ToString();
    co_return false;
  }
  const std::optional<Node>& node = nodes->front();
  Result<ClusterMeta> meta = NotFound("there is no root node");
  if (node) meta = ParseMeta(node->data);
  std::string fault = meta.ok() ? "" : meta.status().ToString();
  if (meta.ok() && meta->frozen) fault = AskForRestore("the cluster is frozen: " + meta->reason);
  const bool same = meta.ok() && root_ && root_->uuid == meta->uuid && root_->era == meta->era;
  if (fault.empty() && tenure_ && !same) fault = "the cluster was re-created or restored";
  if (!fault.empty()) {
    EndTenure(fault);
    co_return false;
  }
  root_ = Root{.version = node->stat.version, .uuid = meta->uuid, .era = meta->era};
  co_return true;
}

// --- the tenure ----------------------------------------------------------------------------------

// Rule 1. After an unacknowledged creation the next attempt uses another name.
Task<> Owners::BeginTenure() {
  renew_at_ = registry_.now() + look_every();
  bool known = co_await ReadRoot();
  if (!known) co_return;
  Tenure fresh{.name = Nonce::Draw(entropy_),
               .beat = {.address = options_.address,
                        .secret = Nonce::Draw(entropy_),
                        .word = Nonce::Draw(entropy_),
                        .window = options_.window,
                        .tls = options_.tls,
                        .young = is_young()},
               .session = registry_.session()};
  const BootMs sent = registry_.now();
  const std::vector<Write> writes{
      Write::Check(kMetaPath, root_->version),
      Write::Create(BeatPath(fresh.name), FormatBeat(fresh.beat), Lifetime::kPersistent),
      Write::Create(AlivePath(fresh.name), "", Lifetime::kPersistent), EraCheck(root_->era)};
  Written answer = co_await registry_.Multi(writes);
  if (answer.fate != Written::Fate::kDone) {
    trouble_ = answer.status.ToString();
    if (answer.failed != 1 || answer.status.code() != Code::kNotFound) co_return;
    co_await MakeFolders();
    renew_at_ = registry_.now();
    co_return;
  }
  const int64_t session = fresh.session;
  tenure_ = std::move(fresh);
  for (size_t i = 0; i < kPartitions; ++i) {
    shares_[i].change.reset();
    ReadSoon(i);
  }
  Acknowledge(sent, session, 0);
}

Task<> Owners::MakeFolders() {
  static constexpr std::array kFolders{kOwnersPath, kBeatsPath, kPartitionsPath};
  for (const char* const path : kFolders) {
    const std::vector<Write> writes{Write::Create(path, "", Lifetime::kPersistent),
                                    EraCheck(root_->era)};
    co_await registry_.Multi(writes);
  }
}

// The only place that extends terms. `sent` must be at or before the time of the sending.
void Owners::Acknowledge(BootMs sent, int64_t session, int64_t version) {
  tenure_->version = version;
  tenure_->session = session;
  tenure_->until = std::max(tenure_->until, sent + options_.window);
  for (Share& share : shares_) {
    if (share.here) share.term.Extend(tenure_->until);
  }
  const Beat& beat = tenure_->beat;
  const bool must_say_so = (leaving_ && waits_ && !beat.leaving) || beat.young != is_young();
  renew_at_ = must_say_so ? sent : sent + options_.window / 3;
  if (beat.young && session == synced_session_) renew_at_ = std::min(renew_at_, takes_from());
  if (beat.leaving && !knows_leavers_) look_at_ = BootMs();
  trouble_.clear();
}

void Owners::EndTenure(const std::string& why) {
  trouble_ = why;
  for (size_t i = 0; i < kPartitions; ++i) {
    if (shares_[i].here) EndTerm(i);
  }
  // An unsure tenure does not know its version, so its beat is not set: other servers wait.
  if (tenure_ && !tenure_->unsure) past_ = std::move(tenure_);
  tenure_.reset();
  renew_at_ = registry_.now() + look_every();
}

// Rule 8. Tries once: a refusal means that another process has written this beat.
Task<> Owners::EndBeat() {
  Tenure past = *std::exchange(past_, std::nullopt);
  const std::string path = BeatPath(past.name);
  std::vector<Write> writes{Write::Erase(AlivePath(past.name), 0)};
  if (MayBeNamed(past.name)) {
    past.beat.ended = true;
    AddSet(writes, path, FormatBeat(past.beat), past.version);
  } else {
    writes.push_back(Write::Erase(path, past.version));
  }
  writes.push_back(EraCheck(root_->era));
  co_await registry_.Multi(writes);
}

// Rule 8. Only the first candidate of partition 0 erases beats.
std::optional<Task<>> Owners::Sweep(const std::vector<std::string>& candidates) {
  if (registry_.now() < sweep_at_ || RankOf(0, options_.address, candidates) > 0) return {};
  for (const auto& [tenure, other] : beats_) {
    if (!other.beat.ok() || MayBeNamed(tenure)) continue;
    const Milliseconds wait = other.beat->ended ? 2 * options_.window : Margin(other.beat->window);
    if (!other.sighting.HasLasted(wait, registry_.session(), registry_.now())) continue;
    std::vector<Write> writes;
    if (!other.beat->ended) writes.push_back(Write::Erase(AlivePath(tenure), 0));
    writes.push_back(Write::Erase(BeatPath(tenure), other.sighting.state().version));
    writes.push_back(EraCheck(root_->era));
    return EraseBeat(std::move(writes));
  }
  return {};
}

Task<> Owners::EraseBeat(std::vector<Write> writes) {
  sweep_at_ = registry_.now() + options_.window;  // then the beats have been listed again
  co_await registry_.Multi(writes);
}

// --- renewals ------------------------------------------------------------------------------------

// Rules 1 to 4. Look may end the tenure while this waits for an answer.
Task<> Owners::Renew() {
  if (tenure_->unsure) {
    bool known = co_await ReadBack();
    if (!known || !tenure_) co_return;
  }
  const BootMs sent = registry_.now();
  const int64_t session = registry_.session();
  if (has_lapsed() && session != tenure_->session) {
    EndTenure("this server could not renew its beat in time");
    co_return;
  }
  Beat next = tenure_->beat;
  next.word = Nonce::Draw(entropy_);
  next.unreachable = unreachable_;
  next.leaving = leaving_;
  next.young = is_young();
  tenure_->words.push_back(next.word);
  size_t set = 0;
  const std::vector<Write> writes = RenewalOf(next, &set);
  Written answer = co_await registry_.Multi(writes);
  if (!tenure_) co_return;
  switch (answer.fate) {
    case Written::Fate::kDone: {
      const int64_t version = answer.stats.at(set).version;
      if (!Follows(tenure_->version, version)) {
        EndTenure("this server's beat was re-created");
        co_return;
      }
      tenure_->beat = std::move(next);
      tenure_->words.clear();
      tenure_->unsure = false;
      Acknowledge(sent, session, version);
      co_return;
    }
    case Written::Fate::kUnknown:
      tenure_->unsure = true;
      RenewSoon();
      co_return;
    case Written::Fate::kNotSent:
      tenure_->words.pop_back();
      RenewSoon();
      co_return;
    case Written::Fate::kRefused:
      tenure_->words.pop_back();
      break;
  }
  if (answer.failed == 0) {
    bool known = co_await ReadRoot();
    if (tenure_ && !known) RenewSoon();
    co_return;
  }
  JudgeRefusal(answer, set);
}

std::vector<Write> Owners::RenewalOf(const Beat& beat, size_t* set) const {
  std::vector<Write> writes{Write::Check(kMetaPath, root_->version),
                            Write::Check(AlivePath(tenure_->name), 0)};
  *set = AddSet(writes, BeatPath(tenure_->name), FormatBeat(beat), tenure_->version);
  for (size_t i = 0; i < kPartitions; ++i) {
    if (shares_[i].here) writes.push_back(ChangeCheck(i));
  }
  writes.push_back(EraCheck(root_->era));
  return writes;
}

// If an earlier renewal of unknown outcome was applied, it may have caused this refusal. Otherwise
// another process has written.
void Owners::JudgeRefusal(const Written& answer, size_t set) {
  const bool of_beat = answer.failed <= static_cast<int>(set);
  if (of_beat && tenure_->unsure) return RenewSoon();
  EndTenure(
      Cat(of_beat ? "this server's beat has changed: " : "the era or a partition has changed: ",
          answer.status.message()));
}

// Rule 3. Returns false if the beat could not be read, or if the tenure has ended.
Task<bool> Owners::ReadBack() {
  const std::vector<std::string> paths{BeatPath(tenure_->name)};
  Result<Nodes> nodes = co_await registry_.ReadSynced(paths);
  if (!tenure_) co_return false;
  if (!nodes.ok()) {
    RenewSoon();
    co_return false;
  }
  const std::optional<Node>& node = nodes->front();
  Result<Beat> beat = NotFound("this server's beat is missing");
  if (node) beat = ParseBeat(node->data);
  if (!beat.ok()) {
    EndTenure(beat.status().message());
    co_return false;
  }
  if (beat->ended) {
    EndTenure("another server has ended this tenure");
    co_return false;
  }
  const int64_t version = node->stat.version;
  if (version == tenure_->version && *beat == tenure_->beat) co_return true;
  const std::vector<Nonce>& words = tenure_->words;
  const bool is_own = std::find(words.begin(), words.end(), beat->word) != words.end();
  if (is_own && Follows(tenure_->version, version)) {
    tenure_->version = version;
    tenure_->beat = *std::move(beat);
    tenure_->words.clear();
    tenure_->unsure = false;
    co_return true;
  }
  EndTenure("another process writes this server's beat, such as a copy of this one");
  co_return false;
}

}  // namespace firn
