#include "server/operator_setting.h"

#include <utility>
#include <vector>

#include "common/base/url_encoding.h"
#include "common/log/log.h"
#include "registry/seam/node_version.h"
#include "registry/seam/requests.h"

namespace firn {

OperatorSetting::OperatorSetting(Coordinator& coordinator, Entropy& entropy,
                                 std::string_view address)
    : coordinator_(coordinator),
      entropy_(entropy),
      address_(address),
      path_(ChildPath(kConfiguratorsPath, address)),
      folder_(coordinator, entropy, std::string(kConfiguratorsPath), [this] { OnFolder(); }) {}

void OperatorSetting::Set(bool offline) {
  const std::scoped_lock lock(mutex_);
  pending_ = offline;
  offline_ = offline;
}

bool OperatorSetting::offline() const {
  const std::scoped_lock lock(mutex_);
  return offline_;
}

int OperatorSetting::weight() const {
  const std::scoped_lock lock(mutex_);
  return weight_;
}

bool OperatorSetting::known() const {
  const std::scoped_lock lock(mutex_);
  return known_;
}

const Node* OperatorSetting::StoredNode() const {
  for (const auto& [name, node] : folder_.nodes()) {
    if (UrlDecode(name).value_or("") == address_) return &node;
  }
  return nullptr;
}

void OperatorSetting::OnFolder() {
  const Node* node = StoredNode();
  const bool seen =
      written_version_ && node != nullptr && !IsOlder(node->stat.version, *written_version_);
  if (seen) written_version_.reset();
  Configurator stored;
  if (node != nullptr) {
    const auto read = ParseConfigurator(node->data);
    if (!read.ok()) {
      LogWarning("setting_unreadable").With("path", path_) << path_ << ": " << read.status();
    }
    stored = read.value_or({});
  }
  const std::scoped_lock lock(mutex_);
  if (seen && pending_ == sent_) pending_.reset();
  known_ = true;
  weight_ = stored.weight;
  if (pending_ || offline_ == stored.disabled) return;
  offline_ = stored.disabled;
  LogInfo("offline_changed").With("offline", offline_ ? 1 : 0)
      << "the registry has this server " << (offline_ ? "offline" : "online");
}

void OperatorSetting::Tick(BootMs now) {
  now_ = now;
  folder_.Tick(now);
  if (busy_ || now < not_before_ || coordinator_.session() == 0 || !folder_.whole()) return;
  if (written_version_ && now - written_at_ < kSeenWithin) return;
  std::optional<bool> pending;
  {
    const std::scoped_lock lock(mutex_);
    if (written_version_ && pending_ == sent_) pending_.reset();
    pending = pending_;
  }
  written_version_.reset();
  if (pending) Send(*pending);
}

void OperatorSetting::Send(bool offline) {
  const Node* node = StoredNode();
  Configurator wanted;
  if (node != nullptr) wanted = ParseConfigurator(node->data).value_or({});
  if (wanted.disabled == offline) {
    const std::scoped_lock lock(mutex_);
    if (pending_ == offline) pending_.reset();
    return;
  }
  wanted.disabled = offline;
  busy_ = true;
  sent_ = offline;
  const std::string data = FormatConfigurator(wanted);
  std::vector<Write> writes;
  if (node == nullptr) {
    writes.push_back(Write::Create(path_, data, Lifetime::kPersistent));
  } else {
    AddSet(writes, path_, data, node->stat.version);
  }
  coordinator_.Multi(std::move(writes),
                     guard_.Bind([this](const WriteOutcome& outcome) { OnWritten(outcome); }));
}

void OperatorSetting::OnWritten(const WriteOutcome& outcome) {
  busy_ = false;
  if (outcome.status.ok()) {
    written_version_ = outcome.stats.back().version;
    written_at_ = now_;
    return;
  }
  if (outcome.status.code() != Code::kNotFound) return RetrySoon();
  busy_ = true;
  EnsureParents(coordinator_, path_, guard_.Bind([this](const Status& status) {
    busy_ = false;
    if (!status.ok()) RetrySoon();
  }));
}

void OperatorSetting::RetrySoon() {
  not_before_ = now_ + Milliseconds(static_cast<int64_t>(entropy_.Below(kRetryMax.count())));
}

}  // namespace firn
