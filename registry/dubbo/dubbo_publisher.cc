#include "registry/dubbo/dubbo_publisher.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/cat.h"

namespace firn {

DubboPublisher::DubboPublisher(Coordinator& coordinator, Entropy& entropy, DubboProvider provider,
                               std::vector<DubboInterface> interfaces)
    : entropy_(entropy),
      provider_(std::move(provider)),
      interfaces_(std::move(interfaces)),
      async_registry_(coordinator) {}

void DubboPublisher::Tick(BootMs now) {
  async_registry_.Tick(now);
  if (async_registry_.session() != session_) {
    session_ = async_registry_.session();
    look_ = replace_ = true;
    registered_ = false;
  }
  if (session_ == 0 || task_.busy()) return;
  task_ = DoDueWork();
  async_registry_.Start(task_);
}

Task<> DubboPublisher::DoDueWork() {
  const BootMs now = async_registry_.now();
  if (now - last_look_ >= kRecheckInterval || (wanted_ && !held_)) look_ = true;
  if (look_ && now >= not_before_) co_return co_await ReadNode();
  if (look_ || wanted_ == held_) co_return;
  const std::optional<int> wanted = wanted_;
  std::vector<Write> writes;
  if (wanted) {
    for (std::string& path : Names(*wanted)) {
      writes.push_back(Write::Create(std::move(path), "", Lifetime::kEphemeral));
    }
  }
  if (held_) {
    for (std::string& path : Names(*held_)) {
      writes.push_back(Write::Erase(std::move(path), Write::kAnyVersion));
    }
  }
  co_await Send(writes, wanted);
}

std::vector<std::string> DubboPublisher::Names(int weight) const {
  std::vector<std::string> paths;
  for (const DubboInterface& one : interfaces_) {
    paths.push_back(Cat(one.Folder("providers"), "/", DubboNodeName(provider_, one, weight)));
  }
  return paths;
}

// Lists the folders, and writes what differs from the wanted nodes.
Task<> DubboPublisher::ReadNode() {
  look_ = false;
  last_look_ = async_registry_.now();
  const std::optional<int> wanted = wanted_;
  std::vector<std::string> missing;
  if (wanted) missing = Names(*wanted);
  std::vector<Write> writes;
  for (const DubboInterface& one : interfaces_) {
    const std::string folder = one.Folder("providers");
    Result<std::vector<std::string>> names = co_await async_registry_.List(folder);
    if (!names.ok()) {
      if (names.code() == Code::kNotFound) {
        if (wanted) co_await MakeFolders();
        if (!wanted) continue;
      }
      co_return ReadAgainSoon();
    }
    for (const std::string& name : *names) {
      if (AddressOfDubboNode(name) != provider_.address) continue;
      std::string path = Cat(folder, "/", name);
      const auto found = std::find(missing.begin(), missing.end(), path);
      if (found != missing.end() && !replace_) {
        missing.erase(found);
      } else {
        writes.push_back(Write::Erase(std::move(path), Write::kAnyVersion));
      }
    }
  }
  for (std::string& path : missing) {
    writes.push_back(Write::Create(std::move(path), "", Lifetime::kEphemeral));
  }
  if (!writes.empty()) co_return co_await Send(writes, wanted);
  Hold(wanted);
}

Task<> DubboPublisher::Send(std::vector<Write> writes, std::optional<int> weight) {
  if (weight) announced_ = true;
  const int64_t session = session_;
  const Written written = co_await async_registry_.Multi(writes);
  if (written.fate != Written::Fate::kDone || session != async_registry_.session()) {
    co_return ReadAgainSoon();
  }
  Hold(weight);
}

void DubboPublisher::Hold(std::optional<int> weight) {
  held_ = weight;
  replace_ = false;
  announced_ = registered_ = held_.has_value();
}

// The next listing shows whether they were created.
Task<> DubboPublisher::MakeFolders() {
  constexpr std::array<std::string_view, 4> kFolders{"providers", "configurators", "routers",
                                                     "consumers"};
  std::vector<std::string> paths{std::string(kDubboRoot)};
  for (const DubboInterface& one : interfaces_) {
    paths.push_back(Cat(kDubboRoot, "/", one.name));
    for (const std::string_view folder : kFolders) paths.push_back(one.Folder(folder));
  }
  for (std::string& path : paths) {
    const std::vector<Write> writes{Write::Create(std::move(path), "", Lifetime::kPersistent)};
    co_await async_registry_.Multi(writes);
  }
}

void DubboPublisher::ReadAgainSoon() {
  look_ = true;
  const auto pause_ms = static_cast<int64_t>(entropy_.Below(kRetryMax.count()));
  not_before_ = async_registry_.now() + Milliseconds(pause_ms);
}

}  // namespace firn
