package leased

import (
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake"

	firn "firn.example/firn/client/go"
)

// testLease is a lease that a test sets.
type testLease struct {
	lease firn.Lease
	fault error
	taken error // a generator has the lease
}

func (l *testLease) Current() (firn.Lease, error) { return l.lease, l.fault }
func (l *testLease) HandOut() error               { return l.taken }

func newLease(machine int, from, until time.Duration) *testLease {
	now := time.Now()
	return &testLease{lease: firn.Lease{MachineID: machine, From: now.Add(from), Until: now.Add(until),
		Base: int64(machine) << 12, Epoch: time.UnixMilli(snowflake.Epoch), Tick: time.Millisecond, TickShift: 22,
		SequenceBits: 12}}
}

func kind(fault error) firn.Kind {
	var told *firn.Error
	if errors.As(fault, &told) {
		return told.Kind
	}
	return ""
}

func TestALeaseOfAnotherGeneratorIsRefused(t *testing.T) {
	lease := newLease(7, -time.Second, time.Minute)
	lease.taken = &firn.Error{Kind: firn.Invalid, Sentence: "the lease has a generator"}
	if node, fault := NewSnowflake(lease); node != nil || kind(fault) != firn.Invalid {
		t.Error("snowflake", node, fault)
	}
	if sony, fault := NewSonyflake(lease, sonyflake.Settings{}); sony != nil || kind(fault) != firn.Invalid {
		t.Error("sonyflake", sony, fault)
	}
}

// generator is one of the two types.
type generator struct {
	name string
	next func() (uint64, error)
	at   func(uint64) time.Time // the end of the id's tick
	// ahead makes the library's generator one that has read a clock so far ahead.
	ahead func(time.Duration)
}

func both(t *testing.T, lease MachineIDs) []generator {
	node, fault := NewSnowflake(lease)
	if fault != nil {
		t.Fatal(fault)
	}
	sony, fault := NewSonyflake(lease, sonyflake.Settings{})
	if fault != nil {
		t.Fatal(fault)
	}
	return generators(node, sony)
}

func generators(node *Snowflake, sony *Sonyflake) []generator {
	return []generator{{"snowflake", func() (uint64, error) {
		id, fault := node.Generate()
		return uint64(id), fault
	}, func(id uint64) time.Time { return time.UnixMilli(snowflake.ID(id).Time() + 1) }, func(by time.Duration) {
		epoch := field[time.Time](node.node, "epoch")
		*epoch = epoch.Add(-by)
	}}, {"sonyflake", sony.NextID,
		func(id uint64) time.Time { return sony.start.Add(sonyflake.ElapsedTime(id) + sonyTick) }, func(by time.Duration) {
			*field[int64](sony.generator, "elapsedTime") += int64(by / sonyTick)
		}}}
}

func TestIDsOfBothLibrariesUnderALease(t *testing.T) {
	for _, one := range both(t, newLease(17, -time.Second, time.Minute)) {
		var taken []uint64
		for i := 0; i < 1000; i++ {
			id, fault := one.next()
			if fault != nil {
				t.Fatal(one.name, fault)
			}
			taken = append(taken, id)
		}
		if !slices.IsSorted(taken) || len(slices.Compact(taken)) != 1000 {
			t.Error(one.name)
		}
	}
}

func TestNoIDAtTheEndOfTheInterval(t *testing.T) {
	lease := newLease(17, -time.Second, 200*time.Millisecond)
	for _, one := range both(t, lease) {
		for {
			id, fault := one.next()
			if fault != nil {
				if kind(fault) != firn.NoLease {
					t.Error(one.name, fault)
				}
				break
			}
			if one.at(id).After(lease.lease.Until) {
				t.Fatal(one.name, one.at(id), lease.lease.Until)
			}
		}
	}
}

func TestPauseBeyondTheIntervalReturnsNoID(t *testing.T) {
	lease := newLease(17, -time.Second, 100*time.Millisecond)
	generators := both(t, lease)
	for _, one := range generators {
		_, _ = one.next()
	}
	time.Sleep(150 * time.Millisecond)
	for _, one := range generators {
		if id, fault := one.next(); kind(fault) != firn.NoLease {
			t.Error(one.name, id, fault)
		}
	}
}

func TestWaitsForTheBeginOfTheInterval(t *testing.T) {
	lease := newLease(17, 100*time.Millisecond, time.Minute)
	for _, one := range both(t, lease) {
		if id, fault := one.next(); fault != nil || one.at(id).Before(lease.lease.From) {
			t.Error(one.name, fault)
		}
	}
}

func TestClockBehindTheLeaseIsReported(t *testing.T) {
	for _, one := range both(t, newLease(17, time.Hour, 2*time.Hour)) {
		if _, fault := one.next(); kind(fault) != firn.NoLease || !strings.Contains(fault.Error(), "correct the clock") {
			t.Error(one.name, fault)
		}
	}
}

func TestAnotherLeaseContinuesWithLaterIDs(t *testing.T) {
	lease := newLease(17, -time.Second, time.Minute)
	generators := both(t, lease)
	for _, one := range generators {
		last := uint64(0)
		for i := 0; i < 20; i++ {
			// The same machine id in half of the cases, which only a later tick keeps apart.
			lease.lease.MachineID, lease.lease.From = 17+i/2, lease.lease.From.Add(time.Millisecond)
			id, fault := one.next()
			if fault != nil || id <= last {
				t.Fatal(one.name, id, last, fault)
			}
			last = id
		}
	}
}

// field returns a private field of a library's generator.
func field[T any](generator any, name string) *T {
	return (*T)(reflect.ValueOf(generator).Elem().FieldByName(name).Addr().UnsafePointer())
}

// Both libraries keep to a clock that they have read.
func TestClockThatWasAnHourAheadOnceIsForgotten(t *testing.T) {
	lease := newLease(17, -time.Second, time.Minute)
	all := both(t, lease)
	for _, one := range all {
		before, fault := one.next()
		if fault != nil {
			t.Fatal(one.name, fault)
		}
		one.ahead(time.Hour)
		if _, fault := one.next(); kind(fault) != firn.NoLease {
			t.Error(one.name, fault)
		}
		if id, fault := one.next(); fault != nil || id <= before {
			t.Error(one.name, id, before, fault)
		}
	}
}

func TestFailureOfTheLeaseIsReturned(t *testing.T) {
	lease := newLease(17, -time.Second, time.Minute)
	generators := both(t, lease)
	lease.fault = &firn.Error{Kind: firn.Closed}
	for _, one := range generators {
		if _, fault := one.next(); kind(fault) != firn.Closed {
			t.Error(one.name, fault)
		}
	}
}

func TestAnotherLayoutIsRefused(t *testing.T) {
	lease := newLease(17, -time.Second, time.Minute)
	lease.lease.Epoch = time.UnixMilli(0)
	if _, fault := NewSnowflake(lease); kind(fault) != firn.Invalid || !strings.Contains(fault.Error(), "set snowflake.Epoch") {
		t.Fatal(fault)
	}
}

// FIRN_SERVERS names real servers, such as firn://127.0.0.1:7609.
func TestRealServers(t *testing.T) {
	servers := os.Getenv("FIRN_SERVERS")
	if servers == "" {
		t.Skip("FIRN_SERVERS is not set")
	}
	client, fault := firn.New(servers, firn.Options{})
	if fault != nil {
		t.Fatal(fault)
	}
	defer client.Close()
	seen := map[string]map[uint64]bool{"snowflake": {}, "sonyflake": {}}
	var mutex sync.Mutex
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	newLease := func() *firn.MachineLease {
		lease, fault := firn.NewMachineLease(ctx, client, firn.LeaseOptions{Name: "go-leased"})
		if fault != nil {
			t.Fatal(fault)
		}
		t.Cleanup(lease.Close)
		return lease
	}
	held, fault := newLease().Current()
	if fault != nil {
		t.Fatal(fault)
	}
	snowflake.Epoch = held.Epoch.UnixMilli()
	for i := 0; i < 3; i++ { // three programs
		lease := newLease()
		node, fault := NewSnowflake(lease)
		if fault != nil {
			t.Fatal(fault)
		}
		if _, fault = NewSnowflake(lease); kind(fault) != firn.Invalid {
			t.Fatal("two generators have one lease", fault)
		}
		sony, fault := NewSonyflake(newLease(), sonyflake.Settings{})
		if fault != nil {
			t.Fatal(fault)
		}
		for _, one := range generators(node, sony) {
			group.Add(1)
			go func() {
				defer group.Done()
				for j := 0; j < 2000; j++ {
					id, fault := one.next()
					if fault != nil {
						t.Error(one.name, fault)
						return
					}
					mutex.Lock()
					if seen[one.name][id] {
						t.Error(one.name, "duplicate", id)
					}
					seen[one.name][id] = true
					mutex.Unlock()
				}
			}()
		}
	}
	group.Wait()
}
