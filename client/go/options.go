package firn

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Event is an event about servers, for the program's log; the library itself logs nothing.
// Kind is one of: list, unhealthy, healthy, quarantined, draining, no server.
type Event struct {
	Kind, Server, Detail string
}

// String returns the event as a line of a log.
func (e Event) String() string {
	text := e.Kind
	if e.Server != "" {
		text += " " + e.Server
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// TLS has the options of TLS connections. The files are read again when they change.
type TLS struct {
	CA   string // certificates of trusted authorities; empty: those of the system
	Cert string // the client's certificate, with its Key
	Key  string
	Name string // name that servers' certificates must contain; empty: the listed host
}

// LocalTag is a tag whose ids are prefetched, so that taking one costs no call.
type LocalTag struct {
	Tag      string
	MaxAge   time.Duration // older ids are dropped; 0: ids are kept
	Lasts    time.Duration // time for which a fetch should last at the recent rate
	FetchMax int           // maximum ids of one fetch; 0: ten million
}

// SnowflakeTag prefetches for a snowflake tag: ids at most 1 s old. A fetch takes what a server issues
// in 25 ms.
func SnowflakeTag(tag string) LocalTag {
	return LocalTag{Tag: tag, MaxAge: time.Second, Lasts: time.Second / 4, FetchMax: 100_000}
}

// SegmentTag prefetches for a segment tag: ids are kept.
func SegmentTag(tag string) LocalTag { return LocalTag{Tag: tag, Lasts: time.Second} }

// Options are the options of a client, which do not change. A field that is 0 has the default beside it.
type Options struct {
	ClusterUUID    string        // that of the first server that answers
	Rack           *int32        // nil; otherwise servers of this rack are used while one is healthy
	Failfast       bool          // false: the call fails over to another server
	Deadline       time.Duration // 200 ms; maximum time of a call whose context has no deadline
	AttemptLimit   time.Duration // 80 ms; maximum time of an attempt, connecting included
	AttemptsMax    int           // 3; maximum requests per call
	ConnectionsMax int           // 4 per server, shared by calls
	ServersMax     int           // 16; maximum servers used in a large cluster; below 0: all
	LocalRanges    []LocalTag
	TLS            *TLS
	OnEvent        func(Event) // called on a goroutine of its own, one event at a time; its panics are ignored
}

func (o Options) withDefaults() Options {
	set := func(value *int, other int) {
		if *value == 0 {
			*value = other
		}
	}
	limit := func(value *time.Duration, other time.Duration) {
		if *value == 0 {
			*value = other
		}
	}
	limit(&o.Deadline, 200*time.Millisecond)
	limit(&o.AttemptLimit, 80*time.Millisecond)
	set(&o.AttemptsMax, 3)
	set(&o.ConnectionsMax, 4)
	set(&o.ServersMax, 16)
	return o
}

// faults lists all faults of the options.
func (o Options) faults() []string {
	var faults []string
	for _, one := range []struct {
		name  string
		value int64
		most  int64
	}{
		{"Deadline", int64(o.Deadline), int64(time.Hour)},
		{"AttemptLimit", int64(o.AttemptLimit), int64(time.Hour)},
		{"AttemptsMax", int64(o.AttemptsMax), 100},
		{"ConnectionsMax", int64(o.ConnectionsMax), 10_000},
	} {
		if one.value < 1 || one.value > one.most {
			faults = append(faults, fmt.Sprintf("%s is %d, not 1 to %d", one.name, one.value, one.most))
		}
	}
	if o.Rack != nil && *o.Rack < 0 {
		faults = append(faults, fmt.Sprintf("Rack is %d, not 0 or more", *o.Rack))
	}
	if o.TLS != nil && (o.TLS.Cert == "") != (o.TLS.Key == "") {
		faults = append(faults, "TLS has either Cert or Key; it needs both or neither")
	}
	seen := map[string]bool{}
	for _, one := range o.LocalRanges {
		if len(one.Tag) > tagMax {
			faults = append(faults, fmt.Sprintf("LocalRanges has a tag of %d bytes, not at most %d", len(one.Tag), tagMax))
		}
		if seen[one.Tag] {
			faults = append(faults, fmt.Sprintf("LocalRanges has '%s' twice", printable(one.Tag)))
		}
		seen[one.Tag] = true
	}
	return faults
}

const (
	unixPrefix  = "unix:"
	unixPathMax = 107 // bytes, in Linux
)

// readServers parses firn://seed,seed or list://host:port,unix:/path.
func readServers(servers string) (addresses []string, listsChange bool, fault error) {
	scheme, rest, found := strings.Cut(servers, "://")
	if !found || (scheme != "firn" && scheme != "list") {
		return nil, false, fmt.Errorf("servers is '%s'; it must begin with firn:// or list://", servers)
	}
	seen := map[string]bool{}
	for _, address := range strings.Split(rest, ",") {
		if fault := faultOfSeed(address); fault != nil {
			return nil, false, fault
		}
		if !seen[address] {
			addresses = append(addresses, address)
		}
		seen[address] = true
	}
	return addresses, scheme == "firn", nil
}

func faultOfSeed(address string) error {
	path, unix := strings.CutPrefix(address, unixPrefix)
	switch {
	case !unix:
		_, _, fault := splitAddress(address)
		return fault
	case !strings.HasPrefix(path, "/"):
		return fmt.Errorf("'%s': unix: requires an absolute path", printable(address))
	case len(path) > unixPathMax || strings.Contains(path, "\x00"):
		return fmt.Errorf("'%s': the path of a Unix socket has at most %d bytes and no NUL", printable(address), unixPathMax)
	}
	return nil
}

// splitAddress returns the parts of host:port. No host is named unix.
func splitAddress(address string) (host, port string, fault error) {
	host, port, fault = net.SplitHostPort(address)
	number, wrong := strconv.ParseUint(port, 10, 16)
	if fault != nil || wrong != nil || number == 0 || host == "" || host+":" == unixPrefix || printable(host) != host {
		return "", "", fmt.Errorf("'%s' is not host:port", address)
	}
	return host, port, nil
}
