#include "server/store/ledger.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "common/base/cat.h"
#include "common/time/entropy.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/cluster/tag_store.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

constexpr int kRootIndex = 0;  // of what is read
constexpr int kNodeIndex = 1;
constexpr int kPauseBits = 4;  // 15 ms at most

// Those who lost to the same winner come back at different times: sessions differ.
Milliseconds PauseAfter(int tries, int64_t session) {
  SeededEntropy dice(static_cast<uint64_t>(session) * 1'000 + static_cast<uint64_t>(tries));
  return Milliseconds(static_cast<int64_t>(dice.Below(uint64_t{1} << std::min(tries, kPauseBits))));
}

std::string Named(const std::string& tag) { return "the ledger of tag '" + tag + "'"; }

}  // namespace

// One verb on its way.
struct Ledger::Errand {
  enum class Kind { kBegin, kCover, kExtend, kGiveBack, kLook };

  Kind kind = Kind::kLook;
  std::string form{};  // of the tag, for whoever takes
  Range range{};
  int64_t size = 0;
  std::function<void(const Status&, Range)> done{};
  int tries = 0;
};

// What a reading or a set says of a tag's node.
struct Ledger::Known {
  TagNode node;
  int64_t version = 0;       // V
  int64_t created_zxid = 0;  // Z
  int64_t root_version = 0;  // M
  Nonce era{};               // of the data that were read
  int64_t session = 0;
};

// What is known of one tag's node, and what is to be done with it.
struct Ledger::Page {
  // What rule 6 compares a reading with.
  struct Seen {
    uint64_t sum = 0;  // high + returned, which never falls in one tree
    int64_t high = 0;  // the highest one: all that this server has used lies below
  };

  // Whether the node can be what this server saw before, or goes on above all of it, as one does
  // that was made anew after a loss.
  bool Fits(const TagNode& node) const {
    return !seen || node.ledger_sum() >= seen->sum || node.tag.NextBegin() >= seen->high;
  }
  // The same for a node as it was read: one that is no tag, or not there, does not fit.
  bool Fits(const std::optional<Node>& node) const {
    const auto read = node ? ReadTagNode(tag, node->data) : Result<TagNode>(NotFound("no node"));
    return read.ok() && Fits(read.value_or({}));
  }
  void See(const TagNode& node) {
    overtaken = true;
    seen = Seen{node.ledger_sum(), std::max(node.tag.high, seen ? seen->high : 0)};
  }

  std::string tag;
  std::deque<Errand> errands{};          // the first one is at work
  BootMs go_on_at{};                     // after having lost to others
  bool asked = false;                    // an answer of the registry is awaited
  bool overtaken = false;                // somebody has seen the node since it was asked for
  std::optional<Known> known{};          // empty: to be read
  std::optional<Seen> seen{};            // whoever read it
  std::optional<std::string> cluster{};  // uuid of the first reading
};

Ledger::Ledger(Coordinator& coordinator, LedgerHooks hooks)
    : coordinator_(coordinator), hooks_(std::move(hooks)), freeze_(coordinator) {}

Ledger::~Ledger() = default;

void Ledger::Tick(BootMs now) {
  now_ = now;
  mailbox_.Open();
  for (Page* page : std::exchange(waiting_, {})) GoOn(*page);
  freeze_.Tick(now);
}

void Ledger::Begin(const TagDefinition& tag, BeginDone done) {
  Queue(tag.name, {.kind = Errand::Kind::kBegin,
                   .form = FormOf(tag),
                   .done = [done = std::move(done)](const Status& status, Range range) {
                     done(status.ok() ? Result<int64_t>(range.begin) : Result<int64_t>(status));
                   }});
}

void Ledger::Where(const TagDefinition& tag, PlaceDone done) {
  Begin(tag, [done = std::move(done), &page = PageOf(tag.name)](const Result<int64_t>& begin) {
    if (!begin.ok()) return done(begin.status());
    done(LedgerPlace{.cluster = page.cluster.value_or(""), .begin = *begin});
  });
}

void Ledger::Cover(const TagDefinition& tag, Range range, StatusDone done) {
  Queue(tag.name,
        {.kind = Errand::Kind::kCover,
         .form = FormOf(tag),
         .range = range,
         .done = [done = std::move(done)](const Status& status, Range) { done(status); }});
}

void Ledger::Extend(const TagDefinition& tag, int64_t size, RangeDone done) {
  Queue(tag.name, {.kind = Errand::Kind::kExtend,
                   .form = FormOf(tag),
                   .size = size,
                   .done = [done = std::move(done)](const Status& status, Range range) {
                     done(status.ok() ? Result<Range>(range) : Result<Range>(status));
                   }});
}

void Ledger::GiveBack(const std::string& tag, Range tail, StatusDone done) {
  Queue(tag, {.kind = Errand::Kind::kGiveBack,
              .range = tail,
              .done = [done = std::move(done)](const Status& status, Range) { done(status); }});
}

void Ledger::Saw(const std::string& tag, const std::optional<TagNode>& node) {
  const auto found = pages_.find(tag);
  const bool known = found != pages_.end() && found->second->seen;
  if (!node && !known) return;
  Page& page = PageOf(tag);
  if (node && page.Fits(*node)) return See(page, *node);
  page.known.reset();
  const bool looks = std::any_of(page.errands.begin(), page.errands.end(),
                                 [](const Errand& one) { return one.kind == Errand::Kind::kLook; });
  if (!looks) Queue(tag, {.kind = Errand::Kind::kLook, .done = [](const Status&, Range) {}});
}

void Ledger::See(Page& page, const TagNode& node) {
  page.See(node);
  news_[page.tag] = page.seen->high;
}

Ledger::Page& Ledger::PageOf(const std::string& tag) {
  auto& page = pages_[tag];
  if (page == nullptr) page = std::make_unique<Page>(Page{.tag = tag});
  return *page;
}

void Ledger::Queue(const std::string& tag, Errand errand) {
  Page& page = PageOf(tag);
  if (page.errands.size() == kQueueMax) {
    errand.done(Unavailable(Named(tag) + " has too much to do"), {});
    return;
  }
  page.errands.push_back(std::move(errand));
  if (page.errands.size() == 1) GoOn(page);
}

// Does what can be done without waiting, up to the next question to the registry.
void Ledger::GoOn(Page& page) {
  while (!page.asked && !page.errands.empty()) {
    if (now_ < page.go_on_at) return waiting_.push_back(&page);
    const bool stale = page.known && page.known->session != coordinator_.session();
    if (stale) page.known.reset();
    if (!page.known) return Read(page);
    Decide(page);
  }
}

void Ledger::Read(Page& page) {
  page.asked = true;
  page.overtaken = false;
  ReadSynced(coordinator_, mailbox_, {kMetaPath, TagPath(page.tag)},
             [this, &page](Result<Nodes> n) {
               OnRead(page, n);
               GoOn(page);
             });
}

void Ledger::OnRead(Page& page, const Result<Nodes>& nodes) {
  page.asked = false;
  if (!nodes.ok()) return Answer(page, nodes.status().WithContext("reading " + Named(page.tag)));
  // Older than what was seen meanwhile, so nothing went back: it is read again.
  if (page.overtaken && !page.Fits((*nodes)[kNodeIndex])) return;
  const Status fine = Judge(page, *nodes);
  if (!fine.ok()) Answer(page, fine);
}

// Rules 5 to 7 for a reading after a sync; it is remembered when it is fine.
Status Ledger::Judge(Page& page, const Nodes& nodes) {
  const std::optional<Node>& root = nodes[kRootIndex];
  const std::optional<Node>& node = nodes[kNodeIndex];
  if (!root) {
    if (page.seen) return Lost(page, {}, "the cluster's root node has gone");
    return NotFound(Named(page.tag) + ": there is not the cluster's root node");
  }
  Result<ClusterMeta> meta = ParseMeta(root->data);
  if (!meta.ok()) return meta.status().WithContext("the cluster's root node");
  if (root->stat.version == kUnguardedVersion) {
    return Unavailable(RestsUnguarded("the cluster's root node"));
  }
  if (!node) {
    if (page.seen) return Lost(page, meta->era, "its node has gone");
    return NotFound(Named(page.tag) + ": there is not its node");
  }
  if (page.cluster.value_or(meta->uuid) != meta->uuid) {
    return Lost(page, meta->era,
                "the registry holds cluster " + meta->uuid + " instead of " + *page.cluster);
  }
  FIRN_TRY(JudgeNode(page, meta->era, *node));
  if (meta->frozen) {
    page.known.reset();
    return Unavailable("the cluster is frozen: " + meta->reason);
  }
  page.cluster = std::move(meta->uuid);
  page.known->root_version = root->stat.version;
  page.known->era = meta->era;
  return {};
}

Status Ledger::JudgeNode(Page& page, const Nonce& era, const Node& node) {
  if (node.stat.version == kUnguardedVersion) {
    return Unavailable(RestsUnguarded("the node of tag '" + page.tag + "'"));
  }
  auto read = ReadTagNode(page.tag, node.data);
  if (!read.ok()) return read.status().WithContext(Named(page.tag));
  if (!page.Fits(*read)) {
    return Lost(page, era, Cat("it is at ", read->tag.high, " and was at ", page.seen->high));
  }
  See(page, *read);
  page.known = Known{.node = *std::move(read),
                     .version = node.stat.version,
                     .created_zxid = node.stat.created_zxid,
                     .session = coordinator_.session()};
  return {};
}

// Answers the first errand, or sends what it has to write.
void Ledger::Decide(Page& page) {
  const Errand& errand = page.errands.front();
  TagNode node = page.known->node;
  const int64_t begin = node.tag.NextBegin();
  using Kind = Errand::Kind;
  if (errand.kind == Kind::kLook) return Answer(page, {});
  if (errand.kind == Kind::kGiveBack) {
    const Range tail = errand.range;
    if (tail.empty() || node.tag.high != tail.end || node.returned > kRangeEnd - tail.size()) {
      return Answer(page, Conflict(Named(page.tag) + " has moved beyond the tail"));
    }
    node.tag.high = tail.begin;
    node.returned += tail.size();
    return Set(page, std::move(node), tail);
  }
  if (IsRefused(page, node.tag)) return;
  if (errand.kind == Kind::kBegin) return Answer(page, {}, {begin, begin});
  Range range = errand.range;
  if (errand.kind == Kind::kExtend) {
    if (errand.size < 1) return Answer(page, Invalid("a range needs a size"));
    if (begin >= kRangeEnd) return Answer(page, Exhausted("there are no more numbers of 63 bits"));
    range = {begin, begin + std::min(errand.size, kRangeEnd - begin)};
  } else if (range.empty() || range.begin < begin) {
    return Answer(page, Conflict(Cat(Named(page.tag), " is at ", begin, ", beyond the range from ",
                                     range.begin)));
  }
  node.tag.high = range.end;
  Set(page, std::move(node), range);
}

// Rules 7 and 8 for a node as it is: answers the first errand when it may take nothing.
bool Ledger::IsRefused(Page& page, const TagDefinition& tag) {
  if (page.errands.front().form != FormOf(tag)) {
    if (hooks_.redefined) hooks_.redefined(page.tag);
    Answer(page, Invalid("tag '" + page.tag + "' has just been defined in another way"));
    return true;
  }
  if (tag.strategy != "segment") {
    Answer(page, Invalid("tag '" + page.tag + "' is no segment tag"));
    return true;
  }
  if (tag.disabled) Answer(page, Denied("tag '" + page.tag + "' is disabled"));
  return tag.disabled;
}

void Ledger::Set(Page& page, TagNode node, Range range) {
  const Result<std::string> data = WriteTagNode(node);
  if (!data.ok()) return Answer(page, data.status());
  page.asked = true;
  // Not left in the page: Saw may forget what is known while the answer is awaited.
  Known sent = *page.known;
  sent.node = std::move(node);
  std::vector<firn::Write> writes{firn::Write::Check(kMetaPath, sent.root_version)};
  const size_t set = AddSet(writes, TagPath(page.tag), *data, sent.version);
  writes.push_back(EraCheck(sent.era));
  coordinator_.Multi(std::move(writes), mailbox_.Expect<WriteOutcome>(
                                            [this, &page, sent, range, set](WriteOutcome told) {
                                              OnSet(page, sent, range, told, set);
                                              GoOn(page);
                                            }));
}

// `sent` is the page as it was when the set was sent, with the node that was to be written.
void Ledger::OnSet(Page& page, const Known& sent, Range range, const WriteOutcome& outcome,
                   size_t set) {
  page.asked = false;
  const bool doubted = !std::exchange(page.known, std::nullopt).has_value();
  const Status& status = outcome.status;
  if (status.ok()) {
    const NodeStat& stat = outcome.stats.at(set);
    if (!Follows(sent.version, stat.version) || stat.created_zxid != sent.created_zxid) {
      return Answer(page, Lost(page, sent.era, "the node that was set is another creation"));
    }
    See(page, sent.node);
    if (!doubted) {
      page.known = sent;
      page.known->version = stat.version;
    }
    return Answer(page, {}, range);
  }
  if (status.code() == Code::kUnknown || status.code() == Code::kDenied || outcome.failed < 0) {
    return Answer(page, status.WithContext(Named(page.tag)));
  }
  // Refused by the tree: nothing was done, and somebody else has changed the root or the node.
  Errand& errand = page.errands.front();
  if (++errand.tries == kTriesMax) {
    return Answer(page, Unavailable(Named(page.tag) + " is moved by others all the time"));
  }
  page.go_on_at = now_ + PauseAfter(errand.tries, sent.session);
}

// `era`: of the data that show it; without a root node there is nobody to be kept out.
Status Ledger::Lost(Page& page, const std::optional<Nonce>& era, const std::string& why) {
  const std::string sentence = Named(page.tag) + " was lost or went back: " + why;
  LOG(ERROR) << sentence;
  page.known.reset();
  if (era) freeze_.Begin(*era, sentence);
  if (hooks_.stop) hooks_.stop(page.tag, sentence);
  return Corrupt(sentence);
}

// The first errand is done. Whoever is told may ask for more at once.
void Ledger::Answer(Page& page, const Status& status, Range range) {
  // What is remembered may be older than the reason for this: look again the next time.
  if (!status.ok()) page.known.reset();
  const Errand errand = std::move(page.errands.front());
  page.errands.pop_front();
  errand.done(status, range);
}

}  // namespace firn
