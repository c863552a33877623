package firn

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func newGenerator(t *testing.T, client *Client, options LeaseOptions) *LocalGenerator {
	t.Helper()
	if options.Name == "" {
		options.Name = "checkout-7f9c"
	}
	ctx, cancel := context.WithTimeout(background, time.Minute)
	defer cancel()
	generator, err := NewLocalGenerator(ctx, client, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(generator.Close)
	return generator
}

func kindOf(err error) Kind {
	var told *Error
	if errors.As(err, &told) {
		return told.Kind
	}
	return ""
}

func TestLocalIDsUnderALeaseThatIsRenewed(t *testing.T) {
	server := newFakeServer(t)
	server.renewIn.Store(200)
	generator := newGenerator(t, newClient(t, generous(), server), LeaseOptions{})
	first, err := generator.Next()
	machine, leased := generator.MachineID()
	if err != nil || first>>12&1023 != 17 || machine != 17 || !leased || time.Until(generator.Until()) > 16*time.Second {
		t.Fatal(first, err, machine, generator.Until())
	}
	eventually(t, "no renewals", func() bool { return server.renewals.Load() >= 4 })
	if second, err := generator.Next(); err != nil || second <= first {
		t.Fatal(second, err)
	}
	generator.Close()
	generator.Close() // again
	if server.grants.Load() != 1 || server.releases.Load() != 1 || server.usedTicks.Load() != 1 {
		t.Fatal(server.grants.Load(), server.releases.Load(), server.usedTicks.Load())
	}
	if _, err := generator.Next(); kindOf(err) != Closed {
		t.Fatal(err)
	}
	if _, leased := generator.MachineID(); leased || !generator.Until().IsZero() {
		t.Fatal("a lease after the end")
	}
}

// The listener is closed, so a renewal that opened a connection would fail.
func TestRenewalsKeepTheirConnection(t *testing.T) {
	server := newFakeServer(t)
	server.renewIn.Store(200)
	generator := newGenerator(t, newClient(t, generous(), server), LeaseOptions{})
	awaitRenewal(t, generator)
	_ = server.listener.Close()
	before := server.renewals.Load()
	eventually(t, "no renewals", func() bool { return server.renewals.Load() > before+4 })
	if _, err := generator.Next(); err != nil || generator.lastTrouble() != "" {
		t.Fatal(err, generator.lastTrouble())
	}
}

func TestRenewalReplacesAConnectionThatTheServerClosed(t *testing.T) {
	server := newFakeServer(t)
	server.renewIn.Store(200)
	generator := newGenerator(t, newClient(t, generous(), server), LeaseOptions{})
	for i := 0; i < 3; i++ {
		awaitRenewal(t, generator)
		server.drop()
	}
	awaitRenewal(t, generator)
	if trouble := generator.lastTrouble(); trouble != "" {
		t.Fatal("a renewal failed: ", trouble)
	}
}

// awaitRenewal returns when the generator has taken the answer.
func awaitRenewal(t *testing.T, generator *LocalGenerator) {
	t.Helper()
	before := generator.Until()
	eventually(t, "no renewal", func() bool { return generator.Until().After(before) })
}

// Without a reset, only a timeout shows that the path is dead.
func TestRenewalReplacesAConnectionThatGetsNoAnswer(t *testing.T) {
	server := newFakeServer(t)
	generator := newLocalGenerator(newClient(t, generous(), server), LeaseOptions{Name: "checkout", Ahead: leaseAhead})
	defer generator.engine.end()
	defer generator.hangUp()
	order := generator.lessee.due()
	terms, problem := generator.send(background, order)
	if problem != nil {
		t.Fatal(problem)
	}
	generator.lessee.done(order, terms, nil)
	server.mute()
	generator.lessee.held.renewAt = 0
	order = generator.lessee.due()
	order.limit = 4 * time.Second
	if _, problem = generator.send(background, order); problem != nil || server.renewals.Load() != 2 {
		t.Fatal(problem, server.renewals.Load())
	}
}

func TestQueuedHooksRunAfterTheClientIsClosed(t *testing.T) {
	release, kinds, options := make(chan struct{}), make(chan string, 10), generous()
	options.OnEvent = func(event Event) {
		kinds <- event.Kind
		<-release
		if event.Kind == "first" {
			runtime.Goexit()
		}
	}
	client := newClient(t, options, newFakeServer(t))
	fleet := client.engine.fleet
	fleet.tell("first", "", "")
	fleet.tell("second", "", "")
	client.Close()
	fleet.tell("after the end", "", "")
	close(release)
	for _, kind := range []string{"first", "second"} {
		if got := await(t, kinds); got != kind {
			t.Fatal(got)
		}
	}
	eventually(t, "a goroutine stays", func() bool {
		fleet.hooks.mutex.Lock()
		defer fleet.hooks.mutex.Unlock()
		return !fleet.hooks.running
	})
	if len(kinds) != 0 {
		t.Fatal(<-kinds)
	}
}

func TestLossIsNotReportedAfterTheGeneratorIsClosed(t *testing.T) {
	release, losses := make(chan struct{}), make(chan LeaseLoss, 10)
	generator := newGenerator(t, newClient(t, generous(), newFakeServer(t)), LeaseOptions{OnLost: func(loss LeaseLoss) {
		losses <- loss
		<-release
	}})
	generator.lessee.onLost(LeaseLoss{MachineID: 1})
	await(t, losses)
	generator.lessee.onLost(LeaseLoss{MachineID: 2})
	generator.Close()
	close(release)
	ended := make(chan struct{})
	generator.hooks.call(func() { close(ended) })
	await(t, ended)
	if len(losses) != 0 {
		t.Fatal(<-losses)
	}
}

func await[T any](t *testing.T, channel <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-channel:
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
	}
	return got
}

func (g *LocalGenerator) lastTrouble() string {
	g.ids.mutex.Lock()
	defer g.ids.mutex.Unlock()
	return g.ids.trouble
}

func TestClientThatIsClosedDoesNotEndTheGenerator(t *testing.T) {
	client := newClient(t, generous(), newFakeServer(t))
	generator := newGenerator(t, client, LeaseOptions{})
	client.Close()
	if _, err := generator.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := NewLocalGenerator(background, client, LeaseOptions{Name: "a"}); kindOf(err) != Closed {
		t.Fatal(err)
	}
}

func TestClientAndGeneratorShareServers(t *testing.T) {
	server := newFakeServer(t)
	server.leaseFor.Store(600)
	options := generous()
	var events atomic.Int64
	options.OnEvent = func(Event) { events.Add(1) }
	client, err := New("firn://"+server.address(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	eventually(t, "no list", func() bool { return server.lists.Load() == 1 })
	generator := newGenerator(t, client, LeaseOptions{})
	eventually(t, "no renewals", func() bool { return server.renewals.Load() >= 2 })
	if server.lists.Load() != 1 {
		t.Fatal("the generator asked for the list, too")
	}
	client.Close()
	fleet := client.engine.fleet
	fleet.mutex.Lock()
	fleet.listDue = time.Now() // the generator asks from now on
	fleet.mutex.Unlock()
	eventually(t, "no further list", func() bool { return server.lists.Load() == 2 })
	heard := events.Load()
	_ = server.listener.Close()
	server.drop()
	eventually(t, "no failure", func() bool { return client.Servers()[0].Health != "healthy" })
	if _, err := generator.Next(); err != nil || events.Load() != heard {
		t.Fatal(err, "or events after the end of the client")
	}
}

func TestHookThatBlocksDelaysNoRenewal(t *testing.T) {
	servers, release, told := []*fakeServer{newFakeServer(t), newFakeServer(t)}, make(chan struct{}), make(chan struct{}, 100)
	for _, one := range servers {
		one.leaseFor.Store(1500)
		one.renewIn.Store(200)
	}
	options := generous()
	options.OnEvent = func(Event) {
		told <- struct{}{}
		<-release
	}
	defer close(release)
	generator := newGenerator(t, newClient(t, options, servers...), LeaseOptions{OnLost: func(LeaseLoss) {
		told <- struct{}{}
		<-release
	}})
	mine, other := servers[servers[1].grants.Load()], servers[servers[0].grants.Load()]
	_ = mine.listener.Close()
	mine.drop() // the generator reports that the server is unhealthy
	await(t, told)
	eventually(t, "no grant by the other server", func() bool { return other.grants.Load() > 0 })
	other.leaseFault.Store(int32(leaseRevoked))
	await(t, told)
	other.leaseFault.Store(0)
	before := other.renewals.Load()
	eventually(t, "no renewals", func() bool { return other.renewals.Load() > before+2 })
	if _, err := generator.Next(); err != nil {
		t.Fatal(err)
	}
}

func TestSlowLeaseDelaysNoCallAndEjectsNoServer(t *testing.T) {
	server := newFakeServer(t)
	server.leaseFor.Store(600)
	client := newClient(t, generous(), server)
	newGenerator(t, client, LeaseOptions{})
	server.silentLeases.Store(true)
	before := server.renewals.Load()
	eventually(t, "no renewals", func() bool { return server.renewals.Load() > before+4 })
	if _, err := client.NextID(background, "order"); err != nil || client.Servers()[0].Health != "healthy" {
		t.Fatal(err, client.Servers())
	}
}

func TestServerWithoutItsClusterLeavesAGrantToOthers(t *testing.T) {
	client := newClient(t, generous(), newFakeServer(t))
	if _, err := client.NextID(background, "order"); err != nil { // it knows its cluster
		t.Fatal(err)
	}
	if problem := client.engine.fleet.admit(&serverStatus{}); problem == nil || problem.claiming() {
		t.Fatal(problem, "so that the grant would wait for this server")
	}
}

func TestConnectionForALeaseEndsNoQuarantine(t *testing.T) {
	servers := []*fakeServer{newFakeServer(t), newFakeServer(t)}
	for _, one := range servers {
		one.leaseFor.Store(600)
	}
	client := newClient(t, generous(), servers...)
	newGenerator(t, client, LeaseOptions{})
	mine := servers[servers[1].grants.Load()]
	fleet := client.engine.fleet
	fleet.failed(fleet.servers[mine.address()], "order", failed(Broken, "as the test says"))
	before := mine.renewals.Load()
	eventually(t, "no renewals", func() bool { return mine.renewals.Load() >= before+2 })
	for _, one := range client.Servers() {
		if one.Address == mine.address() && one.Health != "quarantined" {
			t.Fatal(one)
		}
	}
}

func TestConnectionForALeaseEndsARowOfFailures(t *testing.T) {
	client := newClient(t, generous(), newFakeServer(t))
	fleet := client.engine.fleet
	for _, one := range fleet.servers {
		fleet.failed(one, "order", failed(ConnClosed, ""))
		fleet.failed(one, "order", failed(ConnClosed, ""))
		newGenerator(t, client, LeaseOptions{})
		fleet.failed(one, "order", failed(ConnClosed, ""))
	}
	if client.Servers()[0].Health != "healthy" {
		t.Fatal(client.Servers())
	}
}

func TestCloseWhileGoroutinesTakeIDs(t *testing.T) {
	generator := newGenerator(t, newClient(t, generous(), newFakeServer(t)), LeaseOptions{})
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				if _, err := generator.Next(); err != nil {
					if kindOf(err) != Closed {
						t.Error(err)
					}
					return
				}
			}
		}()
	}
	time.Sleep(20 * time.Millisecond)
	generator.Close()
	group.Wait()
}

func TestNoServerGrantsALease(t *testing.T) {
	server := newFakeServer(t)
	server.leaseFault.Store(5)
	ctx, cancel := context.WithTimeout(background, 3*time.Second)
	defer cancel()
	_, err := NewLocalGenerator(ctx, newClient(t, generous(), server), LeaseOptions{Name: "checkout"})
	if kindOf(err) != NoLease || !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "no server has granted one yet; last failure: 127.0.0.1:") {
		t.Fatal(err)
	}
}

func TestRevocationIsReportedAndTheNextLeaseFollows(t *testing.T) {
	server, lost := newFakeServer(t), make(chan LeaseLoss, 100)
	server.renewIn.Store(200)
	generator := newGenerator(t, newClient(t, generous(), server),
		LeaseOptions{OnLost: func(loss LeaseLoss) {
			lost <- loss
			panic("as the test says") // ends nothing
		}})
	server.leaseFault.Store(3)
	if loss := <-lost; loss != (LeaseLoss{Revoked, 17, "the lease of machine id 17 was revoked: as the test says"}) {
		t.Fatal(loss)
	}
	if _, err := generator.Next(); kindOf(err) != NoLease || !strings.Contains(err.Error(), "revoked") {
		t.Fatal(err)
	}
	server.leaseFault.Store(0)
	eventually(t, "no other lease", func() bool {
		machine, _ := generator.MachineID()
		return machine == 18
	})
	if _, err := generator.Next(); err != nil {
		t.Fatal(err)
	}
}

func TestGeneratorCanBeClosedByOnLost(t *testing.T) {
	server, closed := newFakeServer(t), make(chan bool)
	server.renewIn.Store(200)
	var generator *LocalGenerator
	var made sync.WaitGroup
	made.Add(1)
	generator = newGenerator(t, newClient(t, generous(), server), LeaseOptions{OnLost: func(LeaseLoss) {
		made.Wait()
		generator.Close()
		close(closed)
	}})
	made.Done()
	server.leaseFault.Store(3)
	<-closed
}

func TestCloseInterruptsARequest(t *testing.T) {
	server := newFakeServer(t)
	server.leaseFor.Store(600)
	generator := newGenerator(t, newClient(t, generous(), server), LeaseOptions{})
	server.silentLeases.Store(true)
	before := server.renewals.Load()
	eventually(t, "no renewal", func() bool { return server.renewals.Load() > before })
	began := time.Now()
	generator.Close()
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Fatal(took)
	}
}

func TestInvalidLeaseOptions(t *testing.T) {
	client := newClient(t, generous(), newFakeServer(t))
	for _, options := range []LeaseOptions{{}, {Name: "a b"}, {Name: strings.Repeat("a", 65)}, {Name: "ü"},
		{Name: "a", Ahead: 1999 * time.Millisecond}, {Name: "a", Ahead: 25 * time.Hour}} {
		if _, err := NewLocalGenerator(background, client, options); kindOf(err) != Invalid {
			t.Error(options, err)
		}
	}
}

func TestMachineLeaseForAnotherGenerator(t *testing.T) {
	server := newFakeServer(t)
	server.leaseFor.Store(600)
	lease, err := NewMachineLease(background, newClient(t, generous(), server), LeaseOptions{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	first, err := lease.Current()
	if err != nil || first.MachineID != 17 || first.Base != 17<<12 || first.TickShift != 22 || first.SequenceBits != 12 ||
		first.Tick != time.Millisecond || first.Epoch.UnixMilli() != defaultEpochMs || !first.From.Before(first.Until) {
		t.Fatal(first, err)
	}
	eventually(t, "no renewal", func() bool {
		later, err := lease.Current()
		return err == nil && later.Until.After(first.Until) && later.From.Equal(first.From)
	})
	lease.Close()
	if _, err := lease.Current(); kindOf(err) != Closed || server.releases.Load() != 1 || server.usedTicks.Load() != 0 {
		t.Fatal(err, server.usedTicks.Load()) // no tick is known to be unused
	}
}

func TestMachineLeaseIsHandedOutOnce(t *testing.T) {
	lease := &MachineLease{}
	if fault := lease.HandOut(); fault != nil {
		t.Fatal(fault)
	}
	var told *Error
	if fault := lease.HandOut(); !errors.As(fault, &told) || told.Kind != Invalid {
		t.Fatal(fault)
	}
}
