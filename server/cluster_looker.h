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

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/open/open_coordinator.h"
#include "registry/seam/blocking_coordinator.h"
#include "server/front/desk/cluster_view.h"

namespace firn {

// Looks at the whole cluster for the admin side, on a thread and in a registry session of its own:
// the control thread never waits for it. Both are there only once somebody asks, and the session
// goes when nobody has asked for a while.
//
// Servers say what they do only while somebody looks (registry/servers/pace.h): a look asks them
// to, for as long as its session lasts, so the first one does not show it yet.
//
// However many ask, and however often, the registry is read as rarely as Limits say. Thread-safe.
class ClusterLooker final : public front::ClusterView {
 public:
  struct Limits {
    Milliseconds look_every{5'000};  // at most, and a look takes a tenth of the time at most
    Milliseconds question_every{100};
    size_t questions_max = 16;     // that wait
    Milliseconds keep{10'000};     // an answer, for whoever asked
    Milliseconds idle{30'000};     // until the session is closed
    Milliseconds patience{5'000};  // for a session
  };
  struct Place {
    std::string registry;     // as OpenCoordinator takes it; static: has nothing to look at
    std::string credentials;  // user:password, for ZooKeeper
  };

  // `clock` and `entropy` must outlive it.
  ClusterLooker(Place place, Limits limits, const Clock& clock, Entropy& entropy,
                RegistryOpener open = OpenCoordinator);
  ~ClusterLooker() override;  // stops

  front::ClusterWord Audit() override;
  front::ClusterWord Tags() override;
  front::ClusterWord Who(int64_t id) override;

  // Waits for the read at hand, a few seconds at most. Idempotent.
  void Stop();

 private:
  using Text = std::shared_ptr<const std::string>;
  struct Look {
    Text audit, tags;
    BootMs at;
  };
  struct Answer {
    Text json;
    Status trouble;
    BootMs at;
  };
  struct Session {
    std::unique_ptr<Coordinator> coordinator;
    std::unique_ptr<BlockingCoordinator> registry;
    std::optional<WallMs> paces_wanted_at{};  // as seen last,
    BootMs seen_wanted;                       // and when it was seen first
  };

  // All of these are called with the lock, and those that read let it go meanwhile.
  Status Begin();  // fails where there is nothing to look at
  front::ClusterWord Shown(Text Look::*text);
  bool DoOne(std::unique_lock<std::mutex>& lock);
  void LookOnce(std::unique_lock<std::mutex>& lock);
  void AnswerOne(std::unique_lock<std::mutex>& lock);
  void ForgetAnswers(BootMs now);

  void Loop();
  // On the thread, without the lock.
  Status OpenSession();
  Result<Look> ReadLook();
  Result<std::string> ReadWho(int64_t id);

  const Place place_;
  const Limits limits_;
  const Clock& clock_;
  Entropy& entropy_;
  const RegistryOpener open_;
  std::unique_ptr<Session> session_;  // the thread's

  std::mutex mutex_;  // guards what is below
  std::condition_variable asked_;
  std::thread thread_;
  bool going_on_ = true;
  bool look_wanted_ = false;
  BootMs asked_at_;
  BootMs look_from_;  // not before
  BootMs question_from_;
  Look look_;
  Status look_trouble_;
  std::deque<int64_t> questions_;
  std::map<int64_t, Answer> answers_;
};

}  // namespace firn
