package firn

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// Which servers a fleet keeps to, and which of several it picks.

// choose picks the subset of the listed servers that this client uses, by weighted rendezvous hashing of its own name
// with their addresses. Most of them are of its rack.
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
	at := (float64(rand.Int64N(1<<53)) / (1 << 53)) * total
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

// hasHealthier returns whether a server that is neither this one nor tried has a better standing for the tag.
func (f *fleet) hasHealthier(than *server, tag string, tried map[*server]bool) bool {
	now := time.Now()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	needsMachine := !f.ownNumbers[tag]
	standing := than.standing(tag, needsMachine, now)
	for _, one := range f.servers {
		if one != than && !tried[one] && one.standing(tag, needsMachine, now) < standing {
			return true
		}
	}
	return false
}
