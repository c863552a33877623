package firn

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestGoroutinesTakeDifferentIDsFromMemory(t *testing.T) {
	server := newFakeServer(t)
	client := newClient(t, generous(SegmentTag("count")), server)
	taken := make([][]int64, 8)
	var group sync.WaitGroup
	for i := range taken {
		group.Add(1)
		go func() {
			defer group.Done()
			for j := 0; j < 20_000; j++ {
				id, err := client.NextID(background, "count")
				if err != nil {
					t.Error(err)
					return
				}
				taken[i] = append(taken[i], id)
			}
		}()
	}
	group.Wait()
	seen := map[int64]bool{}
	for _, ids := range taken {
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("%d is issued twice", id)
			}
			seen[id] = true
		}
	}
	if sent := server.requests.Load(); sent > 2_000 || len(seen) != 160_000 {
		t.Errorf("%d requests for %d ids", sent, len(seen))
	}
}

func TestBatchesComeFromMemoryInOrder(t *testing.T) {
	server := newFakeServer(t)
	client := newClient(t, generous(SegmentTag("count")), server)
	if _, err := client.NextID(background, "count"); err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	for i := 0; i < 50; i++ {
		ids, err := client.NextIDs(background, "count", 7)
		one, fault := client.NextID(background, "count")
		if err != nil || fault != nil || len(ids) != 7 || !slices.IsSorted(ids) {
			t.Fatal(ids, err, fault)
		}
		for _, id := range append(ids, one) {
			if seen[id] {
				t.Fatalf("%d is issued twice", id)
			}
			seen[id] = true
		}
	}
	if from := client.Counters().LocalIDs; from < 200 {
		t.Errorf("only %d ids are from memory", from)
	}
	if ids, err := client.NextIDs(background, "count", 100_000); err != nil || len(ids) != 100_000 {
		t.Error(len(ids), err)
	}
}

func TestEveryLaneDropsTheIDsOfADeletedTag(t *testing.T) {
	server := newFakeServer(t)
	client := newClient(t, generous(LocalTag{Tag: "count", Lasts: time.Minute}), server)
	if _, err := client.NextID(background, "count"); err != nil {
		t.Fatal(err)
	}
	server.refuse.Store(int32(UnknownTag))
	eventually(t, "ids are issued without end", func() bool {
		_, err := client.NextID(background, "count")
		var failure *Error
		return errors.As(err, &failure) && failure.Reason == UnknownTag
	})
	supply := client.engine.supplies["count"]
	for range supply.lanes {
		if id, found := supply.takeNow(); found {
			t.Fatalf("%d is of a deleted tag", id)
		}
	}
}

func TestDropsIDsByAge(t *testing.T) {
	server := newFakeServer(t)
	client := newClient(t, generous(LocalTag{Tag: "order", MaxAge: 50 * time.Millisecond}), server)
	if _, err := client.NextID(background, "order"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(60 * time.Millisecond)
	before := lastID.Load() // of the ids until now
	if id, err := client.NextID(background, "order"); err != nil || id <= before {
		t.Errorf("%d, %v: not after %d", id, err, before)
	}
}

func BenchmarkNextIDFromMemory(b *testing.B) {
	client := newClient(b, generous(SegmentTag("count")), newFakeServer(b))
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := client.NextID(background, "count"); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
