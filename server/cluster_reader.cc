#include "server/cluster_reader.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "common/base/cat.h"
#include "common/log/log.h"
#include "registry/dubbo/dubbo_consumers.h"
#include "registry/operate/audit.h"
#include "registry/operate/operator_json.h"
#include "registry/operate/restore_command.h"
#include "registry/operate/who.h"
#include "registry/servers/pace_publisher.h"
#include "server/node/open_node.h"

namespace firn {
namespace {

constexpr Milliseconds kTurn{100};
constexpr Milliseconds kReadLimit{2'000};
constexpr int kPartOfTime = 10;
// Limits the pause after a slow read, and with it the age of the texts.
constexpr Milliseconds kPauseMax{10'000};
constexpr uint64_t kFailuresPerLine = 100;
// Within this time after the first request, servers write their first rates. Meanwhile the registry
// is read more often, so that a new viewer soon sees them.
constexpr Milliseconds kFirstPaces = PacePublisher::kFirstAfter + PacePublisher::kEvery;
constexpr Milliseconds kReadFirstPacesEvery{1'500};

std::shared_ptr<const std::string> TextOf(const Json& json) {
  return std::make_shared<const std::string>(JsonText(json));
}

Json TagsJson(const Audit& audit) {
  Json tags = Json::array();
  for (const TagDefinition& tag : audit.tags) {
    Json json = TagJson(tag);
    json["state"] = tag.disabled ? "disabled" : "enabled";
    // Only a tag with a ledger has a known next number.
    if (tag.HasLedger()) json["next"] = std::to_string(tag.NextBegin());
    tags.push_back(std::move(json));
  }
  return tags;
}

}  // namespace

ClusterReader::ClusterReader(Place place, Limits limits, const Clock& clock, Entropy& entropy,
                             RegistryOpener open)
    : place_(std::move(place)),
      limits_(limits),
      clock_(clock),
      entropy_(entropy),
      open_(std::move(open)) {}

ClusterReader::~ClusterReader() { Stop(); }

void ClusterReader::Stop() {
  {
    const std::lock_guard lock(mutex_);
    going_on_ = false;
  }
  asked_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// --- requests ------------------------------------------------------------------------------------

front::ClusterReading ClusterReader::Audit() {
  const std::lock_guard lock(mutex_);
  return Shown(cluster_, 0);
}

front::ClusterReading ClusterReader::Tags() {
  const std::lock_guard lock(mutex_);
  return Shown(cluster_, 1);
}

front::ClusterReading ClusterReader::Consumers() {
  const std::lock_guard lock(mutex_);
  return Shown(consumers_, 0);
}

front::ClusterReading ClusterReader::Who(int64_t id) {
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

front::ClusterReading ClusterReader::Shown(Subject& subject, size_t text) {
  if (Status can = Begin(); !can.ok()) return {.trouble = std::move(can)};
  subject.wanted = true;
  asked_.notify_one();
  front::ClusterReading word{.json = subject.texts[text], .trouble = subject.trouble};
  if (word.json != nullptr) word.age = clock_.Boot() - subject.at;
  return word;
}

Status ClusterReader::Begin() {
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

void ClusterReader::ForgetAnswers(BootMs now) {
  std::erase_if(answers_, [&](const auto& kept) { return now - kept.second.at >= limits_.keep; });
}

// --- the thread ----------------------------------------------------------------------------------

void ClusterReader::Loop() {
  std::unique_lock lock(mutex_);
  while (going_on_) {
    if (!DoOne(lock)) asked_.wait_for(lock, kTurn);
  }
  session_.reset();
  ensemble_.reset();
}

// Returns false if there is nothing to do now.
bool ClusterReader::DoOne(std::unique_lock<std::mutex>& lock) {
  const BootMs now = clock_.Boot();
  if (!questions_.empty() && now >= question_from_) {
    AnswerOne(lock);
  } else if (cluster_.wanted && now >= cluster_.next) {
    Read(cluster_, lock);
  } else if (consumers_.wanted && now >= consumers_.next) {
    Read(consumers_, lock);
  } else if ((session_ != nullptr || ensemble_ != nullptr) && now - asked_at_ >= limits_.idle) {
    session_.reset();
    ensemble_.reset();
  } else {
    return false;
  }
  return true;
}

void ClusterReader::Read(Subject& subject, std::unique_lock<std::mutex>& lock) {
  const BootMs begun = clock_.Boot();
  lock.unlock();
  Result<Contents> contents = (this->*subject.read)();
  lock.lock();
  const BootMs now = clock_.Boot();
  subject.wanted = false;
  const Milliseconds every = contents.ok() && contents->paces_begin
                                 ? std::min(limits_.read_every, kReadFirstPacesEvery)
                                 : limits_.read_every;
  subject.next = now + std::max(every, std::min((now - begun) * (kPartOfTime - 1), kPauseMax));
  subject.trouble = contents.status();
  if (!contents.ok()) return;
  subject.texts = std::move(contents->texts);
  subject.at = begun;
}

void ClusterReader::AnswerOne(std::unique_lock<std::mutex>& lock) {
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

// If no thread can be created, the server has no page about its cluster, but issues ids.
Result<std::unique_ptr<Coordinator>> ClusterReader::Open(bool ensemble) {
  const OpenOptions options{.auth = place_.credentials, .time_limit = kReadLimit};
  try {
    return ensemble ? OpenEnsemble(place_.registry, options, clock_)
                    : open_(place_.registry, options, clock_, entropy_);
  } catch (const std::system_error& error) {
    return Unavailable(Cat("cannot open the registry: ", error.what()));
  }
}

Result<std::unique_ptr<ClusterReader::Session>> ClusterReader::OpenSession(bool ensemble) {
  FIRN_ASSIGN(auto coordinator, Open(ensemble));
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
  return session;
}

// Opens a session unless there is one. A failed session is discarded, so the next read opens
// another.
Status ClusterReader::OpenCluster() {
  if (session_ != nullptr) return {};
  FIRN_ASSIGN(session_, OpenSession(false));
  return {};
}

Result<ClusterReader::Contents> ClusterReader::ReadCluster() {
  FIRN_TRY(OpenCluster());
  const Now now = clock_.Read();
  // A registry that does not accept writes can still be read.
  const Status asked = WantPaces(*session_->registry);
  const bool failed = !asked.ok() && asked.code() != Code::kNotFound;
  if (failed && activity_failures_++ % kFailuresPerLine == 0) {
    LogWarning("activity_unavailable") << "cannot request the servers' activity: " << asked;
  }
  Result<firn::Audit> audit = ReadAudit(*session_->registry, now.wall);
  Status read = audit.ok() ? ReadPast(*session_->registry, *audit) : audit.status();
  if (read.ok()) read = ReadPaces(*session_->registry, *audit);
  if (!read.ok()) {
    session_.reset();
    return read;
  }
  Json said = AuditJson(
      *audit, false,
      RepairCommand(*audit, {.registry = place_.registry, .auth_file = place_.auth_file}));
  Milliseconds wanted_for = kFirstPaces;
  if (audit->paces_wanted_at) {
    if (session_->paces_wanted_at != audit->paces_wanted_at) session_->seen_wanted = now.boot;
    session_->paces_wanted_at = audit->paces_wanted_at;
    wanted_for = now.boot - session_->seen_wanted;
    said["paces_wanted_ms"] = wanted_for.count();
  }
  said["slots"] = audit->slots.size();
  said["at_ms"] = now.wall.ms();
  const Json tags{{"tags", TagsJson(*audit)}, {"at_ms", now.wall.ms()}};
  return Contents{
      .texts = {TextOf(said), TextOf(tags)},
      .paces_begin = wanted_for < kFirstPaces && audit->paces.size() < audit->providers.size()};
}

Result<ClusterReader::Contents> ClusterReader::ReadConsumers() {
  Json said{{"consumers", Json::array()}, {"at_ms", clock_.Wall().ms()}};
  if (!place_.registry.starts_with("zk://")) return Contents{{TextOf(said)}};
  if (ensemble_ == nullptr) {
    FIRN_ASSIGN(ensemble_, OpenSession(true));
  }
  const auto consumers = ReadDubboConsumers(*ensemble_->registry);
  if (!consumers.ok()) {
    ensemble_.reset();
    return consumers.status();
  }
  said["consumers"] = DubboConsumersJson(*consumers);
  return Contents{{TextOf(said)}};
}

Result<std::string> ClusterReader::ReadWho(int64_t id) {
  FIRN_TRY(OpenCluster());
  const auto found = FindIssuers(*session_->registry, {id});
  if (found.ok()) return JsonText(IssuersJson(found->front()));
  if (found.code() == Code::kUnavailable || found.code() == Code::kUnknown) session_.reset();
  return found.status();
}

}  // namespace firn
