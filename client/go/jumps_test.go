package firn

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// jumpWorld is a lessee, and the steps of tests/contract/jumps.json: jumps of the wall clock, which the generators of all
// languages share.
type jumpWorld struct {
	*leaseWorld
	unanswered *leaseOrder
	methods    []string
}

func (w *jumpWorld) turn() {
	if w.unanswered == nil {
		if w.unanswered = w.lessee.due(); w.unanswered != nil {
			kind := map[*method]string{methodLease: "grant", methodRenewLease: "renewal", methodReleaseLease: "release"}
			w.methods = append(w.methods, kind[w.unanswered.request.method])
		}
	}
}

func (w *jumpWorld) pass(by time.Duration) {
	w.turn()
	for until := w.clock.steady + by; w.clock.steady < until; w.turn() {
		due := by
		if w.unanswered == nil {
			due = max(w.lessee.nextAt-w.clock.steady, time.Millisecond)
		}
		w.clock.advance(min(due, until-w.clock.steady))
	}
}

func (w *jumpWorld) answer(word string) {
	order, tick := w.unanswered, w.clock.tick()
	w.unanswered = nil
	var terms *leaseTerms
	var problem *failure
	switch word {
	case "terms":
		held := w.ids.current()
		if order.request != w.lessee.renewal {
			w.machines++
			held = testTerms(w.machines, func(terms *leaseTerms) { terms.fromTick = tick - 3_600_000 })
		}
		extended := *held
		extended.untilTick, extended.renewInMs = tick+60_000, 20_000
		terms = &extended
	case "unknown":
		problem = leaseRefused(leaseUnknown, "")
	case "refused":
		problem = &failure{end: WasRefused, reason: BadRequest, detail: "the program's clock is ahead of the server's"}
	default:
		problem = lost()
	}
	w.lessee.done(order, terms, problem)
	w.turn()
}

func (w *jumpWorld) next(expected string) {
	w.Helper()
	if expected == "jumped" {
		w.fails("the wall clock has jumped forward by 3600 s, and no server has confirmed it")
	} else if id, err := w.ids.next(); err != nil || tickOf(id) != w.clock.tick() {
		w.Fatal(err, tickOf(id)-w.clock.tick())
	}
	select {
	case <-w.ids.jumps: // wakes the goroutine that renews
		w.turn()
	default:
	}
}

// look calls all accessors.
func (w *jumpWorld) look(expected string) {
	w.Helper()
	if _, why := w.ids.held(); (why == nil) != (expected == "id") {
		w.Fatal(why)
	}
	generator := &LocalGenerator{ids: w.ids}
	if _, leased := generator.MachineID(); !leased || generator.Until().IsZero() {
		w.Fatal("no lease")
	}
}

func (w *jumpWorld) step(verb string, words []string) {
	w.Helper()
	milliseconds := func() time.Duration {
		number, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			w.Fatal(err)
		}
		return time.Duration(number) * time.Millisecond
	}
	switch verb {
	case "lease":
		w.turn()
		w.answer("terms")
		w.methods = nil
	case "pass":
		w.pass(milliseconds())
	case "step":
		w.clock.step(milliseconds())
		w.clock.advance(time.Millisecond)
	case "next":
		w.next(words[0])
	case "look":
		w.look(words[0])
	case "answer":
		w.answer(words[0])
	case "sent":
		if !slices.Equal(w.methods, words) {
			w.Fatalf("sent %q", w.methods)
		}
		w.methods = nil
	default:
		w.Fatal("unknown step")
	}
}

func TestJumps(t *testing.T) {
	var table struct {
		Cases []struct {
			Case  string
			Steps []string
		}
	}
	readTable(t, "jumps.json", &table)
	if len(table.Cases) < 10 {
		t.Fatal(len(table.Cases))
	}
	for _, one := range table.Cases {
		t.Run(one.Case, func(t *testing.T) {
			w := &jumpWorld{leaseWorld: newLeaseWorld(t, 2)}
			for i, step := range one.Steps {
				t.Logf("step %d: %s", i+1, step)
				words := strings.Fields(step)
				w.step(words[0], words[1:])
			}
		})
	}
}
