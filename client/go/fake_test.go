package firn

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// lastID is the last id of all fake servers.
var lastID atomic.Int64

func init() { lastID.Store((time.Now().UnixMilli() - defaultEpochMs) << 22) }

// fakeServer speaks the wire contract. Its frames are written here, and not by the client.
type fakeServer struct {
	listener net.Listener
	refuse   atomic.Int32 // a reason: calls for ids are refused
	silent   atomic.Bool  // calls for ids get no answer
	requests atomic.Int64 // for ids
	lists    atomic.Int64 // requests for the list

	leaseFor   atomic.Int64 // ms: the interval of a lease
	renewIn    atomic.Int64 // ms; 0: a third of the interval
	leaseFault atomic.Int32 // requests for leases are refused
	machines   atomic.Int64
	grants     atomic.Int64
	renewals   atomic.Int64
	releases   atomic.Int64
	usedTicks  atomic.Int64 // releases that report one

	silentLeases atomic.Bool // renewals get no answer

	mutex sync.Mutex
	peers map[net.Conn]bool // false: its requests get no answer
}

func newFakeServer(t testing.TB) *fakeServer { return newFakeServerAt(t, "tcp", "127.0.0.1:0") }

func newFakeServerAt(t testing.TB, network, address string) *fakeServer {
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeServer{listener: listener, peers: map[net.Conn]bool{}}
	s.leaseFor.Store(15_000)
	s.machines.Store(16)
	go func() {
		for {
			peer, err := listener.Accept()
			if err != nil {
				return
			}
			s.mutex.Lock()
			s.peers[peer] = true
			s.mutex.Unlock()
			go s.serve(peer)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		s.drop()
	})
	return s
}

func (s *fakeServer) address() string {
	if at := s.listener.Addr(); at.Network() == "unix" {
		return "unix:" + at.String()
	}
	return s.listener.Addr().String()
}

// drop ends all connections.
func (s *fakeServer) drop() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for peer := range s.peers {
		_ = peer.Close()
	}
}

// mute answers no more requests on the connections that are open.
func (s *fakeServer) mute() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for peer := range s.peers {
		s.peers[peer] = false
	}
}

func (s *fakeServer) answers(peer net.Conn) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.peers[peer]
}

func (s *fakeServer) open() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.peers)
}

func (s *fakeServer) serve(peer net.Conn) {
	defer func() {
		_ = peer.Close()
		s.mutex.Lock()
		delete(s.peers, peer)
		s.mutex.Unlock()
	}()
	for {
		var head [4]byte
		if _, err := io.ReadFull(peer, head[:]); err != nil {
			return
		}
		request := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(peer, request); err != nil {
			return
		}
		length := binary.BigEndian.Uint32(request[4:])
		name := string(request[8 : 8+length])
		body := s.result(name, request)
		if body == nil || !s.answers(peer) {
			continue // silent
		}
		reply := append([]byte{0x80, 1, 0, 2}, request[4:12+length]...) // the name and the sequence number
		reply = append(append(reply, body...), 0)
		frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(reply))), reply...)
		if _, err := peer.Write(frame); err != nil {
			return
		}
	}
}

func (s *fakeServer) result(name string, request []byte) []byte {
	i64 := func(out []byte, number byte, value int64) []byte {
		return binary.BigEndian.AppendUint64(append(out, 10, 0, number), uint64(value))
	}
	i32 := func(out []byte, number byte, value int32) []byte {
		return binary.BigEndian.AppendUint32(append(out, 8, 0, number), uint32(value))
	}
	switch name {
	case "status":
		status := append([]byte{12, 0, 0, 11, 0, 1, 0, 0, 0, 1, 'u', 11, 0, 5, 0, 0, 0, 4}, "firn"...)
		return append(i64(i32(status, 7, 2), 10, time.Now().UnixMilli()), 0)
	case "servers":
		s.lists.Add(1)
		return append(i32(i64([]byte{12, 0, 0}, 3, 1), 6, 60_000), 0)
	}
	if strings.HasSuffix(strings.ToLower(name), "lease") {
		return s.lease(name, request, i32, i64)
	}
	s.requests.Add(1)
	if s.silent.Load() {
		return nil
	}
	if reason := s.refuse.Load(); reason != 0 {
		return append(i32([]byte{12, 0, 1}, 1, reason), 0)
	}
	switch name {
	case "getIds":
		count := int64(binary.BigEndian.Uint32(request[len(request)-5:]))
		ids := binary.BigEndian.AppendUint32([]byte{15, 0, 0, 10}, uint32(count))
		for last := lastID.Add(count); count > 0; count-- {
			ids = binary.BigEndian.AppendUint64(ids, uint64(last-count+1))
		}
		return ids
	case "getRuns":
		count := int64(binary.BigEndian.Uint64(request[len(request)-9:]))
		run := i64([]byte{15, 0, 0, 12, 0, 0, 0, 1}, 1, lastID.Add(count)-count+1)
		return append(i64(i32(run, 2, int32(count)), 3, 1), 0)
	case "getText":
		return append([]byte{11, 0, 0, 0, 0, 0, 3}, "abc"...)
	}
	return i64(nil, 0, lastID.Add(1))
}

// lease answers requests for leases; every renewal succeeds. The id of a lease is its machine id and first tick.
func (s *fakeServer) lease(name string, request []byte, i32 func([]byte, byte, int32) []byte,
	i64 func([]byte, byte, int64) []byte) []byte {
	text := func(out []byte, number byte, value string) []byte {
		return append(binary.BigEndian.AppendUint32(append(out, 11, 0, number), uint32(len(value))), value...)
	}
	if fault := s.leaseFault.Load(); fault != 0 {
		return append(text(i32([]byte{12, 0, 2}, 1, fault), 2, "as the test says"), 0)
	}
	now := time.Now().UnixMilli() - defaultEpochMs
	var machine, from int64
	switch name {
	case "releaseLease":
		s.releases.Add(1)
		if bytes.Contains(request, []byte{10, 0, 3}) {
			s.usedTicks.Add(1)
		}
		return []byte{}
	case "renewLease":
		if s.renewals.Add(1); s.silentLeases.Load() {
			return nil
		}
		begin := bytes.Index(request, []byte{11, 0, 1}) + 7 // the first field of the argument
		_, _ = fmt.Sscanf(string(request[begin:]), "%d-%d", &machine, &from)
	default:
		s.grants.Add(1)
		machine, from = s.machines.Add(1), now
	}
	length, renewIn := s.leaseFor.Load(), s.renewIn.Load()
	if renewIn == 0 {
		renewIn = length / 3
	}
	terms := i32(text([]byte{12, 0, 0}, 1, fmt.Sprintf("%d-%d", machine, from)), 3, int32(machine))
	terms = i64(i32(i32(i64(terms, 6, machine<<12), 7, 22), 9, 12), 11, 4096)
	terms = i64(i64(i64(i32(terms, 12, 1), 13, defaultEpochMs), 14, from), 15, now+length)
	return append(text(i32(terms, 16, int32(renewIn)), 18, s.address()), 0)
}

// generous are options under which a busy machine changes no outcome.
func generous(local ...LocalTag) Options {
	return Options{Deadline: time.Minute, AttemptLimit: time.Minute, LocalRanges: local}
}

func newClient(t testing.TB, options Options, servers ...*fakeServer) *Client {
	names := "list://"
	for i, one := range servers {
		if i > 0 {
			names += ","
		}
		names += one.address()
	}
	client, err := New(names, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}
