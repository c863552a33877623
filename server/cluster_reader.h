#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/open/open_coordinator.h"
#include "registry/seam/blocking_coordinator.h"
#include "server/front/desk/cluster_view.h"

namespace firn {

// Reads the state of the whole cluster for the admin side, on its own thread and in its own
// registry session, so that the control thread never waits. Both start with the first request; the
// session is closed after some time without requests. Dubbo's consumers are outside of the
// cluster's nodes, so a second session reads them.
//
// Servers report their activity only while it is requested (registry/servers/pace.h). Each read
// requests it for as long as its session lasts, so the first read does not contain it yet.
//
// The registry is read at most as often as Limits permit, for any number of requests. Thread-safe.
class ClusterReader final : public front::ClusterView {
 public:
  struct Limits {
    Milliseconds read_every{5'000};  // between reads; longer after a slow one, 10 s at most
    Milliseconds question_every{100};
    size_t questions_max = 16;     // that wait
    Milliseconds keep{10'000};     // time for which an answer is kept
    Milliseconds idle{30'000};     // time without requests until the session is closed
    Milliseconds patience{5'000};  // timeout of opening a session
  };
  struct Place {
    std::string registry;     // for OpenCoordinator; a static: one cannot be read
    std::string credentials;  // user:password, for ZooKeeper
    std::string auth_file{};  // the file that contains them, for printed commands
  };

  // `clock` and `entropy` must outlive this.
  ClusterReader(Place place, Limits limits, const Clock& clock, Entropy& entropy,
                RegistryOpener open = OpenCoordinator);
  ~ClusterReader() override;  // stops

  front::ClusterReading Audit() override;
  front::ClusterReading Tags() override;
  front::ClusterReading Consumers() override;
  front::ClusterReading Who(int64_t id) override;

  // Waits for the current read, a few seconds at most. Idempotent.
  void Stop();

 private:
  using Text = std::shared_ptr<const std::string>;
  using Texts = std::vector<Text>;
  struct Contents {
    Texts texts;
    bool paces_begin = false;  // servers are about to write their first rates
  };
  // Texts that are read together, while one of them is requested.
  struct Subject {
    Result<Contents> (ClusterReader::*read)();  // on the thread, without the lock
    size_t texts_count;
    Texts texts = Texts(texts_count);  // null until they have been read
    BootMs at{};                       // when the texts were read
    Status trouble{};                  // of the last read
    bool wanted = false;
    BootMs next{};  // earliest time of the next read
  };
  struct Answer {
    Text json;
    Status trouble;
    BootMs at;
  };
  struct Session {
    std::unique_ptr<Coordinator> coordinator;
    std::unique_ptr<BlockingCoordinator> registry;
    std::optional<WallMs> paces_wanted_at{};  // as last seen,
    BootMs seen_wanted;                       // and when it was first seen
  };

  // These are called with the lock; the ones that read release it meanwhile.
  Status Begin();  // fails if there is no registry to read
  front::ClusterReading Shown(Subject& subject, size_t text);
  bool DoOne(std::unique_lock<std::mutex>& lock);
  void Read(Subject& subject, std::unique_lock<std::mutex>& lock);
  void AnswerOne(std::unique_lock<std::mutex>& lock);
  void ForgetAnswers(BootMs now);

  void Loop();
  // On the thread, without the lock.
  Result<std::unique_ptr<Coordinator>> Open(bool ensemble);
  Result<std::unique_ptr<Session>> OpenSession(bool ensemble);
  Status OpenCluster();
  Result<Contents> ReadCluster();
  Result<Contents> ReadConsumers();
  Result<std::string> ReadWho(int64_t id);

  const Place place_;
  const Limits limits_;
  const Clock& clock_;
  Entropy& entropy_;
  const RegistryOpener open_;
  // Used by the thread only. `ensemble_` is rooted at ZooKeeper's root, where Dubbo's nodes are.
  std::unique_ptr<Session> session_, ensemble_;
  uint64_t activity_failures_ = 0;  // used by the thread only

  std::mutex mutex_;  // guards the members below
  std::condition_variable asked_;
  std::thread thread_;
  bool going_on_ = true;
  BootMs asked_at_;
  BootMs question_from_;
  Subject cluster_{&ClusterReader::ReadCluster, 2};  // audit, tags
  Subject consumers_{&ClusterReader::ReadConsumers, 1};
  std::deque<int64_t> questions_;
  std::map<int64_t, Answer> answers_;
};

}  // namespace firn
