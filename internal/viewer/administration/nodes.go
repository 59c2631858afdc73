// The processes that share the database of this server.

package administration

import (
	"fmt"
	"time"

	"understudy/internal/viewer/page"
	"understudy/request"
)

// nodesView is the table of the processes that share the database.
type nodesView struct {
	Rows []nodeRow
	Why  string // why this process answers as during an outage, or ""
}

// nodeRow is one process.
type nodeRow struct {
	Node        request.Node
	Lease, Tone string // how long it may answer from memory, in words
}

// newNodesView returns the table, or nil if no other process can share the database.
func newNodesView(q *page.Exchange) *nodesView {
	if q.V.Options.Nodes == nil {
		return nil
	}
	all, current := q.V.Options.Nodes()
	if len(all) == 0 {
		return nil
	}
	v := &nodesView{}
	if !current {
		v.Why = "The database does not answer. Answers come from memory, as during an outage."
	}
	for _, n := range all {
		row := nodeRow{Node: n, Lease: "ended", Tone: "bad"}
		if n.Lease > 0 {
			row.Lease, row.Tone = fmt.Sprintf("%.1f s left", (time.Duration(n.Lease)*time.Millisecond).Seconds()), "good"
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}
