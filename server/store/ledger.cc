#include "server/store/ledger.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/log/log.h"
#include "common/time/entropy.h"
#include "registry/cluster/freeze.h"
#include "registry/cluster/slot.h"
#include "registry/cluster/tag_store.h"
#include "registry/seam/node_version.h"
#include "server/store/ledger_page.h"

namespace firn {
namespace {

constexpr int kRootIndex = 0;  // index in the answer to Read
constexpr int kNodeIndex = 1;
constexpr int kPauseBits = 4;  // 15 ms at most
constexpr Milliseconds kFreezeRetry{1'000};

// Depends on the session, so that servers that lost to the same writer retry at different times.
Milliseconds PauseAfter(int tries, int64_t session) {
  SeededEntropy dice(static_cast<uint64_t>(session) * 1'000 + static_cast<uint64_t>(tries));
  return Milliseconds(static_cast<int64_t>(dice.Below(uint64_t{1} << std::min(tries, kPauseBits))));
}

std::string Named(const std::string& tag) { return "the ledger of tag '" + tag + "'"; }

}  // namespace

Ledger::Ledger(Coordinator& coordinator, LedgerHooks hooks)
    : hooks_(std::move(hooks)), async_registry_(coordinator) {}

Ledger::~Ledger() = default;

void Ledger::Tick(BootMs now) {
  async_registry_.Tick(now);
  TellNews();
}

void Ledger::TellNews() {
  while (!calls_.empty()) {
    const auto call = std::move(calls_.front());
    calls_.pop_front();
    call();
  }
}

// --- the verbs -----------------------------------------------------------------------------------

void Ledger::Begin(const TagDefinition& tag, BeginDone done) {
  Where(tag, [done = std::move(done)](const Result<LedgerPlace>& place) {
    done(place.ok() ? Result<int64_t>(place->begin) : place.status());
  });
}

void Ledger::Where(const TagDefinition& tag, PlaceDone done) {
  Queue(tag.name, WhereErrand(tag, std::move(done)));
}

void Ledger::WhereNow(const TagDefinition& tag, PlaceDone done) {
  Errand errand = WhereErrand(tag, std::move(done));
  errand.reread = true;
  Queue(tag.name, std::move(errand));
}

// The errand returns its result as a range, from the end of the store's own ranges to the begin of
// the next range.
Ledger::Errand Ledger::WhereErrand(const TagDefinition& tag, PlaceDone done) {
  return {.kind = Errand::Kind::kBegin,
          .form = FormOf(tag),
          .store = tag.store,
          .done = [done = std::move(done), &page = PageOf(tag.name)](const Result<Range>& known) {
            if (!known.ok()) return done(known.status());
            done(LedgerPlace{
                .cluster = page.cluster.value_or(""), .begin = known->end, .picked = known->begin});
          }};
}

void Ledger::Cover(const TagDefinition& tag, Range range, StatusDone done) {
  const bool owned = tag.when_store_is_away == StoreAway::kLedger;
  Queue(tag.name,
        {.kind = Errand::Kind::kCover,
         .form = FormOf(tag),
         .store = owned ? tag.store : "",
         .range = range,
         .done = [done = std::move(done)](const Result<Range>& taken) { done(taken.status()); }});
}

void Ledger::Extend(const TagDefinition& tag, int64_t size, RangeDone done) {
  const auto follow = [size](const TagDefinition& now) { return RangeAfter(now, size); };
  Extend(tag, follow, std::move(done));
}

void Ledger::Extend(const TagDefinition& tag, Pick pick, RangeDone done) {
  Queue(tag.name, {.kind = Errand::Kind::kExtend,
                   .form = FormOf(tag),
                   .pick = std::move(pick),
                   .done = std::move(done)});
}

void Ledger::ExtendForStore(const TagDefinition& tag, int64_t size, WallMs now, RangeDone done) {
  Queue(tag.name, {.kind = Errand::Kind::kStandIn,
                   .form = FormOf(tag),
                   .store = tag.store,
                   .now = now,
                   .pick = [size](const TagDefinition& read) { return RangeAfter(read, size); },
                   .done = std::move(done)});
}

void Ledger::GiveBack(const std::string& tag, Range tail, StatusDone done) {
  Queue(tag,
        {.kind = Errand::Kind::kGiveBack,
         .range = tail,
         .done = [done = std::move(done)](const Result<Range>& given) { done(given.status()); }});
}

void Ledger::Saw(const std::string& tag, const std::optional<TagNode>& node) {
  const auto found = pages_.find(tag);
  const bool known = found != pages_.end() && found->second->seen;
  if (!node && !known) return;
  Page& page = PageOf(tag);
  if (node && page.Fits(*node)) return See(page, *node);
  page.known.reset();
  const bool looks = std::any_of(page.errands.begin(), page.errands.end(),
                                 [](const Errand& one) { return one.kind == Errand::Kind::kRead; });
  if (!looks) Queue(tag, {.kind = Errand::Kind::kRead, .done = [](const Result<Range>&) {}});
}

void Ledger::Remember(const std::string& tag, const TagNode& node) {
  Page& page = PageOf(tag);
  if (page.Fits(node)) page.See(node);
}

void Ledger::See(Page& page, const TagNode& node) {
  page.See(node);
  news_[page.tag] = page.seen->high;
  ledgers_[page.tag] = {node.tag.high, node.returned};
}

Ledger::Page& Ledger::PageOf(const std::string& tag) {
  auto& page = pages_[tag];
  if (page == nullptr) page = std::make_unique<Page>(Page{.tag = tag});
  return *page;
}

void Ledger::Queue(const std::string& tag, Errand errand) {
  Page& page = PageOf(tag);
  if (page.errands.size() == kQueueMax) {
    errand.done(Unavailable(Named(tag) + " has too many requests waiting"));
    return;
  }
  page.errands.push_back(std::move(errand));
  if (page.work.busy()) return;
  page.work = Work(&page);
  async_registry_.Start(page.work);
  TellNews();
}

// --- one verb ------------------------------------------------------------------------------------

// Runs the queued errands in order.
Task<> Ledger::Work(Page* page) {
  while (!page->errands.empty()) {
    const Errand* const errand = &page->errands.front();
    Result<Range> done = co_await Do(page, errand);
    // The cached node may be older than the cause of this failure, so the next errand re-reads it.
    if (!done.ok()) page->known.reset();
    calls_.push_back([tell = std::move(page->errands.front().done), done] { tell(done); });
    page->errands.pop_front();
  }
}

Task<Result<Range>> Ledger::Do(Page* page, const Errand* errand) {
  if (errand->reread) page->known.reset();
  for (int tries = 1; tries <= kTriesMax; ++tries) {
    Status read = co_await Read(page);
    if (!read.ok()) co_return read;
    Result<Move> move = Decide(*page, *errand);
    if (!move.ok()) co_return move.status();
    if (!move->node) co_return move->range;
    const Result<std::string> data = WriteTagNode(*move->node);
    if (!data.ok()) co_return data.status();
    // A copy, because Saw may clear page->known while this waits for the answer.
    Known sent = *page->known;
    sent.node = *std::move(move->node);
    std::vector<Write> writes{Write::Check(kMetaPath, sent.root_version)};
    const size_t set = AddSet(writes, TagPath(page->tag), *data, sent.version);
    writes.push_back(EraCheck(sent.era));
    Written written = co_await async_registry_.Multi(writes);
    switch (written.fate) {
      case Written::Fate::kDone:
        co_return Moved(*page, std::move(sent), written.stats.at(set), move->range);
      case Written::Fate::kUnknown:  // rule 3
      case Written::Fate::kNotSent:
        co_return written.status.WithContext(Named(page->tag));
      case Written::Fate::kRefused:
        if (written.status.code() == Code::kDenied) {
          co_return written.status.WithContext(Named(page->tag));
        }
        break;
    }
    // Nothing was written: another server has changed the root or the node (rule 4).
    page->known.reset();
    const BootMs later = async_registry_.now() + PauseAfter(tries, sent.session);
    co_await async_registry_.Until(later);
  }
  co_return Unavailable(Named(page->tag) + " changed during every attempt; try again");
}

// Reads root and node, unless they have been read in this session.
Task<Status> Ledger::Read(Page* page) {
  if (page->known && page->known->session != async_registry_.session())
    page->known.reset();  // rule 5
  const std::vector<std::string> paths{kMetaPath, TagPath(page->tag)};
  while (!page->known) {
    page->overtaken = false;
    Result<Nodes> nodes = co_await async_registry_.ReadSynced(paths);
    if (!nodes.ok()) co_return nodes.status().WithContext("reading " + Named(page->tag));
    // A newer state of the node was seen meanwhile, so this reading does not prove a loss: read
    // again.
    if (page->overtaken && !page->Fits((*nodes)[kNodeIndex])) continue;
    Status fine = Judge(*page, *nodes);
    if (!fine.ok()) co_return fine;
  }
  co_return Status();
}

// Applies rules 5 to 7 to a reading after a sync, and caches it if it passes.
Status Ledger::Judge(Page& page, const Nodes& nodes) {
  const std::optional<Node>& root = nodes[kRootIndex];
  const std::optional<Node>& node = nodes[kNodeIndex];
  if (!root) {
    if (page.seen) return Lost(page, {}, "the cluster's root node is missing");
    return NotFound(Named(page.tag) + ": the cluster's root node is missing");
  }
  Result<ClusterMeta> meta = ParseMeta(root->data);
  if (!meta.ok()) return meta.status().WithContext("the cluster's root node");
  if (root->stat.version == kUnguardedVersion) {
    return Unavailable(UnguardedVersionFault("the cluster's root node"));
  }
  if (!node) {
    if (page.seen) return Lost(page, EraToFreeze(*meta), "its node is missing");
    return NotFound(Named(page.tag) + ": its node is missing");
  }
  if (page.cluster.value_or(meta->uuid) != meta->uuid) {
    return Lost(page, EraToFreeze(*meta),
                "the registry holds cluster " + meta->uuid + " instead of " + *page.cluster);
  }
  FIRN_TRY(JudgeNode(page, *meta, *node));
  if (meta->frozen) {
    page.known.reset();
    return Unavailable(AskForRestore("the cluster is frozen: " + meta->reason));
  }
  page.cluster = std::move(meta->uuid);
  page.known->root_version = root->stat.version;
  page.known->era = meta->era;
  page.known->limit = LimitOf(*meta);
  return {};
}

Status Ledger::JudgeNode(Page& page, const ClusterMeta& meta, const Node& node) {
  if (node.stat.version == kUnguardedVersion) {
    return Unavailable(UnguardedVersionFault("the node of tag '" + page.tag + "'"));
  }
  auto read = ReadTagNode(page.tag, node.data);
  if (!read.ok()) return read.status().WithContext(Named(page.tag));
  if (!page.Fits(*read)) {
    return Lost(page, EraToFreeze(meta),
                Cat("it is at ", read->tag.high, " and was at ", page.seen->high));
  }
  See(page, *read);
  page.known = Known{.node = *std::move(read),
                     .version = node.stat.version,
                     .created_zxid = node.stat.created_zxid,
                     .session = async_registry_.session()};
  return {};
}

Result<Ledger::Move> Ledger::Decide(const Page& page, const Errand& errand) {
  using Kind = Errand::Kind;
  if (errand.kind == Kind::kRead) return Move{};
  TagNode node = page.known->node;
  Range range = errand.range;
  if (errand.kind == Kind::kGiveBack) {
    if (range.empty() || node.tag.high != range.end || node.returned > kRangeEnd - range.size()) {
      return Conflict(Named(page.tag) + " has moved beyond the tail");
    }
    node.tag.high = range.begin;
    node.returned += range.size();
    return Move{range, std::move(node)};
  }
  FIRN_TRY(Refusal(page, errand.form));
  const int64_t begin = node.tag.NextBegin();
  FIRN_TRY(CheckNumbersLeft(node.tag, std::max(begin, range.begin)).WithContext(Named(page.tag)));
  StandIn& stand_in = node.stand_in;
  if (errand.kind == Kind::kBegin) {
    FIRN_TRY(page.known->limit.CheckEnd(begin).WithContext(Named(page.tag)));  // rule 10
    const bool known = stand_in.store == errand.store && stand_in.since != WallMs();
    return Move{{known ? std::min(stand_in.picked, begin) : begin, begin}};
  }
  if (errand.kind == Kind::kCover) {
    if (range.empty() || range.begin < begin) {
      return Conflict(
          Cat(Named(page.tag), " is at ", begin, ", beyond the range from ", range.begin));
    }
    if (StandsInFor(node.tag, errand.store))
      stand_in = {.store = errand.store, .picked = range.end};
  } else {
    if (errand.kind == Kind::kStandIn) FIRN_TRY(MayStandIn(node, errand.store));
    FIRN_ASSIGN(range, errand.pick(node.tag));
    if (range.empty() || range.begin < begin) return Conflict("the range begins below the ledger");
    if (errand.kind == Kind::kStandIn && stand_in.since == WallMs()) stand_in.since = errand.now;
  }
  FIRN_TRY(page.known->limit.CheckEnd(range.end).WithContext(Named(page.tag)));
  node.tag.high = range.end;
  return Move{range, std::move(node)};
}

Status Ledger::MayStandIn(const TagNode& node, const std::string& store) {
  if (!StandsInFor(node.tag, store)) {
    return Unavailable("the tag no longer permits ranges from the ledger instead");
  }
  if (node.stand_in.store == store) return {};
  return Unavailable(
      "the ledger replaces a store only after the store has given a first range of a counter that "
      "belongs to this cluster alone");
}

// Applies rules 7 and 8 to the node. Returns the reason if this form may not take a range.
Status Ledger::Refusal(const Page& page, const std::string& form) {
  const TagDefinition& tag = page.known->node.tag;
  const bool deleted = page.known->node.deleted;
  if (deleted || form != FormOf(tag)) {
    if (hooks_.redefined) calls_.push_back([this, &page] { hooks_.redefined(page.tag); });
    if (deleted) return NotFound("tag '" + page.tag + "' was deleted");
    return Invalid("tag '" + page.tag + "' was redefined; its definition is being read again");
  }
  if (!tag.HasLedger()) return Invalid("tag '" + page.tag + "' has no ledger");
  return tag.disabled ? Denied("tag '" + page.tag + "' is disabled") : Status();
}

// Applies rule 2 to a successful set. `sent` is the state when it was sent, with the node that was
// written.
Result<Range> Ledger::Moved(Page& page, Known sent, const NodeStat& stat, Range range) {
  const bool doubted = !std::exchange(page.known, std::nullopt).has_value();
  if (!Follows(sent.version, stat.version) || stat.created_zxid != sent.created_zxid) {
    return Lost(page, sent.era, "the node that was set is another creation");
  }
  See(page, sent.node);
  sent.version = stat.version;
  if (!doubted) page.known = std::move(sent);
  return range;
}

// --- a loss --------------------------------------------------------------------------------------

// `era` is the era of the data that prove the loss; empty if there is no cluster to freeze, or if
// it is frozen.
Status Ledger::Lost(Page& page, const std::optional<Nonce>& era, const std::string& why) {
  const std::string sentence = LedgerWentBack(page.tag, why);
  LogError("ledger_lost").With("tag", page.tag) << sentence;
  page.known.reset();
  if (hooks_.stop) calls_.push_back([this, &page, sentence] { hooks_.stop(page.tag, sentence); });
  if (era) calls_.push_back([this, era = *era, sentence] { BeginFreeze(era, sentence); });
  return Corrupt(sentence);
}

// Does nothing if a freeze of the same era is in progress; replaces any other freeze.
void Ledger::BeginFreeze(const Nonce& era, std::string why) {
  if (freeze_.busy() && freezing_ == era) return;
  freezing_ = era;
  freeze_ = FreezeOut(era, std::move(why));
  async_registry_.Start(freeze_);
}

// Retries until the cluster is frozen or has another era: `firn restore` and the creation of a new
// cluster begin a new era.
Task<> Ledger::FreezeOut(Nonce era, std::string why) {
  const FreezeOrder order{why, [era](const ClusterMeta& meta) { return meta.era != era; }};
  for (;;) {
    const BootMs again = async_registry_.now() + kFreezeRetry;
    Result<Freeze> frozen = co_await TryToFreeze(&async_registry_, order);
    if (frozen.code() == Code::kCorrupt) {
      LogError("cluster_frozen") << "the cluster cannot be frozen: its root node is unreadable: "
                                 << frozen.status();
    }
    if (frozen.ok() && *frozen != Freeze::kNotYet) {
      if (*frozen == Freeze::kDone) LogError("cluster_frozen") << "the cluster is frozen: " << why;
      co_return;
    }
    co_await async_registry_.Until(again);
  }
}

}  // namespace firn
