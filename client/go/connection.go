package firn

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	bufferMost = 64 << 10  // kept by a connection
	readAtOnce = 256 << 10 // of a long answer: memory grows with what has arrived
)

// tlsFiles creates configurations for new connections, and reads the files again when one has changed.
type tlsFiles struct {
	said   TLS
	mutex  sync.Mutex
	stamp  string
	config *tls.Config
}

// current returns a configuration for a connection to the host. While the files are unusable, such as
// half written, the last usable ones stay in force.
func (t *tlsFiles) current(host string) (*tls.Config, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	stamp := ""
	for _, file := range []string{t.said.CA, t.said.Cert, t.said.Key} {
		if info, fault := os.Stat(file); fault == nil {
			stamp += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), ";")
		}
	}
	if t.config == nil || stamp != t.stamp {
		config, fault := t.read()
		if fault != nil && t.config == nil {
			return nil, fault
		}
		if fault == nil { // otherwise the next connection tries again
			t.config, t.stamp = config, stamp
		}
	}
	config := t.config.Clone()
	config.ServerName = t.said.Name
	if config.ServerName == "" {
		config.ServerName = host
	}
	return config, nil
}

func (t *tlsFiles) read() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(64)}
	if t.said.CA != "" {
		pem, fault := os.ReadFile(t.said.CA)
		if fault != nil {
			return nil, fault
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s contains no certificate", t.said.CA)
		}
	}
	if t.said.Cert != "" {
		pair, fault := tls.LoadX509KeyPair(t.said.Cert, t.said.Key)
		if fault != nil {
			return nil, fault
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// connection is a connection to one server. Used by one call at a time. Any failure ends it, so a late
// answer cannot be taken for the answer to another call.
type connection struct {
	socket   net.Conn
	in       *bufio.Reader // reads head and body of a short answer at once
	used     bool          // an earlier call used it: if it is closed, the call may try again
	check    idCheck
	sequence int32
	buffer   []byte // of requests and short answers

	idleSince time.Time
}

// connect tries the host's addresses, racing those of two families, and uses TLS if requested. The address can be
// unix:/path.
func connect(ctx context.Context, address string, files *tlsFiles, until time.Time) (*connection, *failure) {
	dialer := net.Dialer{Deadline: until, FallbackDelay: 10 * time.Millisecond}
	network, name := "tcp", address
	if path, unix := strings.CutPrefix(address, unixPrefix); unix {
		network, name = "unix", path
	}
	socket, fault := dialer.DialContext(ctx, network, name)
	if fault != nil {
		if isTimeout(fault) {
			return nil, failed(ConnectTimeout, "")
		}
		if isOwnFault(fault) {
			return nil, failed(NoRoom, "this process has no file descriptor or memory left")
		}
		return nil, failed(Unreachable, fault.Error())
	}
	made := &connection{socket: socket, in: bufio.NewReader(socket)}
	if files == nil {
		return made, nil
	}
	host, _, _ := net.SplitHostPort(address)
	config, fault := files.current(host)
	if fault == nil {
		secure := tls.Client(socket, config)
		made.socket, made.in = secure, bufio.NewReader(secure)
		_ = socket.SetDeadline(until)
		fault = secure.HandshakeContext(ctx)
	}
	if fault != nil {
		made.close()
		return nil, tlsFailure(fault)
	}
	return made, nil
}

func tlsFailure(fault error) *failure {
	var plain tls.RecordHeaderError
	switch {
	case errors.As(fault, &plain):
		return failed(WrongService, "it does not speak TLS")
	case isTimeout(fault):
		return failed(ConnectTimeout, "in the TLS handshake")
	case errors.Is(fault, io.EOF), errors.As(fault, new(*net.OpError)):
		return failed(Unreachable, "in the TLS handshake: "+fault.Error())
	}
	return failed(WrongService, "TLS: "+fault.Error())
}

// isOwnFault returns whether this process or its machine is at fault, and not the server.
func isOwnFault(fault error) bool {
	for _, one := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(fault, one) {
			return true
		}
	}
	return false
}

func isTimeout(fault error) bool {
	var network net.Error
	return errors.As(fault, &network) && network.Timeout()
}

func (c *connection) close() {
	if secure, is := c.socket.(*tls.Conn); is {
		_ = secure.NetConn().Close() // without close_notify, for which it might wait
		return
	}
	_ = c.socket.Close()
}

// over returns whether the server has closed the connection, or sent bytes without a request. Only for
// an idle connection; takes 1 ms.
func (c *connection) over() bool {
	plain := c.socket
	if secure, is := plain.(*tls.Conn); is {
		plain = secure.NetConn()
	}
	_ = plain.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, fault := plain.Read(make([]byte, 1))
	return !isTimeout(fault)
}

// call sends the request and reads the answer. It returns at once when the context ends.
func (c *connection) call(ctx context.Context, a *ask, until time.Time) (*answer, *failure) {
	_ = c.socket.SetDeadline(until)
	if ctx.Done() != nil {
		defer c.interruptWhenDone(ctx)()
	}
	c.sequence++
	frame, stale, problem := c.exchange(a)
	if problem != nil {
		problem.stale = stale
		return nil, problem
	}
	c.used = true
	return a.readAnswer(frame, c.sequence)
}

// interruptWhenDone interrupts reads and writes when the context ends, until the returned function is called.
// That function waits for an interruption in progress: a later one would end the next call on this connection.
func (c *connection) interruptWhenDone(ctx context.Context) (stop func()) {
	ended := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = c.socket.SetDeadline(time.Unix(1, 0))
	})
	return func() {
		if !cancel() {
			<-ended
		}
	}
}

// exchange sends the request and returns the frame of the answer, which is valid until the next call.
func (c *connection) exchange(a *ask) (frame []byte, stale bool, problem *failure) {
	c.buffer = a.appendRequest(c.buffer[:0], c.sequence)
	if _, fault := c.socket.Write(c.buffer); fault != nil {
		return nil, c.used && !isTimeout(fault), readFailure(fault)
	}
	var head [4]byte
	if got, fault := io.ReadFull(c.in, head[:]); fault != nil {
		return nil, c.used && got == 0 && !isTimeout(fault), readFailure(fault)
	}
	size, problem := frameSize(head[:])
	if problem != nil {
		return nil, false, problem
	}
	if size <= cap(c.buffer) {
		frame = c.buffer[:size]
		if _, fault := io.ReadFull(c.in, frame); fault != nil {
			return nil, false, readFailure(fault)
		}
		return frame, false, nil
	}
	for frame = c.buffer[:0]; len(frame) < size; {
		begin := len(frame)
		frame = append(frame, make([]byte, min(size-begin, readAtOnce))...)
		if _, fault := io.ReadFull(c.in, frame[begin:]); fault != nil {
			return nil, false, readFailure(fault)
		}
	}
	if cap(frame) <= bufferMost {
		c.buffer = frame
	}
	return frame, false, nil
}

func readFailure(fault error) *failure {
	if isTimeout(fault) {
		return failed(Timeout, "")
	}
	if strings.Contains(fault.Error(), "tls: ") {
		return failed(WrongService, "TLS: "+fault.Error())
	}
	return failed(ConnClosed, fault.Error())
}
