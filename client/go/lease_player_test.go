package firn

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// leaseCase is a case of tests/contract/lessees.json or jumps.json, which the generators of all languages share.
type leaseCase struct {
	Case    string
	Servers int
	Ahead   int32
	Steps   []string
}

// leasePlayer is a lessee that plays the steps of a case. lessees.json describes them.
type leasePlayer struct {
	*idsRig
	servers  []string
	lessee   *lessee
	replies  map[string]string // by kind
	order    *leaseOrder       // the request without an outcome
	sent     []sentRequest     // since the last check
	losses   []LossKind
	reasons  []string // of all losses
	names    map[string]map[string]string
	machines int32
	held     string // the lease that was granted last, and is usable
	leases   map[string]*leaseTerms
	used     map[string]int64 // the last tick, by lease
	position int64
}

type sentRequest struct {
	text string
	at   time.Duration
}

var (
	leaseKinds = map[*method]string{methodLease: "grant", methodRenewLease: "renewal", methodReleaseLease: "release"}
	whyNone    = map[string]string{"none": "no server has granted one yet", "ended": "ended, and no server extended it",
		"revoked": "was revoked", "closed": "the generator was closed", "jumped": " s, and no server has confirmed it",
		"nothing": ""}
	leaseFaults = map[string]leaseFault{"none": leaseNone, "other": leaseOther, "unknown": leaseUnknown,
		"outdated": leaseOutdated, "revoked": leaseRevoked}
)

func newLeasePlayer(t *testing.T, one leaseCase) *leasePlayer {
	if one.Servers == 0 {
		one.Servers = 2
	}
	if one.Ahead == 0 {
		one.Ahead = 60_000
	}
	p := &leasePlayer{idsRig: newIDsRig(t), machines: 6, replies: map[string]string{}, position: -1,
		names: map[string]map[string]string{"t": {}, "r": {}}, leases: map[string]*leaseTerms{}, used: map[string]int64{}}
	for i := 1; i <= one.Servers; i++ {
		p.servers = append(p.servers, addressOf("s"+strconv.Itoa(i)))
	}
	drawn := 0
	p.lessee = &lessee{name: "checkout", aheadMs: one.Ahead, ids: p.ids, clock: p.clock.lease(),
		onLost: func(loss LeaseLoss) { // without a panic: the generator recovers it, and not the lessee
			p.losses, p.reasons = append(p.losses, loss.Kind), append(p.reasons, loss.Reason)
		},
		draw: func() string {
			drawn++
			return strings.Repeat("0", 20) + strconv.Itoa(100_000_000_000+drawn)
		},
		pick: func(tried []string) string {
			for _, one := range p.servers {
				if !slices.Contains(tried, one) {
					return one
				}
			}
			return ""
		},
		listed: func(address string) bool { return slices.Contains(p.servers, address) }}
	return p
}

func addressOf(server string) string { return "10.0.0." + server[1:] + ":7609" }

// matches returns whether the request has the parts that the pattern has.
func (s sentRequest) matches(pattern string) bool {
	parts := strings.Split(s.text, ":")
	for i, one := range strings.Split(strings.TrimPrefix(pattern, "?"), ":") {
		if one != "_" && (i >= len(parts) || parts[i] != one) {
			return false
		}
	}
	return true
}

func (p *leasePlayer) play(steps ...string) {
	p.Helper()
	for i, step := range steps {
		p.Logf("step %d: %s", i+1, step)
		words := strings.Fields(step)
		p.step(words[0], words[1:])
	}
}

func (p *leasePlayer) step(verb string, words []string) {
	p.Helper()
	switch verb {
	case "lease":
		p.turn()
		p.answer("terms:" + strings.Join(words, ""))
		p.sent = nil
	case "pass":
		p.pass(milliseconds(words[0]))
	case "work":
		for left := milliseconds(words[0]); left > 0; left -= 50 * time.Millisecond {
			p.pass(50 * time.Millisecond)
			p.check(p.idsRig.next(), "", "")
		}
	case "sleep":
		p.clock.advance(milliseconds(words[0]))
	case "step":
		p.clock.step(milliseconds(words[0]))
		p.clock.advance(time.Millisecond)
	case "next":
		p.next(words[0], append(words, "")[1])
	case "look":
		p.look(words[0])
	case "answer":
		p.answer(words[0])
	case "reply":
		p.replies[words[0]] = words[1]
		if p.order != nil {
			p.turn()
		}
	case "sent", "saw":
		p.compare(verb == "sent", words)
	case "waits":
		p.waits(words[0], milliseconds(words[1]), milliseconds(words[2]))
	case "loss":
		kinds := map[string]LossKind{"revoked": Revoked, "expired": Expired}
		if len(p.losses) != len(words) || len(words) > 0 && p.losses[0] != kinds[words[0]] {
			p.Fatal(p.losses)
		}
		p.losses = nil
	case "stop":
		p.lessee.stop()
		p.turn()
	case "stopped":
		if p.lessee.stopped() != (words[0] == "yes") {
			p.Fatal(p.lessee.stopped())
		}
	default:
		p.Fatal("unknown step")
	}
}

func milliseconds(word string) time.Duration {
	number, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		panic(err)
	}
	return time.Duration(number) * time.Millisecond
}

// turn sends what is due, up to a request that has no standing reply.
func (p *leasePlayer) turn() {
	p.Helper()
	for {
		if p.order == nil {
			if p.order = p.lessee.due(); p.order == nil {
				return
			}
			p.sent = append(p.sent, sentRequest{p.describe(p.order), p.clock.steady})
			if len(p.sent) > 100_000 {
				p.Fatal("requests without end")
			}
		}
		reply, is := p.replies[leaseKinds[p.order.request.method]]
		if !is {
			return
		}
		p.reply(reply)
	}
}

func (p *leasePlayer) reply(word string) {
	order := p.order
	p.order = nil
	terms, problem := p.outcome(word, order)
	p.lessee.done(order, terms, problem)
}

func (p *leasePlayer) answer(word string) {
	p.Helper()
	if p.order == nil {
		p.Fatal("each request has an outcome")
	}
	p.reply(word)
	p.turn()
}

func (p *leasePlayer) pass(by time.Duration) {
	p.Helper()
	p.turn()
	for until := p.clock.steady + by; p.clock.steady < until; p.turn() {
		due := by
		if p.order == nil {
			due = max(p.lessee.nextAt-p.clock.steady, time.Millisecond)
		}
		p.clock.advance(min(due, until-p.clock.steady))
	}
}

// --- checks --------------------------------------------------------------------------------------

func (p *leasePlayer) next(expected, more string) {
	p.Helper()
	if why, fails := whyNone[expected]; fails {
		id, err := p.ids.next()
		if err == nil || !strings.Contains(err.Error(), why) {
			p.Fatal(id, err)
		}
		if more != "" && (more == "woken") != (len(p.ids.jumps) > 0) {
			p.Fatal(len(p.ids.jumps))
		}
	} else if expected == "id" {
		p.check(p.idsRig.next(), "", "+0")
	} else {
		p.check(p.idsRig.next(), expected, more)
	}
	select {
	case <-p.ids.jumps: // wakes the goroutine that renews
		p.turn()
	default:
	}
}

func (p *leasePlayer) check(id int64, machine, afterWall string) {
	p.Helper()
	tick, position, held := tickOf(id), id>>22<<12|id&4095, p.leases[p.held]
	switch {
	case id>>12&1023 != int64(held.machine) || machine != "" && machine != itoa(held.machine):
		p.Fatal("machine id ", id>>12&1023)
	case tick < held.fromTick || tick >= held.untilTick:
		p.Fatal("outside the interval")
	case position <= p.position:
		p.Fatal("ids do not rise")
	}
	p.position, p.used[p.held] = position, tick
	if afterWall != "" {
		expected := milliseconds(afterWall[1:]).Milliseconds()
		after := tick - p.clock.tick() - expected
		if after != 0 && (expected < 1000 || max(after, -after) > 60) { // not exact at nine tenths of the pace
			p.Fatal(after)
		}
	}
}

// look calls all accessors.
func (p *leasePlayer) look(expected string) {
	p.Helper()
	if _, why := p.ids.held(); (why == nil) != (expected == "id") {
		p.Fatal(why)
	}
	generator := &LocalGenerator{ids: p.ids}
	if _, leased := generator.MachineID(); !leased || generator.Until().IsZero() {
		p.Fatal("no lease")
	}
}

func (p *leasePlayer) compare(inOrder bool, expected []string) {
	p.Helper()
	sent := p.sent
	p.sent = nil
	same := !inOrder || len(sent) == len(expected)
	for i := 0; same && i < len(sent); i++ {
		same = inOrder && sent[i].matches(expected[i]) || !inOrder && slices.ContainsFunc(expected, sent[i].matches)
	}
	for _, one := range expected {
		same = same && (one[0] == '?' || slices.ContainsFunc(sent, func(each sentRequest) bool { return each.matches(one) }))
	}
	if !same {
		p.Fatalf("sent %v", sent)
	}
}

func (p *leasePlayer) waits(kind string, least, most time.Duration) {
	p.Helper()
	var longest, last time.Duration
	for _, one := range p.sent {
		if !one.matches(kind) {
			continue
		}
		if last > 0 {
			longest = max(longest, one.at-last)
		}
		last = one.at
	}
	p.sent = nil
	if longest < least || longest > most+time.Millisecond {
		p.Fatal(longest)
	}
}

func (p *leasePlayer) name(kind, drawn string) string {
	if drawn == "" {
		return "-"
	}
	if len(drawn) != 32 {
		p.Fatal(drawn)
	}
	names := p.names[kind]
	if names[drawn] == "" {
		names[drawn] = kind + strconv.Itoa(len(names)+1)
	}
	return names[drawn]
}

func (p *leasePlayer) describe(order *leaseOrder) string {
	p.Helper()
	said, server := order.ask.lease, ":s"+order.address[7:8]
	if order.request.method == methodReleaseLease {
		first, most := max(p.leases[said.lease].fromTick, 0)-1, int64(-1)
		for _, one := range p.used {
			most = max(most, one)
		}
		used, is := p.used[said.lease]
		if is && *said.usedTick != used || *said.usedTick < first || *said.usedTick > max(first, most) {
			p.Fatal(*said.usedTick, used)
		}
		return "release:" + itoa(p.leases[said.lease].machine) + ":" + p.name("r", said.turn) + server
	}
	if said.clockMs != p.clock.wall.UnixMilli() || *said.aheadMs != p.lessee.aheadMs {
		p.Fatal(said.clockMs, *said.aheadMs)
	}
	if order.request.method == methodLease {
		if said.name != "checkout" || said.rack != nil {
			p.Fatal(said)
		}
		return "grant:" + p.name("t", said.token) + server
	}
	if said.lease != p.held {
		p.Fatal(said.lease)
	}
	return "renewal:" + p.name("r", said.turn) + ":" + p.name("r", said.acknowledged) + server
}

// --- answers -------------------------------------------------------------------------------------

func (p *leasePlayer) outcome(text string, order *leaseOrder) (*leaseTerms, *failure) {
	p.Helper()
	word, more, _ := strings.Cut(text, ":")
	if fault, is := leaseFaults[word]; is {
		return nil, &failure{end: WasRefused, leaseFault: fault, detail: word}
	}
	later := func(anotherMayHelp bool) *failure {
		advice := milliseconds("0" + more)
		return &failure{end: WasRefused, reason: NotReady, detail: word, retryAfter: advice, anotherMayHelp: anotherMayHelp}
	}
	switch word {
	case "terms":
		keys := map[string]string{}
		for _, pair := range strings.Split(more, ",") {
			key, value, _ := strings.Cut(pair, "=")
			keys[key] = value
		}
		if order.request.method == methodLease {
			return p.granted(keys, order), nil
		}
		return p.renewed(keys), nil
	case "released":
		return nil, nil
	case "lost":
		return nil, failed(Timeout, "")
	case "unreachable":
		return nil, failed(Unreachable, "refused")
	case "notready", "claiming":
		return nil, later(word == "notready")
	case "refused":
		return nil, &failure{end: WasRefused, reason: BadRequest, detail: "the program's clock is ahead of the server's"}
	case "old":
		problem := failed(WrongService, "it does not know the method")
		problem.lacksMethod = true
		return nil, problem
	case "elsewhere":
		return nil, &failure{end: WasRefused, leaseFault: leaseAnotherServers, leaseServer: addressOf(more)}
	}
	p.Fatal("unknown word")
	return nil, nil
}

// change sets the end and what else an answer may change.
func (p *leasePlayer) change(terms *leaseTerms, keys map[string]string) {
	number := func(key string, otherwise int64) int64 {
		if keys[key] == "" {
			return otherwise
		}
		return milliseconds(keys[key]).Milliseconds()
	}
	bound := number("bound", 0)
	terms.untilTick = p.clock.tick() + number("for", 60_000)
	if bound > 0 {
		terms.untilTick = min(terms.untilTick, leaseBegin.Sub(leaseEpoch).Milliseconds()+bound)
	}
	terms.renewInMs, terms.ending = int32(number("renew", 20_000)), bound > 0
	if keys["server"] != "" {
		terms.server = addressOf(keys["server"])
	}
	switch keys["spoilt"] {
	case "name":
		terms.lease = ""
	case "overlap":
		terms.baseBits |= 1
	case "empty":
		terms.untilTick = terms.fromTick
	case "begin":
		terms.fromTick = -5
	case "layout":
		terms.epochMs++
	case "lease":
		terms.lease = "another"
	case "machine":
		terms.machine, terms.baseBits = 99, 99<<12
	case "less":
		terms.untilTick = p.leases[p.held].untilTick - 1
	}
}

func (p *leasePlayer) granted(keys map[string]string, order *leaseOrder) *leaseTerms {
	p.machines++
	from := -time.Hour
	if keys["from"] != "" {
		from = milliseconds(keys["from"])
	}
	terms := testTerms(p.machines, func(terms *leaseTerms) {
		terms.server, terms.fromTick = order.address, p.clock.tick()+from.Milliseconds()
		p.change(terms, keys)
	})
	if keys["again"] != "" {
		again := *p.leases[p.held]
		if keys["again"] == "interval" {
			again.lease = terms.lease
		}
		terms = &again
	}
	p.leases[terms.lease] = terms
	if keys["spoilt"] == "" && terms.untilTick > p.clock.tick() {
		p.held = terms.lease
	}
	return terms
}

func (p *leasePlayer) renewed(keys map[string]string) *leaseTerms {
	terms := *p.leases[p.held]
	p.change(&terms, keys)
	if keys["spoilt"] == "" {
		p.leases[p.held] = &terms
	}
	return &terms
}
