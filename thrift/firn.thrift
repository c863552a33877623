// The wire contract of Firn: everything that a client may ask of a server, and every answer.
//
// Rules that keep old clients and new servers talking:
//   1. A field number, an enum value or a method name is never reused and never changes meaning.
//   2. Nothing is `required`. A field that is absent means what its comment says.
//   3. A field marked `optional` may be absent on purpose; every other field of an answer is set.
//   4. A new field or method is one that an older peer may ignore.
//
// An id is an i64, and greater than 0. JavaScript numbers are exact only up to 2^53: generated Node
// code hands out node-int64 objects, getText hands out text, and ids of the layout js-safe fit.
//
// Times are UTC. `_ms` counts milliseconds since 1970-01-01T00:00:00Z; ticks count a layout's own
// time units since its own epoch.

namespace cpp firn.wire
namespace java io.firn.wire
namespace py firn.wire
namespace js firn.wire

// ---- refusals ---------------------------------------------------------------------------------

// Why a server refused a call. It tells a program what to do; the message gives the details.
enum Reason {
  BAD_REQUEST = 1,   // the request is invalid; every server will refuse it
  UNKNOWN_TAG = 2,   // the cluster has no such tag; the message names the known ones that come near
  NOT_READY = 3,     // this server cannot issue these ids yet, or no longer: it holds no machine id
  CLOCK = 4,         // this server's clock is behind its latest id, or is wrong
  OVERLOADED = 5,    // more was requested than this server can issue now
  EXHAUSTED = 6,     // no more ids of this kind exist, and a retry will not change that
  DRAINING = 7,      // this server is shutting down
  REJECTED = 8,      // a rule of the tag forbids it, such as its rate limit
  STORE_DOWN = 9,    // the store of the tag's ranges does not respond, and no numbers are in memory
  INTERNAL = 10      // a defect of the server; its log has the details
}

// A refused call. It has issued nothing: a call returns all of its ids or none.
exception Refusal {
  1: Reason reason,
  2: string message,                  // one sentence, for a person
  3: i32 retry_after_ms,              // how long to wait before a retry; 0: no advice
  4: bool another_server_may_help     // false: every server would refuse this request
}

// ---- ids --------------------------------------------------------------------------------------

// Ids in compact form: first, first + stride, ... first + (count - 1) * stride.
struct IdRun {
  1: i64 first,
  2: i32 count,                       // at least 1
  3: i64 stride                       // at least 1
}

// The fields of an id.
struct IdFields {
  1: i64 id,
  2: i64 time_ms,                     // the moment at which the id's tick begins
  3: string time_text,                // the same moment in RFC 3339: 2024-05-17T09:30:00.125Z
  4: i64 ticks,                       // the time field of the id, unchanged
  5: i32 machine,                     // worker << rack bits | rack
  6: i32 worker,
  7: i32 rack,
  8: i64 sequence,
  9: string layout,                   // the layout used: a name, or a custom layout's text
  10: optional i32 version,           // these three only where the layout has such a field
  11: optional i32 type,
  12: optional i32 method
}

// The fields of an id to compose. Absent fields are 0, except where another default is given.
struct ComposeRequest {
  1: optional string layout,          // absent: the layout of the cluster
  2: optional i64 time_ms,            // give this or `ticks`; both or neither is BAD_REQUEST
  3: optional i64 ticks,
  4: optional i32 machine,            // give this, or `worker` and `rack`; both is BAD_REQUEST
  5: optional i32 worker,
  6: optional i32 rack,
  7: optional i64 sequence,
  8: optional i32 version,            // absent: the layout's value; BAD_REQUEST if it has no field
  9: optional i32 type,
  10: optional i32 method
}

// ---- status -----------------------------------------------------------------------------------

enum ServerState {
  NOT_READY = 1,   // no machine id: snowflake tags are refused, segment tags are served
  READY = 2,
  OFFLINE = 3,     // taken out by an operator: still serves, but clients should use other servers
  DRAINING = 4     // shutting down
}

struct TagStatus {
  1: string tag,
  2: string strategy,                 // "snowflake", "segment", or the name of an added one
  3: optional i64 high,               // segment: all below it has been given to servers
  4: optional i64 supply,             // segment: how many numbers this server holds in memory
  5: i64 issued,                      // ids that this server issued for the tag since it started
  6: optional bool as_issued          // true: its ids are shown as they were issued, so that one of
                                      // "snowflake" can be read by the layout; absent: unknown
}

// The state of the server that answers. Before a client accepts an id, it compares `cluster_uuid`
// and `layout` with its configuration: another cluster may use the address now.
struct ServerStatus {
  1: string cluster_uuid,             // made once with the cluster, never reused; "static" where
                                      // machine ids are given by hand; empty: not known yet
  2: string cluster_name,
  3: string application,              // the name under which the providers are registered
  4: string address,                  // host:port at which clients reach this server
  5: string layout,                   // a name, or the canonical text of a custom layout
  6: i32 rack_bits,                   // how many low bits of a machine id name the rack
  7: ServerState state,
  8: optional i32 machine,            // absent: the server holds no machine id
  9: optional i64 bound_ms,           // it issues nothing at or after this moment, unless renewed
  10: i64 wall_ms,                    // its wall clock when it wrote this answer
  11: optional i64 clock_skew_ms,     // its clock ahead of the registry's; absent: unknown
  12: i64 layout_ends_ms,             // the time at which the layout's time field overflows
  13: i64 started_ms,
  14: list<TagStatus> tags,           // those that it serves or has served, at most 1000
  15: string version,                 // of the program, such as 1.2.0
  16: string build,                   // how it was built; for people
  17: list<i32> machines              // every machine id that it holds; `machine` is the first.
                                      // Empty from a server older than this field: see `machine`
}

// ---- the list of servers ----------------------------------------------------------------------

// One server of the cluster, as the registry shows it.
struct ServerEntry {
  1: string address,                  // host:port
  2: i32 rack,
  3: i32 weight,                      // its share of the calls: 100 is usual, 0 is none
  4: bool online,                     // false: an operator has taken it out
  5: ServerState state,
  6: bool tls                         // calls to it must use TLS
}

// Every server of the cluster, as last read by the server that answers.
struct ServerList {
  1: string cluster_uuid,
  2: string application,
  3: i64 version,                     // rises with each change, and is the same at every server that
                                      // shows the same list; 0: nothing has been read yet
  4: optional list<ServerEntry> servers,  // absent: still those of `known_version`
  5: i32 age_ms,                      // how long ago the registry last confirmed it
  6: i32 ask_again_ms                 // when to request the list again; sooner if a call fails
}

// ---- leases of machine ids --------------------------------------------------------------------

// A request for a lease of a machine id. The same token gets the same lease.
struct LeaseAsk {
  1: string token,                    // 128 random bits: 32 lower-case hexadecimal digits
  2: string name,                     // shown to operators: 1 to 64 letters,
                                      // digits or characters of -_.:/@
  3: i64 clock_ms,                    // the program's wall clock
  4: optional i32 ahead_ms,           // how far ahead of now a renewed interval ends; absent:
                                      // 60000. A server gives at most its --claim_window_ms: see
                                      // until_tick of a renewal
  5: optional i32 rack                // rack of the machine id; absent: the server's own
}

// A request for a later end.
struct LeaseRenewal {
  1: string lease,
  2: string turn,                     // 128 random bits, new for each renewal, the same when it is
                                      // repeated
  3: string acknowledged,             // turn of the last answer; empty: there was none
  4: i64 clock_ms,
  5: optional i32 ahead_ms
}

// Gives a lease back. The program must have stopped issuing ids under it.
struct LeaseEnd {
  1: string lease,
  2: string turn,                     // the last one sent, answered or not; empty: none was
  3: optional i64 used_tick           // the highest tick used (from_tick - 1: none); absent:
                                      // unknown
}

// The program may issue the ids
//
//   base_bits | tick << tick_shift | sequence << sequence_shift
//
// for each tick in [from_tick, until_tick) and each sequence in
// [sequence_from, sequence_from + sequence_count).
struct LeaseTerms {
  1: string lease,                    // secret; names its server
  2: i64 number,                      // public, as in the server's log
  3: i32 machine,
  4: i32 worker,
  5: i32 rack,
  6: i64 base_bits,                   // machine id and constant fields, in place
  7: i32 tick_shift,
  8: i32 sequence_shift,
  9: i32 sequence_bits,
  10: i64 sequence_from,
  11: i64 sequence_count,
  12: i32 tick_ms,                    // length of a tick
  13: i64 epoch_ms,                   // ticks count from here
  14: i64 from_tick,
  15: i64 until_tick,
  16: i32 renew_in_ms,                // when to renew
  17: bool ending,                    // its bound is final: renew it as before, and take another
                                      // lease in time
  18: string server                   // address of the server that has the lease
}

// Why a server does not grant, extend or end a lease. HTTP answers with the status in parentheses.
enum LeaseFault {
  UNKNOWN_LEASE = 1,     // this server has no such lease (404); use it until until_tick
  OUTDATED = 2,          // the lease was renewed after this token or turn was sent (409). If it
                         // answers your renewal, a copy of the program runs: stop issuing
  REVOKED = 3,           // stop issuing at once (410)
  ANOTHER_SERVERS = 4,   // the lease belongs to `server` (421)
  NO_LEASES = 5          // this server grants none (503)
}

exception LeaseRefusal {
  1: LeaseFault fault,
  2: string message,                  // one sentence, for a person
  3: optional string server           // of ANOTHER_SERVERS
}

// ---- Twitter's service ------------------------------------------------------------------------

// As in the original. The original declares it and never names it in a `throws`: its clients saw
// every failure as a TApplicationException.
exception InvalidSystemClock {
  1: string message
}

exception InvalidUserAgentError {
  1: string message
}

// Twitter's original service, name for name and number for number, so that its old clients work
// unchanged. Ids are of the default tag, in the layout of the cluster.
//
// A client generated from the original, which knows no `throws`, skips the exceptions below, finds
// no result, and fails the call with TApplicationException MISSING_RESULT: an error, as before,
// and never an id.
service Snowflake {
  // The low 5 bits of the server's machine id, as the original's clients find them in an id.
  i64 get_worker_id() throws (1: Refusal refusal),

  // The server's wall clock, in milliseconds since 1970.
  i64 get_timestamp() throws (1: Refusal refusal),

  // One id. The user agent says who asks: a letter, then letters, digits and dashes.
  i64 get_id(1: string useragent)
      throws (1: Refusal refusal, 2: InvalidUserAgentError invalid_user_agent),

  // The other bits of the server's machine id, which the original calls data centre.
  i64 get_datacenter_id() throws (1: Refusal refusal)
}

// ---- Firn's service ---------------------------------------------------------------------------

// A tag is the business key that ids are for; an empty one is the server's default tag. Ids of one
// call are in ascending order, unless the tag obfuscates them. After a timeout, close the
// connection: generated clients do not compare sequence ids and would take the late answer for that
// of the next call. A retry is safe: ids of a lost answer are never issued again.
service IdService extends Snowflake {
  i64 getId(1: string tag) throws (1: Refusal refusal),

  // Exactly `count` ids, 1 to 100000; more is BAD_REQUEST.
  list<i64> getIds(1: string tag, 2: i32 count) throws (1: Refusal refusal),

  // Exactly `count` ids in as few runs as possible: at most 10 million numbers of a segment tag, or
  // what 100 ms hold of a snowflake tag. Refused for a tag whose ids are obfuscated.
  list<IdRun> getRuns(1: string tag, 2: i64 count) throws (1: Refusal refusal),

  // One id in the text form that the tag is configured for; decimal unless it says otherwise.
  string getText(1: string tag) throws (1: Refusal refusal),

  // The fields of an id, by a layout's name or text; an empty one means the cluster's. The server
  // does not check whether the id was ever issued.
  IdFields explain(1: i64 id, 2: string layout) throws (1: Refusal refusal),

  // The id that has these fields, for tests and for range queries by time. It is not issued: a
  // server may issue, or have issued, the same number.
  i64 compose(1: ComposeRequest request) throws (1: Refusal refusal),

  // The moment at which a tick of a layout begins, as RFC 3339 text. An empty layout means the
  // cluster's.
  string formatTime(1: i64 ticks, 2: string layout) throws (1: Refusal refusal),

  ServerStatus status() throws (1: Refusal refusal),

  // The servers of the cluster, so that a client needs only the address of one server and no
  // registry. `known_version` is the version of the list that the caller has, 0 for none; if it is
  // still current, the answer omits the entries. NOT_READY: this server has not read the list yet.
  // A server that is too old for this method fails the call: keep the addresses that you have.
  ServerList servers(1: i64 known_version) throws (1: Refusal refusal),

  // Leases a machine id to a program that issues ids by itself. The first interval is short: renew
  // it. Reasons of a Refusal are BAD_REQUEST (also for a clock that is too far off), REJECTED (the
  // client does not have the right `@lease`), and NOT_READY: repeat the call with the same token, at
  // this server if another_server_may_help is false: it is claiming a machine id for the token.
  // A client with the right `@lease:20` also gets NOT_READY, here and not in renewLease, while it
  // has 20 leases of this server. A server that is too old for these methods fails the call: ask
  // another one.
  LeaseTerms lease(1: LeaseAsk ask)
      throws (1: Refusal refusal, 2: LeaseRefusal lease_refusal),

  // The same lease with a later end. Only the lease's own server can renew it. NOT_READY: repeat
  // the call with the same turn.
  LeaseTerms renewLease(1: LeaseRenewal renewal)
      throws (1: Refusal refusal, 2: LeaseRefusal lease_refusal),

  void releaseLease(1: LeaseEnd lease_end)
      throws (1: Refusal refusal, 2: LeaseRefusal lease_refusal),

  // Answers while the process lives, ready or not.
  void ping() throws (1: Refusal refusal)
}
