package firn

import (
	"strings"
	"testing"
	"time"
)

// The tables that the generators of all languages share.
func TestLesseeFollowsTheSharedTables(t *testing.T) {
	for name, least := range map[string]int{"lessees.json": 60, "jumps.json": 10} {
		var table struct{ Cases []leaseCase }
		readTable(t, name, &table)
		if len(table.Cases) < least {
			t.Fatal(len(table.Cases))
		}
		for _, one := range table.Cases {
			t.Run(one.Case, func(t *testing.T) { newLeasePlayer(t, one).play(one.Steps...) })
		}
	}
}

func (p *leasePlayer) fails(words string) {
	p.Helper()
	if id, err := p.ids.next(); err == nil || !strings.Contains(err.Error(), words) {
		p.Fatal(id, err)
	}
}

func TestReasonOfTheLastFailureIsInTheError(t *testing.T) {
	p := newLeasePlayer(t, leaseCase{})
	p.play("pass 0", "answer unreachable", "answer notready:700")
	p.fails("granted one yet; last failure: 10.0.0.2:7609 refused (NOT_READY): notready")
	p = newLeasePlayer(t, leaseCase{})
	p.play("pass 0", "answer terms:spoilt=overlap")
	p.fails("10.0.0.1:7609 granted a lease that cannot be used: fields that overlap")
	p = newLeasePlayer(t, leaseCase{})
	p.play("lease", "reply renewal unreachable", "reply grant unreachable", "pass 60100")
	p.fails("machine id 7 ended, and no server extended it; last failure: 10.0.0.")
}

func TestReasonsOfLosses(t *testing.T) {
	p := newLeasePlayer(t, leaseCase{})
	p.play("lease", "reply renewal lost", "reply grant lost", "pass 60100", "reply release released", "reply grant terms",
		"pass 3000", "reply renewal revoked", "pass 20000")
	if !strings.Contains(p.reasons[0], "machine id 7 ended at 2024-01-12 13:47:40 UTC") ||
		!strings.HasSuffix(p.reasons[1], " was revoked: revoked") {
		t.Fatal(p.reasons)
	}
}

// One request is sent at a time: each one to a paused server lasts until its limit.
func TestPausedServerOfAShortLeaseIsReplacedInTime(t *testing.T) {
	for _, busy := range []bool{false, true} { // the other server is not ready at first
		p := newLeasePlayer(t, leaseCase{Ahead: 3_000})
		p.play("lease for=3000", "reply renewal terms:for=3000", "reply grant terms:for=3000", "work 5000")
		p.replies = map[string]string{"release": "lost"}
		asked := 0
		for until := p.clock.steady + 10*time.Second; p.clock.steady < until; p.check(p.idsRig.next(), "", "") {
			p.clock.advance(50 * time.Millisecond)
			p.turn()
			switch {
			case p.order == nil:
			case p.order.address == p.servers[0]:
				p.clock.advance(p.order.limit)
				p.answer("lost")
			default:
				if asked++; busy && asked == 1 {
					p.answer("notready")
				} else {
					p.answer("terms:for=3000")
				}
			}
		}
		if len(p.losses) > 0 || p.leases[p.held].machine != 8 {
			t.Fatal(busy, p.losses)
		}
	}
}

func TestUnreachableServerThatWasNamedIsFollowedByTheOneThatGranted(t *testing.T) {
	newLeasePlayer(t, leaseCase{}).play("lease server=s9", "pass 20000", "answer elsewhere:s9", "sent renewal:_:_:s1 renewal:_:_:s9",
		"answer unreachable", "pass 200", "sent renewal:_:_:s1")
}

func TestTermsThatOverflowAreGivenBack(t *testing.T) {
	p := newLeasePlayer(t, leaseCase{})
	p.turn()
	order := p.order
	terms := p.granted(nil, order)
	terms.tickMs, terms.untilTick = -1<<31, 1<<63-1
	p.order = nil
	p.lessee.done(order, terms, nil)
	p.play("reply grant lost", "pass 0", "saw release:7 ?grant")
}

func TestLeaseThatIsGrantedAfterStopIsReleasedUnused(t *testing.T) {
	newLeasePlayer(t, leaseCase{}).play("pass 0", "sent grant", "stop", "answer terms", "sent release:7:-:s1", "answer released",
		"stopped yes")
}
