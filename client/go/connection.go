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
	readBuffer = 16 << 10
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
	made := &connection{socket: socket, in: bufio.NewReaderSize(socket, readBuffer)}
	if files == nil {
		return made, nil
	}
	host, _, _ := net.SplitHostPort(address)
	config, fault := files.current(host)
	if fault == nil {
		secure := tls.Client(socket, config)
		made.socket, made.in = secure, bufio.NewReaderSize(secure, readBuffer)
		_ = socket.SetDeadline(until)
		fault = secure.HandshakeContext(ctx)
	}
	if fault != nil {
		made.hangUp()
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

// notify sets onEnd. It returns false if the connection has ended already, so that onEnd is not called.
func (c *connection) notify(onEnd func(unasked *failure)) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.onEnd = onEnd
	return c.closed == nil
}

// hangUp closes the socket.
func (c *connection) hangUp() {
	if c.forget != nil {
		c.forget()
	}
	if secure, is := c.socket.(*tls.Conn); is {
		_ = secure.NetConn().Close() // without close_notify, for which it might wait
		return
	}
	_ = c.socket.Close()
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
