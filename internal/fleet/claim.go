// This file divides work between nodes: work that one node does for all, and work that the nodes share.

package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"understudy"
	"understudy/internal/store/nodes"
	"understudy/kit/retry"
)

// The first and the longest pause between two checks of whether another node still fetches a page.
const minClaimPause, maxClaimPause = 5 * time.Millisecond, 50 * time.Millisecond

// unclaimTimeout is the maximum time for ending a claim. A claim that could not be ended ends with the lease of its node.
const unclaimTimeout = 2 * time.Second

// claimTimeout is how long a claim may take. Without an answer the node fetches the page itself.
const claimTimeout = time.Second

// BeginFetch claims the fetch of a key. If it returns true, this node must fetch the page, and must call end when the page
// is stored. If it returns false, another node has fetched the page in the meantime, or has tried and failed. If the
// database does not answer, each node fetches the page itself. The error is the error of ctx.
func (f *Fleet) BeginFetch(ctx context.Context, key understudy.Key) (fetch bool, end func(), err error) {
	nothing, name := func() {}, key.Source+"\x00"+key.URI
	claimed, err := f.Claim(ctx, name)
	switch {
	case ctx.Err() != nil:
		return false, nothing, ctx.Err()
	case err != nil:
		return true, nothing, nil
	case claimed:
		return true, func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unclaimTimeout)
			defer cancel()
			_ = f.EndClaim(ctx, name) // after an error the claim ends with the lease
		}, nil
	}
	for n := 0; ; n++ {
		if err := retry.Wait(ctx, retry.Backoff(minClaimPause, maxClaimPause, n)); err != nil {
			return false, nothing, err
		}
		if is, err := f.o.Table.IsClaimed(ctx, hashClaim(name)); err != nil || !is {
			return false, nothing, ctx.Err()
		}
	}
}

// Claim claims work for this node. It returns false if a live node, or this node, has claimed the work. It gives up if the database
// does not answer soon. A claim ends with EndClaim, or when the lease of this node ends.
func (f *Fleet) Claim(ctx context.Context, name string) (claimed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	return f.o.Table.Claim(ctx, hashClaim(name), f.o.Node.ID)
}

// EndClaim ends a claim of this node.
func (f *Fleet) EndClaim(ctx context.Context, name string) error {
	return f.o.Table.EndClaim(ctx, hashClaim(name), f.o.Node.ID)
}

// hashClaim returns the key of a claim in the table.
func hashClaim(name string) int64 {
	sum := sha256.Sum256([]byte(name))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// IsAlone reports whether no other node had a valid lease at the last renewal.
func (f *Fleet) IsAlone() bool { return f.CountLiving() == 1 }

// CountLiving returns the number of nodes that had a valid lease at the last renewal, including this node.
func (f *Fleet) CountLiving() int {
	n := 1
	for _, other := range f.Nodes() {
		if f.isOther(other) {
			n++
		}
	}
	return n
}

// IsLeader reports whether this node does the work that one node does for all nodes. The leader is the live node that was
// started first. For a moment two nodes may both believe that they are the leader.
func (f *Fleet) IsLeader() bool {
	var first *nodes.Node
	all := f.Nodes()
	for i := range all {
		n := &all[i]
		if n.ID != f.o.Node.ID && n.Left <= 0 {
			continue
		}
		if first == nil || n.Started.Before(first.Started) || n.Started.Equal(first.Started) && n.ID < first.ID {
			first = n
		}
	}
	return first == nil || first.ID == f.o.Node.ID
}
