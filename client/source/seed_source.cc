#include "client/source/seed_source.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "client/source/ask_pace.h"
#include "client/source/list_gate.h"
#include "client/source/list_source.h"
#include "client/source/seed_list.h"
#include "common/base/quote.h"
#include "common/time/clock.h"

namespace firn::client {
namespace {

constexpr std::string_view kCacheKey = "cache=";

std::optional<ListCache> CacheAt(const std::string& path, const std::string& of) {
  return path.empty() ? std::nullopt : std::optional(ListCache(path, of));
}

class SeedSource final : public ServerSource {
 public:
  SeedSource(std::vector<KnownServer> seeds, std::optional<ListCache> cache, AskServers ask,
             EventHook on_event, Entropy& entropy)
      : ask_(std::move(ask)),
        entropy_(entropy),
        gate_(std::move(cache), std::move(on_event)),
        list_(std::move(seeds)) {}
  ~SeedSource() override { Stop(); }

  Status Start(Listener on_list) override {
    gate_.Open(std::move(on_list));
    if (auto kept = gate_.told()) list_.Begin(*std::move(kept));
    gate_.Show(list_.list());
    thread_ = std::thread([this] { Run(); });
    return {};
  }

  void Stop() override {
    gate_.Close();
    {
      const std::scoped_lock lock(desk_->mutex);
      desk_->stopped = true;
    }
    desk_->changed.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void Hurry() override {
    const Micros soon = Now() + AskPace::AfterTrouble(entropy_);
    const std::scoped_lock lock(desk_->mutex);
    if (soon >= desk_->ask_at) return;
    desk_->ask_at = soon;
    desk_->changed.notify_all();
  }

 private:
  // State shared by the thread, callers of Hurry, and answers. A pending answer co-owns
  // it.
  struct Desk {
    std::mutex mutex;  // guards the rest; not held during callbacks
    std::condition_variable changed;
    bool stopped = false;
    bool asking = false;
    std::optional<Result<ToldServers>> answer;
    Micros ask_at{0};
  };

  static Micros Now() { return SystemClock().BootMicros(); }

  void Run() {
    std::unique_lock lock(desk_->mutex);
    while (!desk_->stopped) {
      if (desk_->answer) {
        const Result<ToldServers> answer = *std::exchange(desk_->answer, std::nullopt);
        lock.unlock();
        const Micros pause = Heed(answer);
        lock.lock();
        desk_->asking = false;
        desk_->ask_at =
            std::min(desk_->ask_at, Now() + pause);  // Hurry may have been called meanwhile
      } else if (!desk_->asking && Now() >= desk_->ask_at) {
        desk_->asking = true;
        desk_->ask_at = Micros::max();
        lock.unlock();
        Ask();
        lock.lock();
      } else {
        Wait(lock);
      }
    }
  }

  void Wait(std::unique_lock<std::mutex>& lock) {
    if (desk_->asking) {
      desk_->changed.wait(lock);
    } else {
      desk_->changed.wait_for(lock, std::chrono::microseconds(desk_->ask_at - Now()));
    }
  }

  void Ask() {
    ask_(list_.version(), [desk = desk_](Result<ToldServers> told) {
      const std::scoped_lock lock(desk->mutex);
      desk->answer = std::move(told);
      desk->changed.notify_all();
    });
  }

  // Uses an answer, and returns the time to wait before the next request.
  Micros Heed(const Result<ToldServers>& answer) {
    if (!answer.ok()) {
      list_.OnNoAnswer();
      gate_.Show(list_.list());
      return pace_.AfterSilence(entropy_);
    }
    const bool back = list_.nobody_answers();  // calls are waiting for a usable server
    if (list_.Hear(*answer, Now())) {
      gate_.Offer(list_.list());
    } else {
      gate_.Show(list_.list(), back);
    }
    return pace_.AfterAnswer(answer->ask_again);
  }

  const AskServers ask_;
  Entropy& entropy_;
  ListGate gate_;
  SeedList list_;  // used by the thread once it runs, as the next member
  AskPace pace_;

  const std::shared_ptr<Desk> desk_ = std::make_shared<Desk>();
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<ServerSource>> OpenSeedSource(const std::string& servers, AskServers ask,
                                                     EventHook on_event, Entropy& entropy) {
  if (!servers.starts_with(kSeedScheme)) return Invalid(Quoted(servers) + " is not firn://");
  const size_t mark = std::min(servers.find('?'), servers.size());
  std::string cache;
  if (mark < servers.size()) {
    cache = servers.substr(mark + 1);
    if (!cache.starts_with(kCacheKey) || cache.size() == kCacheKey.size()) {
      return Invalid(Quoted(servers) + " may end in ?cache=/path/of/file, and in nothing else");
    }
    cache.erase(0, kCacheKey.size());
  }
  const std::string place = servers.substr(0, mark);
  FIRN_ASSIGN(std::vector<KnownServer> seeds,
              ParseServers(std::string_view(place).substr(kSeedScheme.size())));
  return std::unique_ptr<ServerSource>(std::make_unique<SeedSource>(
      std::move(seeds), CacheAt(cache, place), std::move(ask), std::move(on_event), entropy));
}

}  // namespace firn::client
