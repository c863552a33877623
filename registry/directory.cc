#include "registry/directory.h"

#include <algorithm>
#include <utility>

#include "common/url_encoding.h"

namespace firn {

Directory::Directory(Coordinator& coordinator, Entropy& entropy, Told told)
    : coordinator_(coordinator), entropy_(entropy), told_(std::move(told)) {
  providers_.path = kProvidersPath;
  configurators_.path = kConfiguratorsPath;
}

void Directory::Tick(BootMs now) {
  now_ = now;
  const bool new_session = coordinator_.session() != session_;
  session_ = coordinator_.session();
  if (session_ == 0 || in_flight_ > 0) return;
  if (new_session || now >= reread_at_) {
    for (Folder* folder : {&providers_, &configurators_}) {
      folder->stale = true;
      for (auto& [name, child] : folder->children) child.stale = true;
    }
    refresh_at_ = now;
    const auto spread = static_cast<uint64_t>(kRereadMin.count());
    reread_at_ = now + kRereadMin + Milliseconds(static_cast<int64_t>(entropy_.Below(spread)));
  }
  if (now < refresh_at_) return;
  Refresh(providers_);
  Refresh(configurators_);
}

void Directory::Refresh(Folder& folder) {
  if (folder.stale) {
    folder.stale = false;
    ++in_flight_;
    coordinator_.List(folder.path,
                      guard_.Bind([this, &folder](const Result<std::vector<std::string>>& names) {
                        OnListed(folder, names);
                      }),
                      guard_.Bind([this, &folder] { MarkStale(folder.stale); }));
    return;  // the children follow the list
  }
  for (auto& [name, child] : folder.children) {
    if (child.stale) ReadChild(folder, name);
  }
}

void Directory::OnListed(Folder& folder, const Result<std::vector<std::string>>& names) {
  --in_flight_;
  if (names.code() == Code::kNotFound) {
    folder.children.clear();
    folder.listed = true;
    return TellIfComplete();
  }
  if (!names.ok()) return FailedRead(folder.stale);
  folder.listed = true;
  std::erase_if(folder.children, [&](const auto& child) {
    return !std::binary_search(names->begin(), names->end(), child.first);
  });
  for (const std::string& name : *names) {
    if (folder.children.size() >= kServersMax) break;
    folder.children.try_emplace(name);
  }
  for (auto& [name, child] : folder.children) {
    if (child.stale) ReadChild(folder, name);
  }
  TellIfComplete();
}

void Directory::ReadChild(Folder& folder, const std::string& name) {
  folder.children[name].stale = false;
  ++in_flight_;
  coordinator_.Read(
      folder.path + "/" + name,
      guard_.Bind([this, &folder, name](const Result<Node>& node) { OnRead(folder, name, node); }),
      guard_.Bind([this, &folder, name] {
        const auto child = folder.children.find(name);
        if (child != folder.children.end()) MarkStale(child->second.stale);
      }));
}

void Directory::OnRead(Folder& folder, const std::string& name, const Result<Node>& node) {
  --in_flight_;
  const auto child = folder.children.find(name);
  if (child == folder.children.end()) return TellIfComplete();
  if (node.ok()) {
    child->second.data = node->data;
    child->second.known = true;
  } else if (node.code() == Code::kNotFound) {
    folder.children.erase(child);  // gone since the list was read
  } else {
    FailedRead(child->second.stale);
  }
  TellIfComplete();
}

void Directory::MarkStale(bool& stale) {
  stale = true;
  refresh_at_ = std::max(refresh_at_, now_ + kMerge);
}

void Directory::FailedRead(bool& stale) {
  stale = true;
  refresh_at_ = now_ + 10 * kMerge;
}

bool Directory::Complete() const {
  const auto complete = [](const Folder& folder) {
    return folder.listed && std::all_of(folder.children.begin(), folder.children.end(),
                                        [](const auto& child) { return child.second.known; });
  };
  return in_flight_ == 0 && complete(providers_) && complete(configurators_);
}

void Directory::TellIfComplete() {
  if (!Complete()) return;
  DirectorySnapshot snapshot = Build();
  if (snapshot == last_told_) return;
  last_told_ = std::move(snapshot);
  told_(*last_told_);
}

DirectorySnapshot Directory::Build() const {
  DirectorySnapshot snapshot;
  const auto skip = [&](const std::string& path, const Status& why) {
    snapshot.skipped.push_back(why.WithContext(path).message());
  };
  std::map<std::string, Configurator> said;
  for (const auto& [name, child] : configurators_.children) {
    const auto configurator = ParseConfigurator(child.data);
    const auto address = UrlDecode(name);
    if (configurator.ok() && address.ok()) {
      said[*address] = *configurator;
    } else {
      skip(configurators_.path + "/" + name,
           configurator.ok() ? address.status() : configurator.status());
    }
  }
  for (const auto& [name, child] : providers_.children) {
    auto provider = ParseProviderNodeName(name);
    auto report = ParseReport(child.data);
    if (!provider.ok() || !report.ok()) {
      skip(providers_.path + "/" + name, provider.ok() ? report.status() : provider.status());
      continue;
    }
    const auto configurator = said.find(provider->address);
    snapshot.entries.push_back(
        {*std::move(provider), *std::move(report),
         configurator == said.end() ? Configurator{} : configurator->second});
  }
  std::sort(snapshot.entries.begin(), snapshot.entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) {
              return a.provider.address < b.provider.address;
            });
  return snapshot;
}

}  // namespace firn
