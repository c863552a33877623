#include "server/cluster_looker.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <glog/logging.h>

#include "common/base/cat.h"
#include "registry/operate/audit.h"
#include "registry/operate/operator_json.h"
#include "registry/operate/who.h"
#include "server/node/open_node.h"

namespace firn {
namespace {

constexpr Milliseconds kTurn{100};
constexpr Milliseconds kReadLimit{2'000};
constexpr int kPartOfTime = 10;

std::shared_ptr<const std::string> TextOf(const Json& json) {
  return std::make_shared<const std::string>(JsonText(json));
}

Json TagsJson(const Audit& audit) {
  Json tags = Json::array();
  for (const TagDefinition& tag : audit.tags) {
    Json json = TagJson(tag);
    json["state"] = tag.disabled ? "disabled" : "enabled";
    // Only where there is a ledger does anything say where a tag stands.
    if (tag.strategy == "segment") json["next"] = std::to_string(tag.NextBegin());
    tags.push_back(std::move(json));
  }
  return tags;
}

}  // namespace

ClusterLooker::ClusterLooker(Place place, Limits limits, const Clock& clock, Entropy& entropy,
                             RegistryOpener open)
    : place_(std::move(place)),
      limits_(limits),
      clock_(clock),
      entropy_(entropy),
      open_(std::move(open)) {}

ClusterLooker::~ClusterLooker() { Stop(); }

void ClusterLooker::Stop() {
  {
    const std::lock_guard lock(mutex_);
    going_on_ = false;
  }
  asked_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// --- those who ask -------------------------------------------------------------------------------

front::ClusterWord ClusterLooker::Audit() {
  const std::lock_guard lock(mutex_);
  return Shown(&Look::audit);
}

front::ClusterWord ClusterLooker::Tags() {
  const std::lock_guard lock(mutex_);
  return Shown(&Look::tags);
}

front::ClusterWord ClusterLooker::Who(int64_t id) {
  const std::lock_guard lock(mutex_);
  if (Status can = Begin(); !can.ok()) return {.trouble = std::move(can)};
  const BootMs now = clock_.Boot();
  ForgetAnswers(now);
  if (const auto known = answers_.find(id); known != answers_.end()) {
    const Answer& answer = known->second;
    return {.json = answer.json, .age = now - answer.at, .trouble = answer.trouble};
  }
  if (std::find(questions_.begin(), questions_.end(), id) != questions_.end()) return {};
  if (questions_.size() == limits_.questions_max) {
    return {.trouble = Unavailable(Cat("the issuers of ", limits_.questions_max,
                                       " other ids are being looked up; try again"))};
  }
  questions_.push_back(id);
  asked_.notify_one();
  return {};
}

front::ClusterWord ClusterLooker::Shown(Text Look::*text) {
  if (Status can = Begin(); !can.ok()) return {.trouble = std::move(can)};
  look_wanted_ = true;
  asked_.notify_one();
  front::ClusterWord word{.json = look_.*text, .trouble = look_trouble_};
  if (word.json != nullptr) word.age = clock_.Boot() - look_.at;
  return word;
}

Status ClusterLooker::Begin() {
  if (place_.registry.starts_with(kStaticRegistry)) {
    return Unavailable("machine ids are assigned by hand: there is no registry to read");
  }
  asked_at_ = clock_.Boot();
  if (thread_.joinable() || !going_on_) return {};
  try {
    thread_ = std::thread([this] { Loop(); });
  } catch (const std::system_error& error) {
    return Unavailable(Cat("cannot start the thread that reads the registry: ", error.what()));
  }
  return {};
}

void ClusterLooker::ForgetAnswers(BootMs now) {
  std::erase_if(answers_, [&](const auto& kept) { return now - kept.second.at >= limits_.keep; });
}

// --- the thread ----------------------------------------------------------------------------------

void ClusterLooker::Loop() {
  std::unique_lock lock(mutex_);
  while (going_on_) {
    if (!DoOne(lock)) asked_.wait_for(lock, kTurn);
  }
  session_.reset();
}

// Returns false if there is nothing to do now.
bool ClusterLooker::DoOne(std::unique_lock<std::mutex>& lock) {
  const BootMs now = clock_.Boot();
  if (!questions_.empty() && now >= question_from_) {
    AnswerOne(lock);
  } else if (look_wanted_ && now >= look_from_) {
    LookOnce(lock);
  } else if (session_ != nullptr && now - asked_at_ >= limits_.idle) {
    session_.reset();
  } else {
    return false;
  }
  return true;
}

void ClusterLooker::LookOnce(std::unique_lock<std::mutex>& lock) {
  const BootMs begun = clock_.Boot();
  lock.unlock();
  Result<Look> look = ReadLook();
  lock.lock();
  const BootMs now = clock_.Boot();
  look_wanted_ = false;
  look_from_ = now + std::max(limits_.look_every, (now - begun) * (kPartOfTime - 1));
  look_trouble_ = look.status();
  if (look.ok()) look_ = *std::move(look);
}

void ClusterLooker::AnswerOne(std::unique_lock<std::mutex>& lock) {
  const int64_t id = questions_.front();
  lock.unlock();
  Result<std::string> json = ReadWho(id);
  lock.lock();
  questions_.pop_front();
  Answer answer{.json = nullptr, .trouble = json.status(), .at = clock_.Boot()};
  if (json.ok()) answer.json = std::make_shared<const std::string>(*std::move(json));
  ForgetAnswers(answer.at);
  question_from_ = answer.at + limits_.question_every;
  answers_.insert_or_assign(id, std::move(answer));
}

// A server that gets no more threads has no page about its cluster, and serves ids.
Result<std::unique_ptr<Coordinator>> ClusterLooker::OpenRegistry() {
  try {
    return open_(place_.registry, {.auth = place_.credentials, .time_limit = kReadLimit}, clock_,
                 entropy_);
  } catch (const std::system_error& error) {
    return Unavailable(Cat("cannot open the registry: ", error.what()));
  }
}

// A failed session is discarded: the next read opens another.
Status ClusterLooker::OpenSession() {
  if (session_ != nullptr) return {};
  FIRN_ASSIGN(auto coordinator, OpenRegistry());
  auto session = std::make_unique<Session>();
  session->coordinator = std::move(coordinator);
  session->registry = std::make_unique<BlockingCoordinator>(*session->coordinator, clock_);
  const BootMs give_up = clock_.Boot() + limits_.patience;
  for (;;) {
    const Status connected = session->registry->Connect(kTurn);
    if (connected.ok()) break;
    const bool again = connected.code() == Code::kUnavailable && clock_.Boot() < give_up;
    const std::lock_guard lock(mutex_);
    if (again && going_on_) continue;
    if (connected.code() != Code::kUnavailable) return connected;
    return Unavailable(
        Cat("no connection to the registry within ", limits_.patience.count(), " ms"));
  }
  session_ = std::move(session);
  return {};
}

Result<ClusterLooker::Look> ClusterLooker::ReadLook() {
  FIRN_TRY(OpenSession());
  const Now now = clock_.Read();
  // A registry that does not accept writes can still be read.
  const Status asked = WantPaces(*session_->registry);
  LOG_IF_EVERY_N(WARNING, !asked.ok() && asked.code() != Code::kNotFound, 100)
      << "cannot request the servers' activity: " << asked;
  Result<firn::Audit> audit = ReadAudit(*session_->registry, now.wall);
  Status read = audit.ok() ? ReadPast(*session_->registry, *audit) : audit.status();
  if (read.ok()) read = ReadPaces(*session_->registry, *audit);
  if (!read.ok()) {
    session_.reset();
    return read;
  }
  Json said = AuditJson(*audit, false);
  if (audit->paces_wanted_at) {
    if (session_->paces_wanted_at != audit->paces_wanted_at) session_->seen_wanted = now.boot;
    session_->paces_wanted_at = audit->paces_wanted_at;
    said["paces_wanted_ms"] = (now.boot - session_->seen_wanted).count();
  }
  said["slots"] = audit->slots.size();
  said["at_ms"] = now.wall.ms();
  const Json tags{{"tags", TagsJson(*audit)}, {"at_ms", now.wall.ms()}};
  return Look{.audit = TextOf(said), .tags = TextOf(tags), .at = now.boot};
}

Result<std::string> ClusterLooker::ReadWho(int64_t id) {
  FIRN_TRY(OpenSession());
  const auto found = FindIssuers(*session_->registry, {id});
  if (found.ok()) return JsonText(IssuersJson(found->front()));
  if (found.code() == Code::kUnavailable || found.code() == Code::kUnknown) session_.reset();
  return found.status();
}

}  // namespace firn
