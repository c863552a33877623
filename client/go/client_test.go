package firn

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var background = context.Background()

func TestTakesIDs(t *testing.T) {
	client := newClient(t, generous(), newFakeServer(t))
	seen := map[int64]bool{}
	for i := 0; i < 100; i++ {
		id, err := client.NextID(background, "order")
		if err != nil || seen[id] {
			t.Fatal(id, err)
		}
		seen[id] = true
	}
	ids, err := client.NextIDs(background, "order", 50)
	if err != nil || len(ids) != 50 || seen[ids[0]] {
		t.Fatal(ids, err)
	}
	if text, err := client.NextText(background, "order"); text != "abc" || err != nil {
		t.Fatal(text, err)
	}
	if counters := client.Counters(); counters.Calls != 102 || counters.Attempts != 102 || counters.Failed != 0 {
		t.Errorf("%+v", counters)
	}
}

func TestReadsALongAnswerPieceByPiece(t *testing.T) {
	client := newClient(t, generous(), newFakeServer(t))
	for _, count := range []int{100_000, 1, 20_000, 3} { // with and without the kept buffer
		if ids, err := client.NextIDs(background, "order", count); err != nil || len(ids) != count {
			t.Fatal(len(ids), err)
		}
	}
}

func TestRejectsInvalidOptions(t *testing.T) {
	_, err := New("http://nowhere", Options{AttemptsMax: 1000})
	var failure *Error
	if !errors.As(err, &failure) || failure.Kind != Invalid {
		t.Fatal(err)
	}
}

func TestTakesIDsOverAUnixSocketWithoutTLS(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.sock")
	server := newFakeServerAt(t, "unix", path)
	options := generous()
	options.TLS = &TLS{CA: "/nowhere/ca.pem"} // of servers on the network
	client := newClient(t, options, server)
	for i := 0; i < 10; i++ {
		if _, err := client.NextID(background, "order"); err != nil {
			t.Fatal(err)
		}
	}
	if seen := client.Servers(); len(seen) != 1 || seen[0].Address != "unix:"+path {
		t.Fatal(seen)
	}
	_ = server.listener.Close() // and removes the file
	server.drop()
	options.AttemptLimit, options.Deadline = 50*time.Millisecond, 100*time.Millisecond
	var failure *Error
	_, err := newClient(t, options, server).NextID(background, "order")
	if !errors.As(err, &failure) || failure.Kind != Unavailable || !strings.Contains(err.Error(), "unix "+path) {
		t.Fatal(err)
	}
}

func TestRejectsInvalidPathsOfUnixSockets(t *testing.T) {
	for address, words := range map[string]string{
		"unix:firn.sock":                     "requires an absolute path",
		"unix:":                              "requires an absolute path",
		"unix:/a\x00b":                       "no NUL",
		"unix:/" + strings.Repeat("x", 107):  "at most 107 bytes",
		"127.0.0.1:7609,unix:firn.sock":      "requires an absolute path",
		"/run/firn.sock":                     "not host:port",
		"unix:/" + strings.Repeat("x", 106):  "",
		"127.0.0.1:7609,unix:/run/firn.sock": "",
	} {
		_, _, err := readServers("list://" + address)
		if (err == nil) != (words == "") || (err != nil && !strings.Contains(err.Error(), words)) {
			t.Error(address, err)
		}
	}
}

// The server list has network addresses only.
func TestIgnoresUnixSocketsInTheListOfServers(t *testing.T) {
	fleet := newFleet(generous().withDefaults(), []string{"unix:/run/firn.sock"}, true)
	list := &serverList{version: 1, servers: []serverEntry{
		{address: "10.0.0.1:7609", online: true}, {address: "unix:/run/other.sock", online: true},
		{address: "unix:7609", online: true}}}
	fleet.apply(list, fleet.servers["unix:/run/firn.sock"])
	if len(fleet.servers) != 2 || fleet.servers["unix:/run/other.sock"] != nil ||
		!fleet.servers["unix:/run/firn.sock"].lastResort {
		t.Fatal(fleet.servers)
	}
}

func TestContextEndsACall(t *testing.T) {
	server := newFakeServer(t)
	client := newClient(t, generous(), server)
	if _, err := client.NextID(background, "order"); err != nil {
		t.Fatal(err)
	}
	server.silent.Store(true)
	limited, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	if _, err := client.NextID(limited, "order"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	cancelled, cancelNow := context.WithCancel(background)
	time.AfterFunc(50*time.Millisecond, cancelNow)
	if _, err := client.NextID(cancelled, "order"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestContextThatEndsAfterItsCallDoesNotAffectOthers(t *testing.T) {
	client := newClient(t, Options{Deadline: time.Minute, AttemptLimit: time.Minute, ConnectionsMax: 2}, newFakeServer(t))
	var group sync.WaitGroup
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for j := 0; j < 500; j++ {
				ctx, cancel := context.WithTimeout(background, time.Minute)
				if _, err := client.NextID(ctx, "order"); err != nil {
					t.Error(err)
				}
				cancel()
			}
		}()
	}
	group.Wait()
}

func TestCloseEndsCallsInProgress(t *testing.T) {
	server := newFakeServer(t)
	server.silent.Store(true)
	client := newClient(t, generous(), server)
	ended := make(chan error)
	go func() {
		_, err := client.NextID(background, "order")
		ended <- err
	}()
	eventually(t, "no request", func() bool { return server.requests.Load() > 0 })
	client.Close()
	var failure *Error
	if err := <-ended; !errors.As(err, &failure) || failure.Kind != Closed {
		t.Error(err)
	}
	if _, err := client.NextID(background, "order"); !errors.As(err, &failure) || failure.Kind != Closed {
		t.Error(err)
	}
	eventually(t, "connections stay", func() bool { return server.open() == 0 })
}

func TestHungServerDoesNotUseUpTheRetryBudget(t *testing.T) {
	hung, healthy := newFakeServer(t), newFakeServer(t)
	client := newClient(t, Options{Deadline: time.Minute, AttemptLimit: 2 * time.Second, ConnectionsMax: 1000},
		hung, healthy)
	eventually(t, "no id", func() bool { _, err := client.NextID(background, "order"); return err == nil })
	client.engine.fleet.budget.spent = retriesMost - 3 // three retries are left, and 20 more in 2 s
	hung.silent.Store(true)
	var group sync.WaitGroup
	for i := 0; i < 200; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			if _, err := client.NextID(background, "order"); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	if hung.requests.Load() < 40 {
		t.Errorf("the hung server got only %d requests", hung.requests.Load())
	}
}

var _ io.Closer = (*Client)(nil)

func TestAnswersAreReadFirstIfTheProcessWasLate(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	long := time.Now().Add(-time.Hour)
	c := &connection{socket: near, limit: 10 * time.Minute, heardAt: long, watchAt: long} // no timer of it ends here
	c.queue = []*exchange{{ask: askID("order"), sent: long, watched: long, changed: make(chan struct{}, 2)}}
	for range graces {
		if c.watch(); c.closed != nil {
			t.Fatal(c.closed)
		}
		c.watchAt = long // late again
	}
	if c.watch(); c.closed == nil || c.closed.end != Timeout {
		t.Fatal("a process that is always late never closes a silent connection")
	}
}

func TestAnAnswerThatBeganBeforeARefusalDoesNotEndTheDraining(t *testing.T) {
	fleet := newFleet(generous().withDefaults(), []string{"127.0.0.1:1"}, true)
	one := fleet.servers["127.0.0.1:1"]
	began := time.Now()
	problem := failed(WasRefused, "it stops")
	problem.reason = Draining
	fleet.failed(one, "order", problem)
	fleet.answered(one, "count", false, began.Add(-time.Second))
	if !one.draining {
		t.Error("an earlier answer ended the draining")
	}
	fleet.answered(one, "count", false, time.Now().Add(time.Second))
	if one.draining {
		t.Error("a later answer did not end the draining")
	}
}

// A generator shares its client's fleet. If its engine were the keeper, its end would close the connection for the list.
func TestFirstEngineOfAFleetIsItsKeeper(t *testing.T) {
	fleet := newFleet(generous(), nil, false)
	engine := newEngine(fleet)
	defer engine.end()
	if len(fleet.keeper) != 1 {
		t.Fatal("another engine could become the keeper")
	}
}

func TestConnectionThatEndsWhileItIsOpenedIsForgotten(t *testing.T) {
	server := newFakeServer(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	fleet := newFleet(generous(), []string{listener.Addr().String()}, false)
	engine := newEngine(fleet)
	one := fleet.servers[listener.Addr().String()]
	opening := &dialling{done: make(chan struct{})}
	go engine.openConnection(one, opening)
	peer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	fleet.mutex.Lock()
	go server.serve(peer)
	time.Sleep(200 * time.Millisecond) // the status arrives, and openConnection waits for the fleet
	engine.end()
	time.Sleep(50 * time.Millisecond) // the connection ends
	fleet.mutex.Unlock()
	<-opening.done
	eventually(t, "the fleet keeps a connection that has ended", func() bool {
		fleet.mutex.Lock()
		defer fleet.mutex.Unlock()
		return len(one.conns) == 0
	})
}
