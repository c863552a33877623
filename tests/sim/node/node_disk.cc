#include "tests/sim/node/node_disk.h"

#include <algorithm>
#include <utility>

#include "registry/claim/claim_options.h"
#include "registry/state/hint.h"
#include "tests/sim/violation.h"

namespace firn {

void NodeDisk::MakeNew() {
  grant.assign(StateFolder::kGrantBytes, ' ');
  older.fill({});
  writes = 0;
  Changed();
}

void NodeDisk::WriteTags() {
  for (const auto& write : std::exchange(tag_writes, {})) write();
}

std::optional<Grant> NodeDisk::GoesOnIn(BootMs boot) {
  if (no_grant || !hint) return std::nullopt;
  const bool dead = false;
  NodeFolder folder(*this, dead, NodeMutant::kNone);
  const Result<GrantFile::Found> found = GrantFile(folder).Read();
  const Result<Hint> known = ParseHint(*hint);
  if (!found.ok() || !known.ok() || found->damaged || found->identity != identity) return {};
  const Grant& permits = found->grant;
  const bool good = known->uuid == permits.uuid && permits.limit < permits.bound &&
                    permits.clocks.Tells(boot, kOnlyTimeNamespace);
  return good ? std::optional(permits) : std::nullopt;
}

void NodeDisk::BringBack(size_t writes_ago) {
  if (writes_ago == 0 || writes_ago > std::min(writes, older.size())) return;
  const std::string& then = older[(writes - writes_ago) % older.size()];
  bool tells = false;
  static_cast<void>(RewriteGrant(then, [&](const GrantRecord& record) {
    tells |= record.identity.boot_id == identity.boot_id &&
             record.identity.file.SameAcrossMounts(identity.file);
  }));
  if (!tells) return;
  grant = then;
  Changed();
}

NodeFolder::NodeFolder(NodeDisk& disk, const bool& dead, NodeMutant mutant)
    : disk_(disk), dead_(dead), mutant_(mutant), identity_(disk.identity) {
  if (mutant_ == NodeMutant::kMountIsAnotherFile) identity_.file.born_ns += identity_.file.device;
  if (mutant_ != NodeMutant::kCopyTrusted) return;
  static_cast<void>(RewriteGrant(disk_.grant, [this](const GrantRecord& record) {
    if (!record.grant.nonce.zero()) identity_ = record.identity;
  }));
  identity_.boot_id = disk_.identity.boot_id;
}

Result<std::string> NodeFolder::ReadGrant() {
  if (mutant_ != NodeMutant::kPairUnheard) return disk_.grant;
  return RewriteGrant(disk_.grant,
                      [](GrantRecord& record) { record.grant.clocks.time_namespace = 0; });
}

Status NodeFolder::WriteGrant(size_t offset, std::string_view bytes, Durability) {
  if (dead_ || disk_.writes_fail) return Unavailable("no space on the disk");
  const bool dies = disk_.dies_in > 0 && --disk_.dies_in == 0;
  using Death = SimStateFolder::Death;
  if (dies && disk_.death == Death::kBefore) throw ProcessDies();
  if (dies && disk_.death == Death::kMidst) {
    Put(offset, bytes.substr(0, bytes.size() / 3));
    throw ProcessDies();
  }
  Put(offset, bytes);
  if (dies) throw ProcessDies();
  return {};
}

void NodeFolder::Put(size_t offset, std::string_view bytes) {
  disk_.older[disk_.writes++ % disk_.older.size()] = disk_.grant;
  disk_.grant.replace(offset, bytes.size(), bytes);
  disk_.Changed();
}

Status NodeFolder::RemoveGrant() {
  if (dead_ || disk_.removal_fails) return Denied("the disk is read-only");
  disk_.MakeNew();
  ++disk_.identity.file.inode;
  return {};
}

Result<std::string> NodeFolder::ReadHint() {
  const bool forgets = mutant_ == NodeMutant::kHintForgotten;
  if (forgets || !disk_.hint.has_value()) return NotFound("no hint");
  if (mutant_ != NodeMutant::kPutBackIgnored) return *disk_.hint;
  Result<Hint> hint = ParseHint(*disk_.hint);
  if (!hint.ok()) return *disk_.hint;
  hint->era = Nonce();
  return FormatHint(*hint);
}

void NodeFolder::KeepHint(std::string text) {
  if (!dead_ && !disk_.writes_fail) disk_.hint = std::move(text);
}

void NodeMemory::Read(const std::string& uuid, Loaded done) {
  disk_.tag_writes.emplace_back(
      [this, uuid, done] { control_([done, kept = ReadNow(uuid)] { done(kept); }); });
}

Result<KnownTags> NodeMemory::ReadNow(const std::string& uuid) const {
  const auto text = disk_.tags.find(uuid);
  if (text == disk_.tags.end()) return NotFound("nothing kept");
  Result<KnownTags> known = ParseKnownTags(uuid, text->second);
  if (!known.ok()) return known;
  for (auto& [name, tag] : known->tags) {
    TagNode& node = tag.node;
    if (mutant_ == NodeMutant::kFormNotKept) node.tag.text.clear();
    if (mutant_ != NodeMutant::kPutBackIgnored) continue;
    node.tag.high = std::min<int64_t>(node.tag.high, 1);
    node.returned = 0;
  }
  return known;
}

void NodeMemory::Keep(const std::string& uuid, const KnownTags& tags, Kept done) {
  disk_.tag_writes.emplace_back([this, uuid, text = FormatKnownTags(uuid, tags), done] {
    const bool kept = !disk_.writes_fail;
    disk_.tags.erase(uuid);
    if (kept) disk_.tags[uuid] = text;
    const bool told = kept || mutant_ == NodeMutant::kFullDiskUntold;
    control_([done, told] { done(told ? Status() : Unavailable("no space on the disk")); });
  });
}

}  // namespace firn
