// Runs the C++ client's generator of local ids, controlled by standard input and output as
// ../README.md describes.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/client.h"
#include "client/lease/local_generator.h"
#include "common/json/json.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"

namespace firn {
namespace {

using Words = std::map<std::string, std::string>;

constexpr int kPass = 10;  // ids taken at once
constexpr Milliseconds kPause{10};

// Writes a failed request of a generator to standard error.
void Log(const std::string& name, const Status& why) {
  std::cerr << FormatRfc3339(SystemClock().Wall()) + " " + name + ": " + why.message() + "\n";
}

class Driver {
 public:
  Json Do(const std::string& verb, const Words& words) {
    if (verb == "open") return Open(words);
    if (verb == "so_far") return SoFar();
    if (verb == "burst") return Burst(std::stoi(words.at("count")));
    return Close();
  }

 private:
  Json Open(const Words& words) {
    client_ = std::make_unique<Client>(ClientOptions{.servers = words.at("servers")});
    Result<std::unique_ptr<LocalGenerator>> opened = client_->OpenGenerator(
        {.name = words.at("name"),
         .ahead = Milliseconds(std::stoi(words.at("ahead_ms"))),
         .on_lost = [this](const LeaseLoss&) { ++lost_; },
         .on_failure = [name = words.at("name")](const Status& why) { Log(name, why); }},
        Milliseconds(std::stoi(words.at("timeout_ms"))));
    if (!opened.ok()) return {{"failure", opened.status().message()}};
    generator_ = *std::move(opened);
    file_ = words.at("file");
    for (int i = 0; i < std::stoi(words.at("threads")); ++i) {
      threads_.emplace_back([this, file = file_ + "." + std::to_string(i)](
                                const std::stop_token& stop) { Issue(file, stop); });
    }
    return Json::object();
  }

  // Takes ids until `stop`, and writes them to a file.
  void Issue(const std::string& file, const std::stop_token& stop) {
    std::ofstream out(file);
    while (!stop.stop_requested()) {
      for (int i = 0; i < kPass; ++i) {
        const Result<int64_t> id = generator_->Next();
        if (!id.ok()) {
          NoteFailure(id.status());
          break;
        }
        out << *id << "\n";
        ++ids_;
      }
      out.flush();
      SleepFor(kPause);
    }
  }

  void NoteFailure(const Status& why) {
    ++failed_;
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = why.message();
  }

  Json SoFar() {
    const std::optional<MachineId> machine = generator_->machine_id();
    const std::lock_guard lock(mutex_);
    return {{"ids", ids_.load()},
            {"failed", failed_.load()},
            {"failure", std::exchange(failure_, "")},
            {"machine_id", machine ? Json(machine->value()) : Json()},
            {"until_ms", generator_->until().value_or(WallMs(0)).ms()},
            {"lost", lost_.load()}};
  }

  Json Burst(int count) {
    std::vector<int64_t> taken;
    std::string failure;
    const auto began = SystemClock().Boot();
    while (static_cast<int>(taken.size()) < count && failure.empty()) {
      const Result<int64_t> id = generator_->Next();
      id.ok() ? taken.push_back(*id) : void(failure = id.status().message());
    }
    const int64_t took = (SystemClock().Boot() - began).count();
    std::ofstream out(file_ + ".burst");
    for (const int64_t id : taken) out << id << "\n";
    return {{"ids", taken.size()}, {"took_ms", took}, {"failure", failure}};
  }

  // Stops the threads first: no thread may be in a call when a generator is destroyed, or make one
  // later.
  Json Close() {
    threads_.clear();
    generator_.reset();
    client_.reset();
    return {{"ids", ids_.load()}, {"failed", failed_.load()}, {"after_close", "destroyed"}};
  }

  std::atomic<int64_t> ids_ = 0, failed_ = 0, lost_ = 0;
  std::mutex mutex_;
  std::string failure_;  // the first failure since the last so_far; under mutex_
  std::string file_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<LocalGenerator> generator_;
  std::vector<std::jthread> threads_;
};

int Main() {
  Driver driver;
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    std::string verb;
    line >> verb;
    Words words;
    for (std::string word; line >> word;) {
      const size_t mark = word.find('=');
      words[word.substr(0, mark)] = word.substr(mark + 1);
    }
    std::cout << JsonText(driver.Do(verb, words)) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace firn

int main() { return firn::Main(); }
