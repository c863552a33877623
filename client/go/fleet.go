package firn

import (
	"hash/fnv"
	"math"
	"sort"
	"strconv"
	"sync"
	"time"

	wire "firn.io/go/firn/internal/wire"
)

// In the order in which servers are asked: the later ones only when no earlier one is left.
const (
	fit = iota
	ill
	resting
	disabled
	draining
	lastResort
	quarantined
)

var fitnessNames = []string{"fit", "ill", "resting", "disabled", "draining", "last resort", "quarantined"}

const (
	noAdvice     = 100 * time.Millisecond
	lookAgain    = 30 * time.Second
	lookFailed   = time.Second
	outsideRack  = 4 // of 16 servers that a client keeps to
	fitMin       = 3 // where fewer are fit, all servers are offered
	rememberMost = 1000
)

// SeenServer is one server as the client sees it; Why says in a sentence why it is not fit.
type SeenServer struct {
	Address      string
	Rack, Weight int
	Fitness, Why string
	InFlight     int
}

// server is one server; the fleet's mutex guards all but its room.
type server struct {
	address         string
	rack, weight    int
	online, tls     bool
	state           wire.ServerState
	lastResort      bool
	inFlight        int
	health          health
	why             string
	notReadyUntil   time.Time
	downUntil       map[string]time.Time // by tag: without its store
	closedUntil     map[string]time.Time // by tag: given up here
	draining, quiet bool                 // quiet: in quarantine
	quarantine      time.Duration
	lookAt          time.Time     // when its status is to be asked in the background; zero: never
	room            chan struct{} // one for each call that uses a connection
	idle            []*connection
}

func (s *server) fitness(tag string, needsMachine bool, now time.Time) int {
	leaves := s.state == wire.ServerState_DRAINING || s.state == wire.ServerState_OFFLINE
	notReady := s.state == wire.ServerState_NOT_READY || now.Before(s.notReadyUntil)
	switch {
	case s.quiet:
		return quarantined
	case s.lastResort:
		return lastResort
	case s.draining || leaves || now.Before(s.closedUntil[tag]):
		return draining
	case !s.online || s.weight <= 0:
		return disabled
	case s.health.resting() || (notReady && needsMachine) || now.Before(s.downUntil[tag]):
		return resting
	case s.health.ill():
		return ill
	}
	return fit
}

func (s *server) share() float64 { return math.Max(float64(s.weight), 1) }

// fleet knows which servers there are, who is fit, and which one is asked next. Hooks are called
// without its mutex.
type fleet struct {
	options     Options
	listsChange bool
	seeds       []string
	name        string // drawn by lot: decides which servers this client keeps to
	trouble     func()

	mutex        sync.Mutex
	news         chan struct{} // closed, and made anew, when servers have come or come back
	uuid, layout string
	version      int64
	servers      map[string]*server
	subset       []*server
	ownNumbers   map[string]bool // tags that need no machine id
}

func newFleet(options Options, seeds []string, listsChange bool) *fleet {
	f := &fleet{options: options, listsChange: listsChange, seeds: seeds, uuid: options.ClusterUUID,
		name: strconv.FormatInt(drawBelow(math.MaxInt64), 36), news: make(chan struct{}),
		servers: map[string]*server{}, ownNumbers: map[string]bool{}}
	for _, seed := range seeds {
		f.servers[seed] = f.made(seed)
	}
	f.choose()
	return f
}

func (f *fleet) made(address string) *server {
	return &server{address: address, weight: 100, online: true, tls: f.options.TLS != nil,
		state: wire.ServerState_READY, downUntil: map[string]time.Time{},
		closedUntil: map[string]time.Time{}, quarantine: time.Second / 2,
		room: make(chan struct{}, f.options.ConnectionsMax)}
}

// apply takes a list if it is newer, or if only a last resort answers; the connections to servers that
// left it.
func (f *fleet) apply(list *wire.ServerList, toldBy *server) (gone []*connection) {
	f.mutex.Lock()
	lower := list.Version < f.version && !toldBy.lastResort
	if len(list.Servers) == 0 || list.Version == f.version || lower {
		f.mutex.Unlock()
		return nil
	}
	before := f.servers
	f.servers = map[string]*server{}
	for _, entry := range list.Servers {
		f.merge(entry, before)
	}
	for _, seed := range f.seeds {
		if f.servers[seed] == nil {
			one := before[seed]
			if one == nil {
				one = f.made(seed)
			}
			one.lastResort = true
			f.servers[seed] = one
		}
	}
	for address, one := range before {
		if f.servers[address] == nil {
			gone = append(gone, one.idle...)
			one.idle = nil
		}
	}
	f.version = list.Version
	f.choose()
	f.tellNews()
	f.mutex.Unlock()
	f.tell("list", "", strconv.Itoa(len(list.Servers))+" servers")
	return gone
}

func (f *fleet) merge(entry *wire.ServerEntry, before map[string]*server) {
	if _, _, fault := splitAddress(entry.Address); fault != nil {
		return
	}
	one := before[entry.Address]
	if one == nil {
		one = f.made(entry.Address)
	}
	one.rack, one.weight, one.online = int(entry.Rack), int(entry.Weight), entry.Online
	one.state, one.tls = entry.State, entry.TLS || f.options.TLS != nil
	one.lastResort, one.draining, one.quiet = false, false, false
	one.closedUntil = map[string]time.Time{}
	f.servers[entry.Address] = one
}

// choose picks the servers of the list that this client keeps to: those that weighted rendezvous hashing
// of its own name with their addresses puts first, most of them of its rack.
func (f *fleet) choose() {
	scores, ranked := map[*server]float64{}, []*server{}
	for _, one := range f.servers {
		if one.lastResort {
			continue
		}
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(f.name + one.address))
		drawn := (float64(mix(hash.Sum64())>>11) + 1) / (1 << 53)
		scores[one] = -math.Log(drawn) / one.share()
		ranked = append(ranked, one)
	}
	sort.Slice(ranked, func(i, j int) bool { return scores[ranked[i]] < scores[ranked[j]] })
	most := f.options.ServersMax
	if most < 0 || len(ranked) <= most {
		f.subset = ranked
		return
	}
	if f.options.Rack != nil {
		var inside, outside []*server
		for _, one := range ranked {
			if one.rack == int(*f.options.Rack) {
				inside = append(inside, one)
			} else {
				outside = append(outside, one)
			}
		}
		kept := clamp(most*outsideRack/16, 0, len(outside))
		ranked = append(inside[:clamp(most-kept, 0, len(inside))], outside...)
	}
	f.subset = ranked[:most]
}

// mix spreads a hash over all its bits.
func mix(hash uint64) uint64 {
	hash = (hash ^ hash>>33) * 0xff51afd7ed558ccd
	return hash ^ hash>>33
}

// pick is a server that is not among `tried`, or nil: of the fittest, those of the own rack first, two
// at random by weight, of which the second is taken when it is clearly less busy. It counts as busy
// until giveBack.
func (f *fleet) pick(tag string, tried map[*server]bool) *server {
	now := time.Now()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	best, offered := f.offer(f.subset, tag, tried, now)
	if best > fit || (len(offered) < fitMin && len(offered) < len(f.subset)) {
		all := make([]*server, 0, len(f.servers))
		for _, one := range f.servers {
			all = append(all, one)
		}
		_, offered = f.offer(all, tag, tried, now)
	}
	if len(offered) == 0 {
		return nil
	}
	if f.options.Rack != nil {
		var mine []*server
		for _, one := range offered {
			if one.rack == int(*f.options.Rack) {
				mine = append(mine, one)
			}
		}
		if len(mine) > 0 {
			offered = mine
		}
	}
	picked := lessBusy(offered)
	picked.inFlight++
	return picked
}

// offer is the fittest of the servers, and how fit they are.
func (f *fleet) offer(servers []*server, tag string, tried map[*server]bool,
	now time.Time) (best int, offered []*server) {
	best, offered = quarantined, make([]*server, 0, len(servers))
	for _, one := range servers {
		if tried[one] {
			continue
		}
		fitness := one.fitness(tag, !f.ownNumbers[tag], now)
		if fitness < best {
			best, offered = fitness, offered[:0]
		}
		if fitness == best {
			offered = append(offered, one)
		}
	}
	return best, offered
}

// hasFitter returns whether a server that is neither this one nor tried is fitter for the tag.
func (f *fleet) hasFitter(than *server, tag string, tried map[*server]bool) bool {
	now := time.Now()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	needsMachine := !f.ownNumbers[tag]
	fitness := than.fitness(tag, needsMachine, now)
	for _, one := range f.servers {
		if one != than && !tried[one] && one.fitness(tag, needsMachine, now) < fitness {
			return true
		}
	}
	return false
}

// takeIdle takes the oldest connections of each server that are idle since then; the caller returns them.
func (f *fleet) takeIdle(since time.Time) map[*server][]*connection {
	taken := map[*server][]*connection{}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, one := range f.servers {
		count := 0
		for count < len(one.idle) && count < checksMax && one.idle[count].idleSince.Before(since) {
			count++
		}
		if count > 0 {
			taken[one] = append([]*connection{}, one.idle[:count]...)
			one.idle = append([]*connection{}, one.idle[count:]...)
		}
	}
	return taken
}

func lessBusy(servers []*server) *server {
	first := draw(servers, nil)
	if len(servers) == 1 {
		return first
	}
	second := draw(servers, first)
	mean := (first.share() + second.share()) / 2
	cost := func(s *server) float64 { return 1 + float64(s.inFlight)*mean/s.share() }
	if cost(second)*1.5 <= cost(first) {
		return second
	}
	return first
}

// draw picks one by weight, without `except`.
func draw(servers []*server, except *server) (drawn *server) {
	total := 0.0
	for _, one := range servers {
		if one != except {
			total += one.share()
		}
	}
	at := (float64(drawBelow(1<<53)) / (1 << 53)) * total
	for _, one := range servers {
		if one == except {
			continue
		}
		drawn = one
		if at -= one.share(); at < 0 {
			break
		}
	}
	return drawn
}

func (f *fleet) giveBack(one *server) {
	f.mutex.Lock()
	one.inFlight--
	f.mutex.Unlock()
}

func (f *fleet) view() []SeenServer {
	now, seen := time.Now(), []SeenServer{}
	f.mutex.Lock()
	for _, one := range f.servers {
		fitness := one.fitness("", true, now)
		why := one.why
		if fitness == fit {
			why = ""
		}
		seen = append(seen, SeenServer{one.address, one.rack, one.weight, fitnessNames[fitness], why,
			one.inFlight})
	}
	f.mutex.Unlock()
	sort.Slice(seen, func(i, j int) bool { return seen[i].Address < seen[j].Address })
	return seen
}

// newsChannel is closed at the next news of servers.
func (f *fleet) newsChannel() <-chan struct{} {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.news
}

// tellNews is called under the mutex.
func (f *fleet) tellNews() {
	close(f.news)
	f.news = make(chan struct{})
}

func (f *fleet) tell(kind, server, detail string) {
	if f.options.OnEvent != nil {
		f.options.OnEvent(Event{kind, server, detail})
	}
}
