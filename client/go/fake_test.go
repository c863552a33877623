package firn

import (
	"encoding/binary"
	"io"
	"net"
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
	surplus  atomic.Bool  // each answer to a call is sent twice
	requests atomic.Int64 // for ids
	mutex    sync.Mutex
	peers    map[net.Conn]bool
}

func newFakeServer(t testing.TB) *fakeServer {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeServer{listener: listener, peers: map[net.Conn]bool{}}
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

func (s *fakeServer) address() string { return s.listener.Addr().String() }

// drop ends all connections.
func (s *fakeServer) drop() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for peer := range s.peers {
		_ = peer.Close()
	}
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
		if body == nil {
			continue // silent
		}
		reply := append([]byte{0x80, 1, 0, 2}, request[4:12+length]...) // the name and the sequence number
		reply = append(append(reply, body...), 0)
		frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(reply))), reply...)
		if s.surplus.Load() && name != "status" {
			frame = append(frame, frame...)
		}
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
		return append(i32(i64([]byte{12, 0, 0}, 3, 1), 6, 60_000), 0)
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
	t.Cleanup(client.Close)
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
